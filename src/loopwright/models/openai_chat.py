"""OpenAI's protocol by LangChain's client, with the arguments of calls read strictly.

By itself the client raises on arguments such as `[1]`, which would end the run, and completes what a stream left
unfinished: `{"amount": 25` would be a call for 25. Here either makes the call an invalid one, which the model reads
about and can correct.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, ToolCallChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai.types.chat import ChatCompletion
from typing_extensions import override


class OpenAIChat(ChatOpenAI):
    """`ChatOpenAI`, whose valid calls have arguments that the server sent as one whole JSON object."""

    @override
    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        if isinstance(response, ChatCompletion):
            for choice in response.choices or ():
                for call in choice.message.tool_calls or ():
                    if call.type == "function":
                        call.function.arguments = strict_arguments(call.function.arguments)
        return super()._create_chat_result(response, generation_info)  # pyright: ignore[reportUnknownMemberType]  # a bare `dict` in LangChain's signature

    @override
    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        held = _HeldCalls()
        for chunk in super()._stream(*args, **kwargs):
            yield held.take(chunk)
        yield from held.give()

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        held = _HeldCalls()
        async for chunk in super()._astream(*args, **kwargs):
            yield held.take(chunk)
        for chunk in held.give():
            yield chunk


class _HeldCalls:
    """Keeps a stream's pieces of calls back until they are whole; the text passes as it arrives."""

    def __init__(self) -> None:
        self._calls: dict[Any, ToolCallChunk] = {}

    def take(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Return the chunk without its pieces of calls."""
        message = cast("AIMessageChunk", chunk.message)
        if not message.tool_call_chunks:
            return chunk
        for piece in message.tool_call_chunks:
            self._add(piece)
        bare = message.model_copy(update={"tool_call_chunks": [], "tool_calls": [], "invalid_tool_calls": []})
        return ChatGenerationChunk(message=bare, generation_info=chunk.generation_info)

    def _add(self, piece: ToolCallChunk) -> None:
        before = self._calls.setdefault(piece["index"], tool_call_chunk(args="", index=piece["index"]))
        before["name"] = before["name"] or piece["name"]
        before["id"] = before["id"] or piece["id"]
        before["args"] = f"{before['args']}{piece['args'] or ''}"

    def give(self) -> Iterator[ChatGenerationChunk]:
        """Yield the whole calls, if there were any."""
        for call in self._calls.values():
            call["args"] = strict_arguments(call["args"])
        calls = [*self._calls.values()]
        if calls:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=calls))


def strict_arguments(given: object) -> str:
    """Return arguments as the text of a JSON object, or else in backticks, where no parser takes them for one.

    Nothing and `null` stand for no arguments; an object that was not encoded is taken as it is.

    >>> strict_arguments('{"order_id": "A100"}'), strict_arguments(""), strict_arguments("[1]")
    ('{"order_id": "A100"}', '{}', '`[1]`')
    """
    if isinstance(given, dict):
        return json.dumps(given)
    text = "" if given is None else str(given).strip()
    if text in {"", "null"}:
        return "{}"
    return text if _is_object(text) else f"`{text}`"


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text, strict=False, parse_constant=_refuse), dict)
    except (ValueError, RecursionError):
        return False


def _refuse(constant: str) -> None:
    """Refuse `NaN` and `Infinity`, which JSON does not have: a server could not read them back."""
    raise ValueError(constant)
