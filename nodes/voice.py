"""A model's reply while it arrives: each piece of text is handed on at once, and the whole is what counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing, closing
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.messages.tool import tool_call_chunk

from loopwright.models import strict_arguments


class HungUp(Exception):
    """Raised to end a stream that nobody waits for any more."""


class Voice:
    """Hands on what one attempt at a model says, until the attempt is over or given up."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """Take what is called with each piece of text."""
        self._say = say
        self._is_over = False

    def hang_up(self) -> None:
        """Hand nothing on any more; a stream that still comes is closed at its next piece."""
        self._is_over = True

    def hear(self, pieces: Iterator[BaseMessage]) -> BaseMessage:
        """Return the whole reply.

        Raises:
            HungUp: If nobody waits for it any more.
        """
        whole: BaseMessage | None = None
        with closing(cast("Any", pieces)) as stream:
            for piece in stream:
                whole = self._joined(whole, piece)
        return _whole(whole)

    async def ahear(self, pieces: AsyncIterator[BaseMessage]) -> BaseMessage:
        """Do the same, awaited; when it is cancelled, the connection is closed."""
        whole: BaseMessage | None = None
        async with aclosing(cast("Any", pieces)) as stream:
            async for piece in stream:
                whole = self._joined(whole, piece)
        return _whole(whole)

    def _joined(self, whole: BaseMessage | None, piece: BaseMessage) -> BaseMessage:
        if self._is_over:
            raise HungUp
        if text := piece.text:
            self._say(str(text))
        if isinstance(whole, AIMessageChunk) and isinstance(piece, AIMessageChunk):
            return whole + piece
        return piece


def _whole(message: BaseMessage | None) -> BaseMessage:
    """Return the reply as it would have come in one piece.

    Raises:
        ConnectionError: If nothing came.
    """
    if message is None:
        raise ConnectionError("the stream of the model's reply was empty")
    return message_chunk_to_message(_with_whole_calls(message)) if isinstance(message, AIMessageChunk) else message


def _with_whole_calls(message: AIMessageChunk) -> AIMessageChunk:
    """Take calls whose arguments broke off for unreadable: LangChain completes `{"amount": 25` to a call for 25."""
    chunks = [
        tool_call_chunk(name=piece["name"], args=_strict(piece["args"]), id=piece["id"], index=piece["index"])
        for piece in message.tool_call_chunks
    ]
    if [piece["args"] for piece in chunks] == [piece["args"] for piece in message.tool_call_chunks]:
        return message
    fields = {name: value for name, value in message if name not in _CALLS}
    return AIMessageChunk(**fields, tool_call_chunks=chunks)


_CALLS = ("type", "tool_calls", "invalid_tool_calls", "tool_call_chunks")


def _strict(args: str | None) -> str | None:
    """Return arguments as they are where they are none, or where our own clients have looked at them."""
    return args if not args or args.startswith("`") else strict_arguments(args)
