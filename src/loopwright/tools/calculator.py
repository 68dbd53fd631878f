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
_PERCENT = re.compile(r"([\w.]+|\))\s*%(?:(\s*of\b)|(?=\s*(?:$|[-+*/%@),])))", re.IGNORECASE)
_MARK = "percent"
"""Written behind a number as its attribute: nothing binds closer, as nothing does closer than a `%`."""


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
    text = _PERCENT.sub(_marked, expression.translate(_SIGNS).strip())
    traps = [DivisionByZero, InvalidOperation, Overflow]
    with localcontext(Context(prec=DIGITS, Emax=9999, Emin=-9999, traps=traps)) as context:
        try:
            parsed = _Reader(text).visit(ast.parse(text, mode="eval")).body
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


def _marked(found: re.Match[str]) -> str:
    """Mark a percentage; a `%` before a number is left: the remainder."""
    return f"{found[1]} .{_MARK}{' @' if found[2] else ''}"


class _Reader(ast.NodeTransformer):
    """Reads numbers digit by digit, and percentages as people mean them.

    `x + n%` adds so much of what stands before it; `n% of x` is one thing, also behind a `/`.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._percentages: set[ast.AST] = set()

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        digits = (ast.get_source_segment(self._text, node) or "").replace("_", "")
        if type(node.value) is float or (type(node.value) is int and digits.isdecimal()):
            number: Any = Decimal(digits)  # what `_number` takes, and Python's own trees do not hold
            return ast.copy_location(ast.Constant(number), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr != _MARK:
            return node
        percentage = ast.BinOp(node.value, ast.Div(), ast.Constant(100))
        self._percentages.add(percentage)
        return percentage

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult):
            return self._share(node)
        if isinstance(node.op, ast.Add | ast.Sub) and self._is_percentage(node.right):
            node.right = ast.BinOp(node.left, ast.Mult(), node.right)
        return node

    def _share(self, node: ast.BinOp) -> ast.AST:
        """Return `n% of x`, which Python has grouped as `(… / n%) of x` where a factor stands before it."""
        before = node.left
        if isinstance(before, ast.BinOp) and before not in self._percentages:
            before.right = ast.BinOp(before.right, ast.Mult(), node.right)
            return before
        return ast.BinOp(before, ast.Mult(), node.right)

    def _is_percentage(self, node: ast.AST) -> bool:
        """Tell whether a term is a bare percentage, and not a percentage of something."""
        return node in self._percentages or (isinstance(node, ast.UnaryOp) and self._is_percentage(node.operand))


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
    value = cast("object", node.value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise NotCalculable(f"{value!r} is no number")
    return +Decimal(value)  # with the digits, and within the bounds, of every other step


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
    "pi": Decimal("3.141592653589793238462643383"),
}


@tool(effect="read")
def calculator(expression: str) -> str:
    """Calculate an arithmetic expression exactly, such as `3131.10 + 4777.75`, `20% of 350` or `round(10 / 3, 2)`.

    Use it for every sum, price and percentage instead of doing it yourself; not for units, dates or equations.
    """
    return calculate(expression)
