"""Calls and usage as a server sent them: whole or not at all, whether it streams or not."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.messages import AIMessageChunk, ToolCallChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGenerationChunk

from .usage import newest_usage

_BARE: dict[str, Any] = {"tool_call_chunks": [], "tool_calls": [], "invalid_tool_calls": [], "usage_metadata": None}


class HeldStream:
    """Keeps a stream's pieces of calls, and its reports of usage, back to the end; the text passes as it arrives.

    Clients complete what a stream left unfinished (`{"amount": 25` would be a call for 25), and add up reports of
    which each is a total.
    """

    def __init__(self) -> None:
        self._calls: list[ToolCallChunk] = []
        self._usage: UsageMetadata | None = None
        self._is_over = False

    def take(self, chunk: ChatGenerationChunk) -> ChatGenerationChunk:
        """Return the chunk without what is kept back."""
        message = cast("AIMessageChunk", chunk.message)
        self._is_over = self._is_over or _ends(chunk)
        if not message.tool_call_chunks and message.usage_metadata is None:
            return chunk
        self._usage = newest_usage(self._usage, message.usage_metadata)
        for piece in message.tool_call_chunks:
            self._add(piece)
        return ChatGenerationChunk(message=message.model_copy(update=_BARE), generation_info=chunk.generation_info)

    def _add(self, piece: ToolCallChunk) -> None:
        """Add a piece to its call: the newest with its index, unless it can only begin another one."""
        same = [call for call in self._calls if call["index"] == piece["index"]]
        if not same or _begins(piece, same[-1]):
            same = [tool_call_chunk(args="", index=piece["index"])]
            self._calls.append(same[0])
        before = same[-1]
        before["name"] = before["name"] or piece["name"]
        before["id"] = before["id"] or piece["id"]
        before["args"] = f"{before['args']}{piece['args'] or ''}"

    def give(self) -> Iterator[ChatGenerationChunk]:
        """Yield the whole calls and the usage, if there were any.

        Raises:
            ConnectionError: If the stream broke off before it said why it ends: what came is no reply.
        """
        if not self._is_over:
            raise ConnectionError("the stream of the model's reply broke off before its end")
        for index, call in enumerate(self._calls):
            call["args"] = strict_arguments(call["args"])
            call["index"] = index
        if self._calls or self._usage is not None:
            message = AIMessageChunk(content="", tool_call_chunks=self._calls, usage_metadata=self._usage)
            yield ChatGenerationChunk(message=message)


def _ends(chunk: ChatGenerationChunk) -> bool:
    """Tell whether a chunk says why the reply ends."""
    said = {**chunk.message.response_metadata, **(chunk.generation_info or {})}
    return any(said.get(name) for name in ("finish_reason", "stop_reason", "status"))


def _begins(piece: ToolCallChunk, before: ToolCallChunk) -> bool:
    """Tell whether a piece begins another call: some servers give all calls one index, or none."""
    is_other = bool(piece["id"] and before["id"] and piece["id"] != before["id"])
    return is_other or bool(piece["name"] and not piece["id"] and _is_object(before["args"] or ""))


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
        return isinstance(json.loads(text, strict=False, parse_constant=refuse_constant), dict)
    except (ValueError, RecursionError):
        return False


def refuse_constant(constant: str) -> None:
    """Refuse `NaN` and `Infinity`, which JSON does not have: a server could not read them back.

    Raises:
        ValueError: Always.
    """
    raise ValueError(constant)
