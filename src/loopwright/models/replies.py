"""What a model's reply means: the message that is kept, and the decision. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, InvalidToolCall, ToolCall

from loopwright.state import (
    CallTools,
    Decision,
    FinalAnswer,
    Malformed,
    Refused,
    RequestedCall,
    digest,
    excerpt,
    is_too_deep,
    storable,
    storable_data,
)

MALFORMED = "malformed"
"""In a message's `response_metadata`: what was wrong with a reply that held no decision, for the model to read."""
NAMELESS = "unknown"
"""Stands for the name of a call that has none."""

_CUT = ("length", "max_tokens", "max_output_tokens", "model_length", "model_context_window_exceeded", "pause_turn")
_FILTERED = (
    *("content_filter", "content_filtered", "guardrail_intervened", "refusal", "safety", "image_safety"),
    *("blocklist", "prohibited_content", "recitation", "sensitive", "spii"),
)
_BROKEN = ("abort", "aborted", "cancelled", "error", "insufficient_system_resource", "network_error")
"""The provider failed in the midst of it, and says so where it would say that it ended."""
_UNREADABLE = ("malformed_function_call", "unexpected_tool_call", "malformed_tool_call")
_FINISH = ("finish_reason", "stop_reason", "done_reason", "stopReason")
_CALL_BLOCKS = ("tool_use", "tool_call", "tool_call_chunk", "invalid_tool_call", "input_json_delta", "function_call")
_RAW_CALLS = ("tool_calls", "function_call", "refusal")
"""Of `additional_kwargs`: clients send them again beside what we keep, or in its place."""
_HEADERS = "headers"
"""Of `response_metadata`: cookies are among them, which are not to be stored."""
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]{1,40}")
"""What each provider takes as an id: OpenAI bounds its length, Anthropic its characters."""


def read_reply(reply: BaseMessage, place: str, taken: Container[str | None] = ()) -> tuple[AIMessage | None, Decision]:
    """Turn a reply into the message to keep (None: nothing worth sending again) and the decision.

    Args:
        reply: What the model sent.
        place: Names the step, so that a call without an id gets the same one when the step is repeated.
        taken: The ids of the transcript, by `ids_of`. Some servers give every reply, or every call, the same one.
    """
    message = _cleaned(reply, taken)
    text = message.text.strip()
    finish = _finish(message)
    if (refusal := refusal_of(message)) or finish in _FILTERED:
        said = refusal or text or "The model's provider filtered the reply."
        return _without_calls(message, said, place), Refused(said)
    if finish in _CUT:
        return (_without_calls(message, text, place) if text else None), Malformed("truncated", text)
    wrong = str(message.response_metadata.get(MALFORMED) or "")
    if finish in _UNREADABLE:
        wrong = wrong or "the call could not be read; name a tool, and give its arguments as a JSON object"
    if wrong:
        return (_without_calls(message, text, place) if text else None), Malformed("unreadable", text, wrong)
    calls = _calls(message, place, taken)
    if calls:
        return _with_calls(message, calls, place), CallTools(calls, text)
    if not text:
        return None, Malformed("empty")
    answered = message.model_copy(update={"content": _content_without_calls(message)})
    return _named(answered, place), FinalAnswer(text)


def ids_of(messages: Sequence[AnyMessage]) -> set[str | None]:
    """Return the ids that a transcript uses, of messages and of calls."""
    found = {message.id for message in messages}
    # By the name of its type: asking LangChain's abstract classes would be most of a long transcript's work here.
    replies = [cast("AIMessage", message) for message in messages if message.type in _REPLIES]
    found.update(call["id"] for reply in replies for call in reply.tool_calls)
    return found


_REPLIES = ("ai", "AIMessageChunk")


def _cleaned(reply: BaseMessage, taken: Container[str | None]) -> AIMessage:
    """Return the reply as a message that can be stored, and sent to any provider."""
    message = reply if isinstance(reply, AIMessage) else AIMessage(content=reply.content)
    changes: dict[str, Any] = {}
    if message.id in taken:
        changes["id"] = None
    if message.content != (content := _storable(message.content)):
        changes["content"] = content
    elif message.text and not message.text.strip():
        changes["content"] = _without_blanks(message)
    if message.name:
        changes["name"] = None
    for field, left_out in (("additional_kwargs", _RAW_CALLS[:2]), ("response_metadata", (_HEADERS,))):
        given: dict[str, Any] = getattr(message, field)
        kept = {name: value for name, value in given.items() if name not in left_out and not is_too_deep(value)}
        if len(kept) < len(given):
            changes[field] = kept
    return message.model_copy(update=changes) if changes else message


def _storable(content: Any) -> Any:
    """Return a content whose texts every store takes, without blocks that none does: a call in one stands beside it."""
    if isinstance(content, str):
        return storable(content)
    return storable_data([block for block in cast("list[Any]", content) if not is_too_deep(block)])


def is_whole(message: AIMessage) -> bool:
    """Tell whether a reply is all that the model wanted to say: neither cut nor filtered."""
    return _finish(message) not in (*_CUT, *_FILTERED, *_BROKEN) and not refusal_of(message)


