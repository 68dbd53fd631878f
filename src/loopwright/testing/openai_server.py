"""A server that speaks OpenAI's chat completions over real HTTP, on this machine, from a script."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from typing_extensions import override

from .openai_rules import refuse_request
from .scripted_server import AS_TEXT, Failure, Reply, Request, ScriptedServer, pieces


class OpenAIServer(ScriptedServer):
    """Answers `POST /v1/chat/completions` by the turns of a script; use it in a `with` block.

    Streams where the request says so, and reports what was used as OpenAI does: in the body, or in a stream's last
    chunk if `stream_options` ask for it. A request that OpenAI would refuse gets status 400 with the reason.
    """

    path: ClassVar[str] = "/v1/chat/completions"
    base: ClassVar[str] = "/v1"

    @override
    def refuse(self, request: Request) -> str:
        return refuse_request(request.body)

    @override
    def error(self, failure: Failure) -> Mapping[str, Any]:
        return {"error": {"message": failure.message, "type": "scripted", "param": None, "code": failure.code}}

    @override
    def whole(self, reply: Reply, body: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": _content(reply), "refusal": reply.refusal or None}
        if reply.reasoning:
            message["reasoning_content"] = reply.reasoning
        if calls := _calls(reply, number):
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
        whole = {**_head("chat.completion", body, number), "choices": [choice]}
        return {**whole, "usage": _usage(reply)} if self._reports(reply) else whole

    @override
    def events(self, reply: Reply, body: Mapping[str, Any], number: int) -> Iterator[str]:
        options: Mapping[str, Any] = body.get("stream_options") or {}
        is_asked = self._reports(reply) and bool(options.get("include_usage"))
        head = _head("chat.completion.chunk", body, number)
        deltas = [*_deltas(reply, number), {}]
        for place, delta in enumerate(deltas):
            finish = None if delta else _finish(reply)
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
            chunk = {**head, "choices": [choice]}
            if is_asked and self.usage in ("each", "zeros"):
                chunk["usage"] = _usage(reply, (place + 1) / len(deltas))
            yield _event(chunk)
        if is_asked and self.usage != "each":
            yield _event({**head, "choices": [], "usage": _usage(reply, 0 if self.usage == "zeros" else 1)})
        yield "data: [DONE]\n\n"

    def _reports(self, reply: Reply) -> bool:
        return reply.tokens is not None and self.usage != "never"


def _event(data: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"


def _deltas(reply: Reply, number: int) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(reply.reasoning):
        yield {"reasoning_content": piece}
    content = _content(reply)
    for piece in pieces(content) if isinstance(content, str) else [content]:
        yield {"content": piece}
    for piece in pieces(reply.refusal):
        yield {"refusal": piece}
    for index, call in enumerate(_calls(reply, number)):
        function, arguments = call["function"], call["function"]["arguments"]
        parts = [*pieces(arguments)] if isinstance(arguments, str) else [arguments]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in parts:
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _content(reply: Reply) -> Any:
    return (reply.text or None) if reply.content is AS_TEXT else reply.content


def _head(kind: str, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": body.get("model")}


def _calls(reply: Reply, number: int) -> list[dict[str, Any]]:
    ids = reply.ids or [f"call-{number}-{place}" for place in range(len(reply.calls))]
    return [
        {"id": own, "type": "function", "function": {"name": name, "arguments": arguments}}
        for own, (name, arguments) in zip(ids, reply.calls, strict=True)
    ]


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _usage(reply: Reply, share: float = 1) -> dict[str, Any]:
    """Return the usage after a share of the reply."""
    given, written = reply.tokens or (0, 0)
    given, written = (given if share else 0), int(written * share)
    return {
        "prompt_tokens": given,
        "completion_tokens": written,
        "total_tokens": given + written,
        "prompt_tokens_details": {"cached_tokens": reply.cached if share else 0},
        "completion_tokens_details": {"reasoning_tokens": int(reply.reasoned * share)},
    }
