"""A server that speaks Anthropic's messages over real HTTP, on this machine, from a script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any, ClassVar

from typing_extensions import override

from .anthropic_rules import refuse_request
from .scripted_server import AS_TEXT, Failure, Reply, Request, ScriptedServer, pieces

_TYPES = {
    HTTPStatus.BAD_REQUEST: "invalid_request_error",
    HTTPStatus.UNAUTHORIZED: "authentication_error",
    HTTPStatus.FORBIDDEN: "permission_error",
    HTTPStatus.NOT_FOUND: "not_found_error",
    HTTPStatus.TOO_MANY_REQUESTS: "rate_limit_error",
    529: "overloaded_error",
}


class AnthropicServer(ScriptedServer):
    """Answers `POST /v1/messages` by the turns of a script; use it in a `with` block.

    Streams where the request says so. Usage is reported as Anthropic does: what the cache read or took in stands beside
    `input_tokens`, not in it. A request that Anthropic would refuse gets status 400 with the reason.
    """

    path: ClassVar[str] = "/v1/messages"
    base: ClassVar[str] = ""

    @override
    def refuse(self, request: Request) -> str:
        if "anthropic-version" not in request.headers:
            return "anthropic-version: header is required"
        return refuse_request(request.body)

    @override
    def error(self, failure: Failure) -> Mapping[str, Any]:
        kind = failure.code or _TYPES.get(failure.status, "api_error")
        return {"type": "error", "error": {"type": kind, "message": failure.message}}

    @override
    def whole(self, reply: Reply, body: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        ending = {"stop_reason": _finish(reply), "stop_sequence": None}
        whole = {**_head(body, number), "content": _blocks(reply, number), **ending}
        return {**whole, "usage": _usage(reply)} if self._reports(reply) else whole

    @override
    def events(self, reply: Reply, body: Mapping[str, Any], number: int) -> Iterator[str]:
        beginning, ending = self._reported(reply)
        open_ended: dict[str, Any] = {"content": [], "stop_reason": None, "stop_sequence": None}
        message = {**_head(body, number), **open_ended, **beginning}
        yield _event("message_start", message=message)
        for index, block in enumerate(_blocks(reply, number, is_streamed=True)):
            yield _event("content_block_start", index=index, content_block=_opened(block))
            for delta in _deltas(block):
                yield _event("content_block_delta", index=index, delta=delta)
            yield _event("content_block_stop", index=index)
        yield _event("message_delta", delta={"stop_reason": _finish(reply), "stop_sequence": None}, **ending)
        yield _event("message_stop")

    def _reports(self, reply: Reply) -> bool:
        return reply.tokens is not None and self.usage != "never"

    def _reported(self, reply: Reply) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return what is reported at a stream's beginning, and at its end."""
        if not self._reports(reply):
            return {}, {}
        usage = _usage(reply)
        begun = {**usage, "output_tokens": 1}
        match self.usage:
            case "split":
                return {"usage": begun}, {"usage": {"output_tokens": usage["output_tokens"]}}
            case "zeros":
                return {"usage": usage}, {"usage": {"input_tokens": 0, "output_tokens": 0}}
            case _:
                return {"usage": begun}, {"usage": usage}


def _event(kind: str, **data: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n"


def _head(body: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body.get("model")}


def _blocks(reply: Reply, number: int, *, is_streamed: bool = False) -> list[dict[str, Any]]:
    if reply.content is not AS_TEXT:
        given = reply.content
        return [{"type": "text", "text": given}] if isinstance(given, str) else [*(given or ())]
    blocks: list[dict[str, Any]] = []
    if reply.reasoning:
        blocks.append({"type": "thinking", "thinking": reply.reasoning, "signature": "signed"})
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    ids = reply.ids or [f"toolu_{number}_{place}" for place in range(len(reply.calls))]
    for own, (name, arguments) in zip(ids, reply.calls, strict=True):
        given = arguments if is_streamed else _parsed(arguments)
        blocks.append({"type": "tool_use", "id": own, "name": name, "input": given})
    return blocks


def _parsed(arguments: Any) -> Any:
    """Return the arguments as the provider parses them; what is no JSON stays a text."""
    try:
        return json.loads(arguments or "{}")
    except (TypeError, ValueError):
        return arguments


def _opened(block: Mapping[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {"text": "", "thinking": "", "input": {}, "signature": ""}
    return {name: empty.get(name, value) if name != "type" else value for name, value in block.items()}


def _deltas(block: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    match block["type"]:
        case "text":
            yield from ({"type": "text_delta", "text": piece} for piece in pieces(block["text"]))
        case "thinking":
            yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"]))
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use":
            given = block["input"] if isinstance(block["input"], str) else json.dumps(block["input"])
            yield from ({"type": "input_json_delta", "partial_json": piece} for piece in pieces(given))
        case _:
            return


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_use" if reply.calls else "end_turn")


def _usage(reply: Reply) -> dict[str, Any]:
    given, written = reply.tokens or (0, 0)
    kept = {
        "ephemeral_5m_input_tokens": reply.written - reply.written_hour,
        "ephemeral_1h_input_tokens": reply.written_hour,
    }
    return {
        "input_tokens": given - reply.cached - reply.written,
        "cache_read_input_tokens": reply.cached,
        "cache_creation_input_tokens": reply.written,
        **({"cache_creation": kept} if reply.written_hour else {}),
        "output_tokens": written,
        "output_tokens_details": {"thinking_tokens": reply.reasoned},
    }
