"""`check`: five answers about an agent, and what could be better about its tools."""

from __future__ import annotations

from decimal import Decimal

from loopwright import Limits, Price, check, create_agent, tool
from loopwright.testing import ScriptedModel


@tool
def bad(order: str) -> str:
    """Weather API."""
    return order


@tool(effect="write", key="{order_id}")
def good(order_id: str) -> str:
    """Cancel an order, by its order_id such as A100. Use it only when the customer asks for it."""
    return order_id


def test_a_sound_agent_has_no_findings() -> None:
    """And its limits are told."""
    limits = Limits(max_steps=8, max_cost=Decimal("0.05"))
    agent = create_agent(ScriptedModel([]), [good], limits=limits, price=Price(Decimal(1), Decimal(1)), name="shop")
    report = check(agent)
    assert () == report.findings
    text = str(report)
    assert "agent 'shop'" in text
    assert "8 steps" in text
    assert "at most $0.05" in text


def test_what_could_be_better() -> None:
    """An undeclared effect, a thin description, a parameter without a word, and a crash that nobody could resolve."""
    report = check(create_agent(ScriptedModel([]), [bad]))
    problems = [finding.problem for finding in report.findings]
    assert {"bad"} == {finding.tool for finding in report.findings}
    assert any("not declared" in problem for problem in problems)
    assert any("thin" in problem for problem in problems)
    assert any("without a word" in problem for problem in problems)
    assert any("only a person can tell" in problem for problem in problems)
    assert "the model's price is not known" in str(report)
    assert "a person is asked: bad" in str(report)


def test_the_five_questions() -> None:
    """Each has an answer, also where limits are lifted."""
    lifted = Limits(max_steps=None, max_tool_calls=None, max_tokens=None)
    report = check(create_agent(ScriptedModel([]), [], limits=lifted))
    assert len(report.answers) == 5
    assert all(answer for _, answer in report.answers)
    assert "any number of steps" in str(report)
