"""The next move: which tools to call, or what to say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .answer import answer, handed_over, reasons
from .case import ESCALATE, LOOKUP, POLICY, REFUND, Case
from .phrases import PHRASES
from .request import Intent

KNOWN = frozenset((LOOKUP, POLICY, REFUND, ESCALATE))
STRANGER = (
    "I am the demo model, no language model, and can use none of this agent's tools: I know those of loopwright's own"
    " support agent only. Use a real model: set OPENAI_API_KEY, or name one."
)
"""Said instead of a plan where only tools are bound that the stand-in cannot use."""
_REASON = 500


@dataclass(frozen=True, slots=True)
class Wanted:
    """A tool call that is wanted."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Move:
    """What the stand-in does next: calls with the reason for them, or a final answer."""

    text: str
    calls: tuple[Wanted, ...] = ()


def next_move(case: Case) -> Move:
    """Decide what comes next; the same case gives the same move."""
    if case.tools and case.tools.keys().isdisjoint(KNOWN):
        return Move(STRANGER)
    phrases, request = PHRASES[case.request.language], case.request
    if request.intent is Intent.OTHER:
        return Move(phrases.help)
    if request.intent is Intent.PERSON:
        return _hand_over(case)
    if not request.codes:
        return Move(phrases.ask_code)
    if not request.is_amount_clear or (request.amount is not None and len(request.codes) > 1):
        return Move(phrases.ask_amount)
    return _handle(case)


def _handle(case: Case) -> Move:
    """Look up the orders, then the policy, then pay what is asked for and allowed, then answer."""
    intent = case.request.intent
    if case.may_call(LOOKUP):
        return Move("", tuple(_wanted(case, LOOKUP, order_id=code) for code in case.request.codes))
    if intent is not Intent.STATUS and case.orders and case.may_call(POLICY):
        return Move("", (_wanted(case, POLICY),))
    if intent is Intent.REFUND and case.proposals and case.may_call(REFUND):
        calls = (_wanted(case, REFUND, order_id=code, amount=amount) for code, amount in case.proposals)
        return Move(reasons(case), tuple(calls))
    return Move(answer(case))


def _hand_over(case: Case) -> Move:
    if case.may_call(ESCALATE):
        return Move("", (_wanted(case, ESCALATE, reason=case.request.text[:_REASON]),))
    return Move(handed_over(case))


def _wanted(case: Case, tool: str, **args: Any) -> Wanted:
    return Wanted(tool, {name: value for name, value in args.items() if name in case.tools[tool]})