def why_broken(reply: BaseMessage) -> str:
    """Say why a reply is none: its provider failed in the midst of it; empty for any other."""
    finish = _finish(reply) if isinstance(reply, AIMessage) else ""
    return f"the reply broke off: its provider says that it ended by {finish!r}" if finish in _BROKEN else ""


def _without_blanks(message: AIMessage) -> Any:
    """Return the content without its text, which is blank: Anthropic refuses it, also beside a call."""
    parts = message.content if isinstance(message.content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") != "text"] or ""


def _finish(message: AIMessage) -> str:
    """Return why the reply ended, in small letters; empty where the provider does not say."""
    metadata: dict[str, Any] = message.response_metadata
    details: object = metadata.get("incomplete_details")  # OpenAI's Responses API says it there alone
    if isinstance(details, Mapping):
        return str(cast("Mapping[str, Any]", details).get("reason") or _CUT[0]).lower()
    return next((str(metadata[name]).lower() for name in _FINISH if metadata.get(name)), "")


def refusal_of(message: AIMessage) -> str:
    """Return what a model says in refusing; empty when it does not refuse."""
    said = message.additional_kwargs.get("refusal")
    if not said and isinstance(message.content, list):
        blocks = [block for block in message.content if isinstance(block, dict) and block.get("type") == "refusal"]
        said = " ".join(str(block.get("refusal", "")) for block in blocks)
    return storable(str(said or "")).strip()


def _calls(message: AIMessage, place: str, taken: Container[str | None]) -> tuple[RequestedCall, ...]:
    """Return all calls, readable or not, each with an id of its own and a name that every provider takes."""
    ids: set[str] = set()

    def requested(call: ToolCall | InvalidToolCall, args: dict[str, Any], why: str) -> RequestedCall:
        name, call_id = call.get("name") or "", _own_id(call.get("id"), ids, taken, place)
        if not _NAME.fullmatch(name):
            why = why or f"there is no tool {excerpt(storable(name), 80)!r}: a name is of letters, digits, '_' and '-'"
        return RequestedCall(call_id, _legal(name), {} if why else args, why)

    read = [requested(call, call["args"], why_unstorable(call["args"])) for call in message.tool_calls]
    unread = [requested(bad, {}, _unread(bad)) for bad in message.invalid_tool_calls]
    return (*read, *unread)


def _unread(call: InvalidToolCall) -> str:
    return f"the arguments are no JSON object: {excerpt(storable(str(call.get('args'))))}"


def _legal(name: str) -> str:
    """Return a name that can be sent again; of a call with another one it is never run, so it may hit a real tool."""
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or NAMELESS


def why_unstorable(args: object) -> str:
    """Say why arguments could not be stored, or sent again; empty when they can."""
    if not isinstance(args, dict):
        return "the arguments are no JSON object"
    if is_too_deep(args):
        return "the arguments are nested too deep"
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


def _own_id(given: str | None, ids: set[str], taken: Container[str | None], place: str) -> str:
    """Return the given id if it can stay, else one that is the same when the step is repeated."""
    is_free = bool(given) and given not in ids and given not in taken and _ID.fullmatch(given or "") is not None
    own = given if given and is_free else f"call_{digest(place, len(ids))[:24]}"
    ids.add(own)
    return own


def _named(message: AIMessage, place: str) -> AIMessage:
    return message if message.id else message.model_copy(update={"id": f"ai-{digest(place)[:24]}"})


def _with_calls(message: AIMessage, calls: tuple[RequestedCall, ...], place: str) -> AIMessage:
    """Keep the message with calls whose arguments every server can read back."""
    same = [(call["id"], call["name"]) for call in message.tool_calls] == [(call.id, call.name) for call in calls]
    own = {block.get("id") for block in _call_blocks(message)} - {None}
    if same and not any(call.error for call in calls) and own <= {call.id for call in calls}:
        return _named(message, place)
    sent = [ToolCall(name=call.name, args=call.args, id=call.id, type="tool_call") for call in calls]
    kept = {name: value for name, value in message.additional_kwargs.items() if name not in _RAW_CALLS}
    return AIMessage(
        content=_content_without_calls(message),
        additional_kwargs=kept,  # such as signatures, which some providers want back
        tool_calls=sent,
        id=_named(message, place).id,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
    )


def _call_blocks(message: AIMessage) -> list[dict[str, Any]]:
    parts = message.content if isinstance(message.content, list) else []
    return [part for part in parts if isinstance(part, dict) and part.get("type") in _CALL_BLOCKS]


def _content_without_calls(message: AIMessage) -> Any:
    """Return the content with no block of a call in it: what a model thought must go back to its provider unchanged."""
    if isinstance(message.content, str):
        return message.content
    if not _call_blocks(message) and not any(call for call in message.invalid_tool_calls):
        return message.content
    blocks = [block for block in message.content if not (isinstance(block, dict) and block.get("type") in _CALL_BLOCKS)]
    return blocks if any(isinstance(block, dict) and block.get("type") != "text" for block in blocks) else message.text


def _without_calls(message: AIMessage, text: str, place: str) -> AIMessage:
    return AIMessage(
        content=text,
        id=_named(message, place).id,
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
    )
