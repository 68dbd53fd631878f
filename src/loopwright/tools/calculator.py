"""`calculator`: arithmetic on exact decimal numbers, by simpleeval; nothing of Python is evaluated."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from decimal import (
    ROUND_CEILING,
    ROUND_FLOOR,
    ROUND_HALF_UP,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    Overflow,
    localcontext,
)
from typing import Any, cast

from loopwright.errors import ConfigurationError

from .tool import tool

MAX_CHARACTERS = 1000
DIGITS = 28
"""Significant digits of every step: those of Python's decimal numbers."""
SHOWN = 15
"""Significant digits of an answer that had to be rounded."""

_SIGNS = str.maketrans({"×": "*", "·": "*", "÷": "/", "−": "-", "–": "-", "^": "**"})  # noqa: RUF001 -- as people write it
_PERCENT_OF = re.compile(r"%\s*of\b", re.IGNORECASE)
_PERCENT = re.compile(r"([\d.]+|\))\s*%(?=\s*(?:$|[-+*/),]))")


class NotCalculable(ValueError):
    """The expression has no number for an answer; the text says why."""


def calculate(expression: str) -> str:
    """Return the value of an arithmetic expression as a decimal number.

    Knows `+ - * / // % **` (`^` too), brackets, `sqrt`, `round`, `floor`, `ceil`, `abs`, `min`, `max`, `ln`, `log10`,
    `exp`, `pi`, `e`, and percentages: `20% of 350`, `350 + 10%` (of what stands before it), `15%`. A `%` between two
    numbers is the remainder. Every step has 28 significant digits; money adds up to the cent.

    Raises:
        NotCalculable: If it is too long, no such expression, or has no finite value.
        ConfigurationError: If simpleeval, of the extra `tools`, is not installed.
    """
    if len(expression) > MAX_CHARACTERS:
        raise NotCalculable(f"the expression has {len(expression)} characters; {MAX_CHARACTERS} are taken")
    evaluator = _evaluator()
    text = _with_percents(expression.translate(_SIGNS).strip())
    traps = [DivisionByZero, InvalidOperation, Overflow]
    with localcontext(Context(prec=DIGITS, Emax=9999, Emin=-9999, traps=traps)) as context:
        try:
            parsed = _Percents().visit(ast.parse(text, mode="eval")).body
            value = evaluator.eval(text, previously_parsed=ast.fix_missing_locations(ast.Expr(parsed)))
        except (DivisionByZero, ZeroDivisionError):
            raise NotCalculable(f"{expression} divides by zero") from None
        except Overflow:
            raise NotCalculable(f"{expression} is too large a number") from None
        except InvalidOperation:
            raise NotCalculable(f"{expression} has no value among the real numbers") from None
        except Exception as error:  # noqa: BLE001 -- the parser's, simpleeval's, and those of wrong arguments
            raise NotCalculable(f"{expression!r} cannot be calculated: {error}") from None
        if not isinstance(value, Decimal) or not value.is_finite():
            raise NotCalculable(f"{expression!r} is no number")
        return _shown(value, exact=not context.flags[Inexact])


def _shown(value: Decimal, *, exact: bool) -> str:
    """Write a number without an exponent where that is short, and without digits that only rounding has made."""
    short = (value if exact else Context(prec=SHOWN, rounding=ROUND_HALF_UP).plus(value)).normalize()
    return f"{short:f}" if -SHOWN <= short.adjusted() <= 2 * SHOWN else f"{short}"


def _with_percents(text: str) -> str:
    """Write percentages as calls, which `_Percents` understands; a `%` before a number is left: the remainder."""
    return _PERCENT.sub(_as_call, _PERCENT_OF.sub("* percent *", text))


def _as_call(found: re.Match[str]) -> str:
    return f"{found[1]} * percent"


class _Percents(ast.NodeTransformer):
    """Turns `x + n * percent` into `x + x * n * percent`: so much of what stands before it."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Add | ast.Sub) and _is_percentage(node.right):
            node.right = ast.BinOp(node.left, ast.Mult(), node.right)
        return node


def _is_percentage(node: ast.AST) -> bool:
    """Tell whether a term is a bare percentage: `n * percent`, and not a percentage of something."""
    return isinstance(node, ast.BinOp) and isinstance(node.right, ast.Name) and node.right.id == "percent"


def _evaluator() -> Any:
    """Return simpleeval's evaluator, cut down to arithmetic."""
    try:
        import simpleeval  # type: ignore[import-untyped]  # it has no types
    except ImportError as error:
        text = "calculator needs the package simpleeval; install it with: pip install 'loopwright[tools]'"
        raise ConfigurationError(text, extra="tools") from error
    operators = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.USub, ast.UAdd)
    known = cast("dict[type[ast.AST], Any]", simpleeval.DEFAULT_OPERATORS)  # pyright: ignore[reportUnknownMemberType]  # it has no types
    evaluator: Any = simpleeval.SimpleEval(
        operators={kind: known[kind] for kind in operators},
        functions=dict(_FUNCTIONS),
        names=dict(_NAMES),
    )
    parts = (ast.Expr, ast.Name, ast.UnaryOp, ast.BinOp, ast.Call)
    evaluator.nodes = {part: evaluator.nodes[part] for part in parts} | {ast.Constant: _number}
    return evaluator


def _number(node: ast.Constant) -> Decimal:
    value = node.value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise NotCalculable(f"{value!r} is no number")
    return Decimal(repr(value))  # the shortest text of a float is what was written


def _round(value: Decimal, places: Decimal = Decimal(0)) -> Decimal:
    """Round halves away from zero, as on a bill."""
    return value.quantize(Decimal(1).scaleb(-int(places)), rounding=ROUND_HALF_UP)


def _floor(value: Decimal) -> Decimal:
    return value.to_integral_value(rounding=ROUND_FLOOR)


def _ceil(value: Decimal) -> Decimal:
    return value.to_integral_value(rounding=ROUND_CEILING)


def _largest(*values: Decimal) -> Decimal:
    return max(values)


def _smallest(*values: Decimal) -> Decimal:
    return min(values)


_FUNCTIONS: dict[str, Callable[..., Decimal]] = {
    "abs": Decimal.copy_abs,
    "ceil": _ceil,
    "exp": Decimal.exp,
    "floor": _floor,
    "ln": Decimal.ln,
    "log10": Decimal.log10,
    "max": _largest,
    "min": _smallest,
    "round": _round,
    "sqrt": Decimal.sqrt,
}
_NAMES = {
    "e": Decimal("2.718281828459045235360287471"),
    "percent": Decimal("0.01"),
    "pi": Decimal("3.141592653589793238462643383"),
}


@tool(effect="read")
def calculator(expression: str) -> str:
    """Calculate an arithmetic expression exactly, such as `3131.10 + 4777.75`, `20% of 350` or `round(10 / 3, 2)`.

    Use it for every sum, price and percentage instead of doing it yourself; not for units, dates or equations.
    """
    return calculate(expression)
