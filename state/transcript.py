"""The reducers of the two long channels: left folds over single items, so that batching cannot matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

NUDGE = "nudge-"
"""Begins the ids of messages that the guard writes in the user's place; they are no tasks."""
REMOVE_ALL = "__remove_all__"
"""LangGraph's id for "drop the whole transcript", as in its `add_messages`."""


def fold_messages(current: list[AnyMessage] | None, writes: Sequence[Any]) -> list[AnyMessage]:
    """Fold writes into the transcript.

    Takes what LangGraph's `add_messages` takes (messages, tuples, strings, dicts, lists of them, `RemoveMessage`). A
    message with an id that is there replaces it; a tool message goes right behind its call, even when the user spoke
    meanwhile; a message without an id is named by its position, so that a re-run writes the same id.
    """
    out: list[Any] = list(current or ())
    known = {message.id for message in out}
    for message in _messages(writes):
        _fold(out, known, message)
    return out


_USUAL = frozenset({AIMessage, HumanMessage, SystemMessage, ToolMessage})
"""Told by their very type: asking LangChain's abstract classes is most of the work of putting a thread together."""


def _messages(writes: Sequence[Any]) -> Iterable[BaseMessage]:
    for write in writes:
        several = cast("list[Any]", write) if isinstance(write, list) else [write]  # type: ignore[redundant-cast]  # pyright needs it
        for one in several:
            if type(one) in _USUAL or isinstance(one, BaseMessage):
                yield one
            else:
                yield from convert_to_messages([one])


def _fold(out: list[Any], known: set[str | None], message: BaseMessage) -> None:
    kind = type(message)
    if kind not in _USUAL and isinstance(message, RemoveMessage):
        out[:] = [] if message.id == REMOVE_ALL else [kept for kept in out if kept.id != message.id]
        known.intersection_update([kept.id for kept in out])
        return
    name = message.id
    if not name:
        name = _free_id(len(out), known)
        message = message.model_copy(update={"id": name})
    if name in known:
        out[:] = [message if kept.id == name else kept for kept in out]
        return
    known.add(name)
    if isinstance(message, ToolMessage):
        out.insert(_place(out, message.tool_call_id), message)
    else:
        out.append(message)


def _free_id(position: int, known: set[str | None]) -> str:
    """Name a message by its position; after removals that name can be taken."""
    while f"m{position}" in known:
        position += 1
    return f"m{position}"


def _place(out: list[Any], call_id: str) -> int:
    """Find where a result belongs: behind its call and the results that are there already, or at the end."""
    for index in range(len(out) - 1, -1, -1):
        if calls_tool(out[index], call_id):
            place = index + 1
            while place < len(out) and isinstance(out[place], ToolMessage):
                place += 1
            return place
    return len(out)


def calls_tool(message: object, call_id: str) -> bool:
    """Tell whether this message asks for that call."""
    return isinstance(message, AIMessage) and call_id in [call["id"] for call in message.tool_calls]


def fold_trail(current: list[Any] | None, writes: Sequence[Any]) -> list[Any]:
    """Append the entries of each write."""
    out = list(current or ())
    for write in writes:
        out.extend(write)
    return out


FORGET = "forget"
"""Written into the `taint` channel, it empties it: nothing of what came before is in the context any more."""


def fold_taint(current: list[Any] | None, writes: Sequence[Any]) -> list[Any]:
    """Append the sources of each write; `FORGET` among them begins anew."""
    out = list(current or ())
    for write in writes:
        for source in write:
            if source == FORGET:
                out.clear()
            else:
                out.append(source)
    return out


def last_text(messages: Sequence[AnyMessage]) -> str:
    """Return the newest text that the model wrote since the last task: the best answer so far."""
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.text.strip():
            return message.text.strip()
        if message.type == "human" and not str(message.id).startswith(NUDGE):
            break
    return ""
