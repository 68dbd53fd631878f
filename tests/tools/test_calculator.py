"""The ready-made calculator."""

from __future__ import annotations

import pytest

from loopwright.tools import NotCalculable, calculate, calculator

ANSWERS = {
    "3131.1 + 4777.75 + 367.38": "8276.23",
    "0.1 + 0.2": "0.3",
    "20% of 350": "70",
    "5% of (200 + 100)": "15",
    "(10 + 10)% of 50": "10",
    "350 + 10%": "385",
    "100 + 50 + 10%": "165",
    "200 - 15%": "170",
    "50% + 10": "10.5",
    "15%": "0.15",
    "-5%": "-0.05",
    "100 * (1 + 5%)": "105",
    "1500 / 80%": "1875",
    "2 * 10% of 50": "10",
    "100 / 20% of 50": "10",
    "100 + 2 * 5%": "100.1",
    "4 ** 50%": "2",
    "100 + -5%": "95",
    "10 % 3": "1",
    "10%3": "1",
    "2^10": "1024",
    "-2 ** 2": "-4",
    "7 // 2": "3",
    "19.99 × 3 ÷ 3": "19.99",  # noqa: RUF001 -- as people write it
    "1 / 3": "0.333333333333333",
    "round(10 / 3, 2)": "3.33",
    "round(2.5)": "3",
    "max(1, abs(-7), sqrt(4))": "7",
    "1234567890123456789 * 10": "12345678901234567890",
    "10 ** -20": "1E-20",
    "12345678901234567.89 + 0.01": "12345678901234567.9",
    "0.12345678901234567891 * 1": "0.12345678901234567891",
    "1_000 + 0x10": "1016",
    "1e400": "1E+400",
}
REFUSED = {
    "1 / 0": "divides by zero",
    "sqrt(-1)": "no value among the real numbers",
    "0 / 0": "no value among the real numbers",
    "9 ** 9 ** 9": "9 ** 387420489",
    "1e99999": "too large",
    "2j": "no number",
    "__import__('os').getcwd()": "Attribute",
    "().__class__": "Attribute",
    "'a' * 9": "'a' is no number",
    "True": "no number",
    "[1 for _ in (1,)]": "List",
    "x": "'x' is not defined",
    "": "invalid syntax",
    "1 +": "invalid syntax",
    "(" * 500: "cannot be calculated",
    "1" * 1001: "1000 are taken",
}


@pytest.mark.parametrize(("expression", "answer"), ANSWERS.items())
def test_exact_arithmetic(expression: str, answer: str) -> None:
    """Decimals add up to the cent, percentages mean what people mean, and rounding is that of a bill."""
    assert answer == calculate(expression)


@pytest.mark.parametrize(("expression", "why"), REFUSED.items())
def test_everything_else_is_refused(expression: str, why: str) -> None:
    """What is no arithmetic is never run, and the model reads why."""
    with pytest.raises(NotCalculable) as refused:
        calculate(expression)
    assert why in str(refused.value)


def test_the_tool_is_a_read() -> None:
    """Calculating asks nobody."""
    assert ("read", "70") == (calculator.contract.effect, calculator.invoke({"expression": "20% of 350"}))
