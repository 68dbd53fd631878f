"""Anthropic's protocol by LangChain's client, with calls and usage read as strictly as OpenAI's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from langchain_anthropic import ChatAnthropic
from langchain_anthropic.chat_models import _create_usage_metadata  # pyright: ignore[reportPrivateUsage]
from langchain_core.messages import AIMessageChunk, InvalidToolCall
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from typing_extensions import override

from .strict import HeldStream


class AnthropicChat(ChatAnthropic):
    """`ChatAnthropic`, whose valid calls have an input that the server sent as one whole JSON object."""

    @override
    def _format_output(self, data: Any, **kwargs: Any) -> ChatResult:
        bad = [block for block in data.content if block.type == "tool_use" and not isinstance(block.input, dict)]
        good = [_named(block) for block in data.content if block not in bad and not _is_blank(block)]
        result = super()._format_output(data.model_copy(update={"content": good}), **kwargs)
        message: Any = result.generations[0].message
        message.invalid_tool_calls.extend(_unread(block) for block in bad)
        return result

    @override
    def _make_message_chunk_from_anthropic_event(self, event: Any, **kwargs: Any) -> tuple[AIMessageChunk | None, Any]:
        chunk, block = super()._make_message_chunk_from_anthropic_event(event, **kwargs)
        if chunk is not None and event.type == "message_start":
            # The client waits for the last event; some servers report the input in this one alone.
            chunk.usage_metadata = _create_usage_metadata(event.message.usage)
        return chunk, block

    @override
    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        held = HeldStream()
        for chunk in super()._stream(*args, **kwargs):
            yield held.take(chunk)
        yield from held.give()

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        held = HeldStream()
        async for chunk in super()._astream(*args, **kwargs):
            yield held.take(chunk)
        for chunk in held.give():
            yield chunk


def _named(block: Any) -> Any:
    """Return a block whose name is a text: without one the client would take the whole reply for none."""
    is_nameless = block.type == "tool_use" and not isinstance(block.name, str)
    return block.model_copy(update={"name": ""}) if is_nameless else block


def _is_blank(block: Any) -> bool:
    """Tell whether a block of text has none: the client would take `null` for the reply's content."""
    return block.type == "text" and not isinstance(block.text, str)


def _unread(block: Any) -> InvalidToolCall:
    given = json.dumps(block.input, ensure_ascii=False, default=str)
    return InvalidToolCall(name=block.name, args=given, id=block.id, error=None, type="invalid_tool_call")
