"""Whether a transcript is one that every provider takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage


def check_transcript(messages: Sequence[BaseMessage], /) -> None:
    """Fail if a provider would refuse the transcript.

    Each call has its result right behind the message that asked for it, exactly once and in order; the ids of a
    message's calls differ; message ids differ; no call was left unread; no content is null, no reply is empty.

    Raises:
        AssertionError: Naming the first message that is wrong, by its place from 0.
    """
    ids = [message.id for message in messages]
    _require(len(ids) == len(set(ids)), f"message ids repeat: {ids}")
    place = 0
    while place < len(messages):
        message = messages[place]
        _check_message(message, f"message {place} ({message.type})")
        place += 1
        if isinstance(message, AIMessage):
            asked = [call["id"] for call in message.tool_calls]
            answered = _answers(messages[place:])
            _require(answered == asked, f"message {place - 1} asks for {asked}; behind it come the results {answered}")
            place += len(answered)


def _check_message(message: BaseMessage, where: str) -> None:
    """Look at one message by itself."""
    _require(cast("object", message.content) is not None, f"{where} has no content")
    _require(not isinstance(message, ToolMessage), f"{where} is a result without a call before it")
    if isinstance(message, AIMessage):
        asked = [call["id"] for call in message.tool_calls]
        _require(all(asked), f"{where} holds a call without an id")
        _require(len(asked) == len(set(asked)), f"{where} uses an id twice: {asked}")
        _require(not message.invalid_tool_calls, f"{where} holds calls that no server can read back")
        _require(bool(message.text.strip() or asked), f"{where} is empty")


def _answers(messages: Sequence[BaseMessage]) -> list[str | None]:
    """Return the ids that the results at the beginning answer."""
    found: list[str | None] = []
    for message in messages:
        if not isinstance(message, ToolMessage):
            break
        _require(bool(message.content), f"the result for {message.tool_call_id} is empty")
        found.append(message.tool_call_id)
    return found


def _require(holds: bool, text: str) -> None:  # noqa: FBT001 -- reads as an assertion
    if not holds:
        raise AssertionError(text)
