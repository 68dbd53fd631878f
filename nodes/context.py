"""What the transcript says about where words come from: the user's own, what tools returned, what strangers wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from loopwright.policy import Observed
from loopwright.state import NUDGE, AgentState, Call, TaintSource, digest, excerpt
from loopwright.tools import Contract, full_text, mark_untrusted, unmark

ORIGIN_CHARACTERS = 100
PASSAGE_CHARACTERS = 200


def is_users(message: AnyMessage) -> bool:
    """Tell whether the user wrote a message."""
    return isinstance(message, HumanMessage) and not str(message.id).startswith(NUDGE)


def said_by_user(messages: Sequence[AnyMessage]) -> tuple[str, ...]:
    """Return what the user wrote on the thread, oldest first."""
    return tuple(message.text for message in messages if is_users(message))


def told_before(messages: Sequence[AnyMessage]) -> str:
    """Return what the agent told the user last, before the user's newest message; empty when that was the first."""
    newest = max((place for place, message in enumerate(messages) if is_users(message)), default=0)
    last = messages[newest - 1] if newest else None
    return last.text if isinstance(last, AIMessage) and not last.tool_calls else ""


def observed_in(messages: Sequence[AnyMessage]) -> tuple[Observed, ...]:
    """Return what tools returned on the thread, without marks; calls that never ran returned nothing."""
    return tuple(
        Observed(str(message.id), message.name or "", full_text(message) or unmark(message.text))
        for message in messages
        if isinstance(message, ToolMessage) and message.status == "success"
    )


@dataclass(frozen=True, slots=True)
class Fence:
    """Marks the text by strangers that one call brought."""

    tool: str
    place: str
    """Run, step and place in the turn: the same in each try of a step."""

    def around(self, text: str) -> str:
        """Return the text between marks, with a boundary that depends on the place and on all of the text."""
        return mark_untrusted(text, self.tool, digest("fence", self.place, text)[:16])


def source_of(call: Call, message: ToolMessage, text: str, run_id: str, step: int) -> TaintSource:
    """Return the record of a text by strangers that comes into the context."""
    return TaintSource(
        run=run_id,
        step=step,
        tool=call["name"],
        call=call["id"],
        message=str(message.id),
        origin=_origin(call["args"]),
        passage=excerpt(text, PASSAGE_CHARACTERS),
    )


def taint_of(state: AgentState, tools: Mapping[str, Contract]) -> list[TaintSource]:
    """Return the sources that are in the context: the recorded ones, and what came without a record.

    Without one are the results in a history that the caller brought, and on a thread that an earlier release wrote.
    """
    recorded = state.get("taint") or []
    return [*recorded, *unrecorded(state["messages"], recorded, tools)]


def unrecorded(
    messages: Sequence[AnyMessage], recorded: Sequence[TaintSource], tools: Mapping[str, Contract]
) -> list[TaintSource]:
    """Return a source for each result of an untrusted tool that has no record.

    A tool that the agent does not have counts as one: nobody says whose words its results are. A history from elsewhere
    often names the tool with the call alone.
    """
    if not any(contract.untrusted for contract in tools.values()):
        return []
    known = {source["message"] for source in recorded}
    asked: dict[str, ToolCall] = {}
    strays: list[TaintSource] = []
    for message in messages:
        if isinstance(message, AIMessage):
            asked.update((str(call["id"]), call) for call in message.tool_calls)
        elif isinstance(message, ToolMessage) and str(message.id) not in known:
            source = _stray_source(message, asked.get(message.tool_call_id))
            contract = tools.get(source["tool"])
            was_run = message.additional_kwargs.get("executed") is not False
            strays += [source] if was_run and (contract is None or contract.untrusted) else []
    return strays


def _stray_source(message: ToolMessage, call: ToolCall | None) -> TaintSource:
    return TaintSource(
        run="",
        step=0,
        tool=message.name or (call["name"] if call is not None else ""),
        call=message.tool_call_id,
        message=str(message.id),
        origin=_origin(call["args"] if call is not None else {}),
        passage=excerpt(unmark(message.text), PASSAGE_CHARACTERS),
    )


def _origin(args: Mapping[str, Any]) -> str:
    return excerpt(", ".join(f"{name}={value!r}" for name, value in args.items()), ORIGIN_CHARACTERS)
