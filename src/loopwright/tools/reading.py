"""`read_result`: reads on in a result that was too long to be shown whole."""

from __future__ import annotations

from typing import Annotated

from langchain_core.messages import BaseMessage, ToolMessage
from langgraph.prebuilt import InjectedState

from loopwright.errors import NotDone

from .marks import unmark
from .shortening import READ_RESULT, ROOM_FOR_NOTICE, Caps, full_text, reader_id
from .tool import Tool, tool


def build_reader(caps: Caps, *, untrusted: bool) -> Tool:
    """Build the tool for one agent.

    Args:
        caps: A part is as long as a result may be.
        untrusted: Whether any of the agent's tools brings text of strangers: what is read again is still theirs.
    """
    part = caps.result - ROOM_FOR_NOTICE

    @tool(effect="read", untrusted=untrusted, name=READ_RESULT)
    def read_result(id: str, offset: int, messages: Annotated[list[BaseMessage], InjectedState("messages")]) -> str:  # noqa: A002 -- as the notice calls it
        """Read on in a tool result that was shortened. Its notice gives the id and the offset, in characters."""
        text = next((found for one in reversed(messages) if (found := _full(one, id)) is not None), None)
        if text is None:
            raise NotDone(f"no shortened result has the id {id!r}; take id and offset from a result's notice")
        if not 0 <= offset < len(text):
            raise NotDone(f"offset is {offset}; the result has characters 0 to {len(text) - 1}")
        end = min(offset + part, len(text))
        more = f"; offset={end} reads on" if end < len(text) else ", the end"
        return f"{text[offset:end]}\n… characters {offset} to {end} of {len(text)}{more}"

    return read_result


def _full(message: BaseMessage, wanted: str) -> str | None:
    """Return the whole text of the result that is meant; also of one that was shortened only when it had grown old."""
    if not isinstance(message, ToolMessage) or not message.id or reader_id(message.id) != wanted:
        return None
    full = full_text(message)
    return unmark(message.text) if full is None else full
