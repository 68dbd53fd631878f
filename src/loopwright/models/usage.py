"""How many tokens a model call took: what was reported, by whichever provider, or an estimate that says so."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool

from loopwright.state import Tokens

BYTES_A_TOKEN = 4
"""The usual rule of thumb for English text; used only where a provider reports nothing."""

MOST_TOKENS = 100_000_000
"""Of one call: no model takes or says so much, so that a larger figure is no report."""
BLOCK_TOKENS = 1_500
"""Of an image or a file in a message: as much as a large image takes."""
_COUNTED = (
    "text",
    "tool_use",
    "tool_call",
    "tool_call_chunk",
    "invalid_tool_call",
    "input_json_delta",
    "function_call",
)
_THOUGHTS = ("thinking", "reasoning", "refusal")
"""Fields of blocks that hold text."""

_INPUT = ("input_tokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "completion_tokens")
_INPUT_DETAILS = ("input_token_details", "prompt_tokens_details")
_OUTPUT_DETAILS = ("output_token_details", "output_tokens_details", "completion_tokens_details")
_CACHED = ("cache_read", "cached_tokens", "priority_cache_read", "flex_cache_read")
_REASONING = ("reasoning", "reasoning_tokens", "thinking_tokens", "priority_reasoning", "flex_reasoning")
_WRITTEN = ("cache_creation", "cache_write_tokens")
_WRITTEN_SHORT, _WRITTEN_HOUR = ("ephemeral_5m_input_tokens",), ("ephemeral_1h_input_tokens",)
"""The same by how long it is kept; LangChain's client for Anthropic then reports 0 for the whole."""
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Anthropic's own fields: its input count leaves out what was read from the cache, or written to it."""


def tokens_of(reply: BaseMessage, estimated_input: int) -> Tokens:
    """Return a reply's tokens; what the provider did not report is estimated, and marked so."""
    report = reported(reply)
    # Where a server of another protocol repeats Anthropic's fields, its own count has them in it.
    read, taken_in = (_count(report, name) for name in _BESIDE)
    beside = read + taken_in if _count(report, _INPUT[0]) else 0
    given_in, given_out = _first(report, _INPUT) + beside, _first(report, _OUTPUT)
    tokens_in = given_in if given_in > 0 else estimated_input
    tokens_out = given_out if given_out > 0 else size_of(reply)
    details = _details(report, _INPUT_DETAILS)
    cached = min(read or _first(details, _CACHED), tokens_in)
    written, written_hour = _written(taken_in, {**_details(report, ("cache_creation",)), **details})
    return Tokens(
        input=tokens_in,
        output=tokens_out,
        cached=cached,
        reasoning=min(_first(_details(report, _OUTPUT_DETAILS), _REASONING), tokens_out),
        written=min(written, tokens_in - cached),
        written_hour=min(written_hour, tokens_in - cached),
        estimated=given_in <= 0 or given_out <= 0,
    )


def _written(reported_whole: int, details: Mapping[str, Any]) -> tuple[int, int]:
    """Return what a provider took into its cache, and the part of it that it keeps for an hour."""
    hour = _first(details, _WRITTEN_HOUR)
    whole = max(reported_whole, _first(details, _WRITTEN), _first(details, _WRITTEN_SHORT) + hour)
    return whole, hour


def reported(reply: BaseMessage) -> Mapping[str, Any]:
    """Return what a reply reports of its usage: as LangChain writes it, else as the server did; empty for nothing."""
    metadata: Mapping[str, Any] = getattr(reply, "response_metadata", None) or {}
    for report in (getattr(reply, "usage_metadata", None), metadata.get("token_usage"), metadata.get("usage")):
        if isinstance(report, Mapping) and report:
            return cast("Mapping[str, Any]", report)
    return {}


def _first(report: Mapping[str, Any], names: Iterable[str]) -> int:
    return next((count for name in names if (count := _count(report, name))), 0)


def _count(report: Mapping[str, Any], name: str) -> int:
    """Return a count; 0 for none, and for what is none: a negative one would give tokens back."""
    value: object = report.get(name)
    return int(value) if isinstance(value, int | float) and 0 <= value <= MOST_TOKENS else 0


def _details(report: Mapping[str, Any], names: Iterable[str]) -> Mapping[str, Any]:
    found: object = next((report[name] for name in names if report.get(name)), None)
    return cast("Mapping[str, Any]", found) if isinstance(found, Mapping) else {}


def newest_usage(before: UsageMetadata | None, report: UsageMetadata | None) -> UsageMetadata | None:
    """Return what a stream has reported so far, of which each report is a total.

    Some servers report with each chunk what was used up to there, some once, some end with zeros: so the larger figure
    counts, and nothing is ever added up.
    """
    if before is None or report is None:
        return report or before
    merged = _larger(before, report)
    return cast("UsageMetadata", {**merged, "total_tokens": merged["input_tokens"] + merged["output_tokens"]})


def _larger(before: Mapping[str, Any], report: Mapping[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {**before, **report}
    for name in before.keys() & report.keys():
        old, new = before[name], report[name]
        merged[name] = _larger(old, new) if isinstance(old, Mapping) else max(old or 0, new or 0)  # pyright: ignore[reportUnknownArgumentType]  # JSON
    return merged


def estimate_input(messages: Sequence[AnyMessage], *, tools: int = 0) -> int:
    """Estimate the tokens of a transcript: the newest reported total, and the texts since then.

    Args:
        messages: What is sent.
        tools: The tokens of the tools' schemas, which a reported total has in it.
    """
    tokens = 0
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.usage_metadata and reported_input(message):
            return tokens + reported_input(message) + _count(message.usage_metadata, "output_tokens")
        tokens += size_of(message)
    return tokens + tools


def reported_input(message: BaseMessage) -> int:
    """Return the tokens that were sent for a reply, as its provider counted them; 0 where none did."""
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return _count(usage, "input_tokens") if usage else 0


def estimate_tools(tools: Sequence[BaseTool]) -> int:
    """Estimate the tokens of the tools' descriptions and schemas."""
    return sum(count_text(json.dumps(convert_to_openai_tool(tool), ensure_ascii=False)) for tool in tools)


def size_of(message: BaseMessage) -> int:
    """Estimate the tokens of one message from its letters; an image or a file counts as `BLOCK_TOKENS`."""
    asked = message.tool_calls if isinstance(message, AIMessage) else ()
    calls = sum(count_text(str(call["args"])) + count_text(call["name"]) for call in asked)
    text = message.content if isinstance(message.content, str) else message.text
    return count_text(text) + calls + _other_blocks(message) + 4


def _other_blocks(message: BaseMessage) -> int:
    """Estimate what stands beside the text, and beside the calls, which are counted already."""
    blocks = message.content if isinstance(message.content, list) else []
    return sum(_block(block) for block in blocks if isinstance(block, dict) and block.get("type") not in _COUNTED)


def _block(block: Mapping[str, Any]) -> int:
    thought = next((value for name in _THOUGHTS if isinstance(value := block.get(name), str)), None)
    return BLOCK_TOKENS if thought is None else count_text(thought)


def count_text(text: str) -> int:
    """Estimate by bytes: a letter that is no Latin one is a token of its own more often."""
    size = len(text) if text.isascii() else len(text.encode(errors="replace"))
    return -(-size // BYTES_A_TOKEN)
