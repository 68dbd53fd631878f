"""What a model's reply means: the message that is kept, the decision, and the tokens. Pure functions."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, ToolCall

from loopwright.state import (
    CallTools,
    Decision,
    FinalAnswer,
    Malformed,
    Refused,
    RequestedCall,
    Tokens,
    digest,
    excerpt,
    storable,
)

CHARACTERS_A_TOKEN = 4
"""The usual rule of thumb for English text; used only where a provider reports nothing."""
UNKNOWN_OUTPUT = 1024
"""Output tokens that an attempt counts for when its process died before the reply came."""

_CUT = ("length", "max_tokens", "MAX_TOKENS")
_FILTERED = ("content_filter", "refusal", "SAFETY")


def read_reply(reply: BaseMessage, place: str, taken: Container[str | None] = ()) -> tuple[AIMessage | None, Decision]:
    """Turn a reply into the message to keep (None: nothing worth sending again) and the decision.

    Args:
        reply: What the model sent.
        place: Names the step, so that a call without an id gets the same one when the step is repeated.
        taken: The ids of the transcript's messages. Some servers give every reply the same one.
    """
    message = AIMessage(content=reply.content) if not isinstance(reply, AIMessage) else reply
    if message.id in taken:
        message = message.model_copy(update={"id": None})
    if message.text != storable(message.text):
        message = message.model_copy(update={"content": storable(message.text)})
    text = message.text.strip()
    finish = _finish(message)
    if (refusal := _refusal(message)) or finish in _FILTERED:
        said = refusal or text or "The model's provider filtered the reply."
        return _without_calls(message, said, place), Refused(said)
    if finish in _CUT:
        return (_without_calls(message, text, place) if text else None), Malformed("truncated", text)
    calls = _calls(message, place)
    if calls:
        return _with_calls(message, calls, place), CallTools(calls, text)
    if not text:
        return None, Malformed("empty")
    return _named(message, place), FinalAnswer(text)


def _finish(message: AIMessage) -> str:
    metadata: dict[str, Any] = message.response_metadata
    return str(metadata.get("finish_reason") or metadata.get("stop_reason") or "")


def _refusal(message: AIMessage) -> str:
    said = message.additional_kwargs.get("refusal")
    if not said and isinstance(message.content, list):
        blocks = [block for block in message.content if isinstance(block, dict) and block.get("type") == "refusal"]
        said = " ".join(str(block.get("refusal", "")) for block in blocks)
    return str(said or "").strip()


def _calls(message: AIMessage, place: str) -> tuple[RequestedCall, ...]:
    """Return all calls, readable or not, each with an id of its own."""
    taken: set[str] = set()
    calls: list[RequestedCall] = []
    for call in message.tool_calls:
        own_id, why = _own_id(call.get("id"), taken, place), _unstorable(call["args"])
        calls.append(RequestedCall(own_id, call["name"], {} if why else call["args"], why))
    for bad in message.invalid_tool_calls:
        why = f"the arguments are no JSON object: {excerpt(str(bad.get('args')))}"
        calls.append(RequestedCall(_own_id(bad.get("id"), taken, place), bad.get("name") or "", {}, why))
    return tuple(calls)


def _unstorable(args: Mapping[str, Any]) -> str:
    """Say why arguments could not be stored, or sent again; empty when they can."""
    try:
        text = json.dumps(args, ensure_ascii=False, allow_nan=False)
        text.encode()
        json.loads(text, parse_int=_int64)
    except (TypeError, ValueError, RecursionError) as error:
        return f"the arguments cannot be stored: {excerpt(str(error))}"
    return ""


def _int64(digits: str) -> int:
    number = int(digits)
    if not -(2**63) <= number < 2**64:
        raise ValueError(f"{excerpt(digits, 40)} has more than 64 bits; send it as text")
    return number


def _own_id(given: str | None, taken: set[str], place: str) -> str:
    own = given if given and given not in taken else f"call_{digest(place, len(taken))[:24]}"
    taken.add(own)
    return own


def _named(message: AIMessage, place: str) -> AIMessage:
    return message if message.id else message.model_copy(update={"id": f"ai-{digest(place)[:24]}"})


def _with_calls(message: AIMessage, calls: tuple[RequestedCall, ...], place: str) -> AIMessage:
    """Keep the message with calls whose arguments every server can read back."""
    is_readable = not any(call.error for call in calls)
    if is_readable and [call["id"] for call in message.tool_calls] == [call.id for call in calls]:
        return _named(message, place)
    sent = [ToolCall(name=call.name or "unknown", args=call.args, id=call.id, type="tool_call") for call in calls]
    return AIMessage(
        content=message.text,
        tool_calls=sent,
        id=_named(message, place).id,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
    )


def _without_calls(message: AIMessage, text: str, place: str) -> AIMessage:
    return AIMessage(
        content=text,
        id=_named(message, place).id,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
    )


def tokens_of(reply: BaseMessage, estimated_input: int) -> Tokens:
    """Return a reply's tokens; what the provider did not report is estimated, and marked so."""
    usage: dict[str, Any] = dict(getattr(reply, "usage_metadata", None) or {})
    given_in, given_out = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
    estimated = given_in <= 0 or given_out <= 0
    tokens_in = given_in if given_in > 0 else estimated_input
    tokens_out = given_out if given_out > 0 else _size(reply)
    return Tokens(
        input=tokens_in,
        output=tokens_out,
        cached=_part(usage, "input_token_details", "cache_read", tokens_in),
        reasoning=_part(usage, "output_token_details", "reasoning", tokens_out),
        estimated=estimated,
    )


def _part(usage: dict[str, Any], group: str, name: str, whole: int) -> int:
    """Return a part of the input or output; never more than the whole, or a call could have a negative cost."""
    details: dict[str, Any] = usage.get(group) or {}
    return min(max(0, int(details.get(name) or 0)), whole)


def estimate_input(messages: Sequence[AnyMessage]) -> int:
    """Estimate the tokens of a transcript: the newest reported total, and the texts since then."""
    tokens = 0
    for message in reversed(messages):
        if isinstance(message, AIMessage) and message.usage_metadata and message.usage_metadata["input_tokens"] > 0:
            return tokens + message.usage_metadata["total_tokens"]
        tokens += _size(message)
    return tokens


def _size(message: BaseMessage) -> int:
    calls = sum(len(str(call["args"])) + len(call["name"]) for call in getattr(message, "tool_calls", ()))
    return (len(message.text) + calls) // CHARACTERS_A_TOKEN + 4
