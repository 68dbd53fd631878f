"""What the tools brought back, read from the transcript alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from loopwright.state import NUDGE

_ERROR = "ERROR:"
_HELD = ("rejected", "denied", "not run")


@dataclass(frozen=True, slots=True)
class Observation:
    """One call of ours with what came of it."""

    tool: str
    args: Mapping[str, Any]
    text: str
    """What it brought, without the mark of an error."""
    facts: Mapping[str, Any]
    """The first JSON object in the text; empty where the text is a refusal or plain words."""
    is_held: bool
    """Whether the call was kept from running: rejected, denied, or not run."""
    is_failed: bool
    """Whether the tool reports an error."""


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """An order as `lookup_order` shows it."""

    code: str
    status: str
    total: int
    refunded: int
    ordered: str
    delivered: date | None

    @property
    def left(self) -> int:
        """What can still be paid back."""
        return self.total - self.refunded


@dataclass(frozen=True, slots=True)
class PolicyFacts:
    """The rule as `refund_policy` shows it."""

    within_days: int
    status: str


@dataclass(frozen=True, slots=True)
class PaidFacts:
    """A refund as `issue_refund` reports it."""

    code: str
    amount: int
    account: str
    receipt: str


def split_task(messages: Sequence[BaseMessage]) -> tuple[list[str], list[BaseMessage]]:
    """Return all that the user said so far, and what came after the newest of it."""
    said = [place for place, message in enumerate(messages) if _is_said(message)]
    if not said:
        return [""], list(messages)
    return [messages[place].text for place in said], list(messages[said[-1] + 1 :])


def _is_said(message: BaseMessage) -> bool:
    """Tell whether the user said it: the guard's own words are in the user's place too."""
    return isinstance(message, HumanMessage) and not str(message.id).startswith(NUDGE)


def read_observations(messages: Sequence[BaseMessage]) -> list[Observation]:
    """Pair each tool message with the call that it answers."""
    calls: dict[str | None, tuple[str, Mapping[str, Any]]] = {}
    found: list[Observation] = []
    for message in messages:
        if isinstance(message, AIMessage):
            calls |= {call["id"]: (call["name"], call["args"]) for call in message.tool_calls}
        if isinstance(message, ToolMessage) and message.tool_call_id in calls:
            found.append(_observe(*calls[message.tool_call_id], message))
    return found


def _observe(tool: str, args: Mapping[str, Any], message: ToolMessage) -> Observation:
    marked = message.text.strip()
    text = marked.removeprefix(_ERROR).strip()
    is_held = message.additional_kwargs.get("executed") is False or text.casefold().startswith(_HELD)
    is_failed = not is_held and (marked.startswith(_ERROR) or message.status == "error")
    facts = _first_object("" if is_held or is_failed else text)
    return Observation(tool, args, text, facts, is_held, is_failed)


def _first_object(text: str) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    if (start := text.find("{")) >= 0:
        with suppress(ValueError, RecursionError):
            found = json.JSONDecoder().raw_decode(text, start)[0]
    return found


def is_unknown_order(facts: Mapping[str, Any]) -> bool:
    """Tell whether the shop says that it has no such order."""
    return facts.get("found") is False


def read_order(facts: Mapping[str, Any]) -> OrderFacts | None:
    """Read an order; None when the facts are not those of one."""
    match facts:
        case {"order_id": str(code), "status": str(status), "total": int(total)}:
            refunded = facts.get("refunded")
            paid = refunded if isinstance(refunded, int) else 0
            ordered = str(facts.get("ordered_at") or "?")
            return OrderFacts(code, status, total, paid, ordered, _as_date(facts.get("delivered_at")))
        case _:
            return None


def read_policy(facts: Mapping[str, Any]) -> PolicyFacts | None:
    """Read the policy; None when the facts are not those of one."""
    match facts:
        case {"within_days": int(days), "status": str(status)}:
            return PolicyFacts(days, status)
        case _:
            return None


def read_paid(facts: Mapping[str, Any]) -> PaidFacts | None:
    """Read a refund that was paid; None when the facts do not say that one was."""
    match facts:
        case {"refunded": int(amount), "order_id": str(code), "receipt": str(receipt)}:
            return PaidFacts(code, amount, str(facts.get("account") or ""), receipt)
        case _:
            return None


def _as_date(value: object) -> date | None:
    try:
        return date.fromisoformat(str(value)[:10])
    except ValueError:
        return None
