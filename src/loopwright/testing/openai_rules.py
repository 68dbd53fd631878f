"""Which requests OpenAI's chat completions, and strict servers of the same protocol, refuse. Pure functions."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_ID = 40
_ROLES = ("system", "developer", "user", "assistant", "tool")
_BASIC = ("model", "messages", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "user")
_SAMPLING = ("temperature", "top_p", "n", "stop", "seed", "logit_bias", "logprobs", "top_logprobs")
_OUTPUT = ("max_tokens", "max_completion_tokens", "response_format", "modalities", "audio", "prediction", "verbosity")
_PENALTIES = ("presence_penalty", "frequency_penalty")
_SERVICE = ("reasoning_effort", "store", "metadata", "service_tier", "safety_identifier", "prompt_cache_key")
_KNOWN = (*_BASIC, *_SAMPLING, *_OUTPUT, *_PENALTIES, *_SERVICE, "prompt_cache_retention", "web_search_options")

Said = Iterator[str]
Json = Mapping[str, Any]


def refuse_request(body: Mapping[str, Any]) -> str:
    """Say why a request would be refused, with status 400; empty when it would not."""
    return next((why for check in (_parameters, _tools, _messages) for why in check(body)), "")


def _parameters(body: Mapping[str, Any]) -> Said:
    for name in body:
        if name not in _KNOWN:
            yield f"Unrecognized request argument supplied: {name}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    if "stream_options" in body and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    for name in ("tool_choice", "parallel_tool_calls"):
        if name in body and not body.get("tools"):
            yield f"'{name}' is only allowed when 'tools' are specified."


def _tools(body: Mapping[str, Any]) -> Said:
    if "tools" not in body:
        return
    if not body["tools"]:
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead."
    for place, tool in enumerate(body["tools"]):
        function: Json = tool.get("function") or {}
        parameters: Json = function.get("parameters") or {"type": "object"}
        if tool.get("type") != "function" or not _NAME.fullmatch(str(function.get("name"))):
            yield f"Invalid 'tools[{place}].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
        if parameters.get("type") != "object":
            yield f"Invalid schema for function {function.get('name')!r}: it must be a JSON Schema of 'type: object'"


def _messages(body: Mapping[str, Any]) -> Said:
    messages: Sequence[Mapping[str, Any]] = body.get("messages") or []
    if not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1."
    waiting: list[str] = []
    for place, message in enumerate(messages):
        where, role = f"messages[{place}]", message.get("role")
        if role not in _ROLES:
            yield f"Invalid value: {role!r}. Supported values are: {', '.join(_ROLES)}."
        if role == "tool":
            yield from _result(message, where, waiting)
            continue
        if waiting:
            break
        if role == "assistant":
            yield from _assistant(message, where)
            waiting = [str(call.get("id")) for call in message.get("tool_calls") or ()]
        else:
            yield from _content(message, where)
    if waiting:
        text = "An assistant message with 'tool_calls' must be followed by tool messages responding to each"
        yield f"{text} 'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}"


def _result(message: Mapping[str, Any], where: str, waiting: list[str]) -> Said:
    if message.get("tool_call_id") not in waiting:
        text = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
        yield f"Invalid parameter: {text} ({where})"
        return
    waiting.remove(message["tool_call_id"])
    yield from _content(message, where)
    content = message.get("content")
    parts: Sequence[Json] = [] if isinstance(content, str) else content or []
    if any(part.get("type") != "text" for part in parts):
        yield f"Invalid '{where}.content': image URLs are only allowed for messages with role 'user'."


def _content(message: Mapping[str, Any], where: str) -> Said:
    content: object = message.get("content")
    if content is None:
        yield f"Invalid value for 'content': expected a string, got null. ({where})"
    elif content == []:
        yield f"Invalid '{where}.content': empty array. Expected an array with minimum length 1."


def _assistant(message: Mapping[str, Any], where: str) -> Said:
    if "tool_calls" in message and not message["tool_calls"]:
        yield f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1."
    if not message.get("tool_calls") and not message.get("refusal"):
        yield from _content(message, where)
    ids: list[Any] = []
    calls: Sequence[Json] = message.get("tool_calls") or []
    for place, call in enumerate(calls):
        at = f"{where}.tool_calls[{place}]"
        own: Any = call.get("id")
        function: Json = call.get("function") or {}
        if not isinstance(own, str) or not own or len(own) > _LONGEST_ID:
            yield f"Invalid '{at}.id': expected a string of 1 to {_LONGEST_ID} characters, got {own!r}."
        if own in ids:
            yield f"Duplicate value for 'tool_call_id' of {own!r} in {where}."
        ids.append(own)
        if not _NAME.fullmatch(str(function.get("name"))):
            yield f"Invalid '{at}.function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'."
        if not _is_object(function.get("arguments")):
            yield f"Invalid '{at}.function.arguments': expected the text of a JSON object."


def _is_object(arguments: Any) -> bool:
    try:
        return isinstance(json.loads(arguments), dict)
    except (TypeError, ValueError):
        return False
