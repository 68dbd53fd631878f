"""A server that speaks OpenAI's chat completions over real HTTP, on this machine, from a script."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from langchain_core.messages import ToolCall

from .scripted import ScriptExhausted

_PIECE = 7
"""Characters of a streamed piece: short, so that no word and no argument arrives whole."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model behind the server says."""

    text: str = ""
    calls: Sequence[tuple[str, str]] = ()
    """Names of tools, each with the text of its arguments, which is sent as it stands."""
    finish: str = ""
    """The finish reason; left out, `tool_calls` where there are calls, else `stop`."""
    tokens: tuple[int, int] | None = (100, 10)
    """Of the input and of the output, as reported; None: nothing is reported."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in place of a reply."""

    status: int
    message: str


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as it came in."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: Mapping[str, Any]


Turn = str | ToolCall | Sequence[ToolCall] | Reply | Failure
"""A string is a final answer; `call(…)`, or a list of them, a tool turn."""


class OpenAIServer:
    """Answers `POST /v1/chat/completions` by the turns of a script; use it in a `with` block.

    Streams where the request says so, and reports what was used as OpenAI does: in the body, or in a stream's last
    chunk if `stream_options` ask for it. A request too many gets status 400, and `assert_done` tells.

    Attributes:
        requests: What came in so far.
    """

    def __init__(self, turns: Sequence[Turn]) -> None:
        """Take the turns, in order; listens from the beginning of the block on."""
        self.requests: list[Request] = []
        self._turns = [_outcome(turn) for turn in turns]
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=[0.02], name="openai-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        """Serve."""
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop serving."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def assert_done(self) -> None:
        """Fail if there were more requests than turns, or fewer."""
        if len(self.requests) != len(self._turns):
            raise ScriptExhausted(f"{len(self.requests)} requests came in, the script has {len(self._turns)} turns")

    def take(self, request: Request) -> Reply | Failure:
        """Record a request, and return the turn that answers it."""
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        if request.path != "/v1/chat/completions":
            return Failure(HTTPStatus.NOT_FOUND, f"no such path: {request.path}")
        if number >= len(self._turns):
            return Failure(HTTPStatus.BAD_REQUEST, f"request {number + 1}, but the script has {len(self._turns)} turns")
        return self._turns[number]


def _outcome(turn: Turn) -> Reply | Failure:
    if isinstance(turn, Reply | Failure):
        return turn
    if isinstance(turn, str):
        return Reply(turn)
    calls = [turn] if isinstance(turn, dict) else turn
    return Reply(calls=[(call["name"], json.dumps(call["args"])) for call in calls])


def _handler(server: OpenAIServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """HTTP 1.0: each answer ends with its connection, so that a client keeps none open."""

        def do_POST(self) -> None:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            outcome = server.take(Request(self.path, headers, body))
            number = len(server.requests)
            if isinstance(outcome, Failure):
                error = {"message": outcome.message, "type": "scripted", "param": None, "code": None}
                self._send(outcome.status, "application/json", [json.dumps({"error": error})])
            elif body.get("stream"):
                lines = (f"data: {json.dumps(chunk)}\n\n" for chunk in _chunks(outcome, body, number))
                self._send(HTTPStatus.OK, "text/event-stream", lines)
                self.wfile.write(b"data: [DONE]\n\n")
            else:
                self._send(HTTPStatus.OK, "application/json", [json.dumps(_completion(outcome, body, number))])

        def _send(self, status: int, kind: str, parts: Sequence[str] | Iterator[str]) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.end_headers()
            for part in parts:
                self.wfile.write(part.encode())

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
            """Keep quiet."""

    return Handler


def _completion(reply: Reply, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if calls := _calls(reply, number):
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    whole = {**_head("chat.completion", body, number), "choices": [choice]}
    return {**whole, "usage": _usage(reply)} if reply.tokens else whole


def _chunks(reply: Reply, body: Mapping[str, Any], number: int) -> Iterator[dict[str, Any]]:
    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**_head("chat.completion.chunk", body, number), "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in _pieces(reply.text):
        yield chunk({"content": piece})
    for index, call in enumerate(_calls(reply, number)):
        function = call["function"]
        yield chunk({"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]})
        for piece in _pieces(function["arguments"]):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, _finish(reply))
    options: Mapping[str, Any] = body.get("stream_options") or {}
    if reply.tokens and options.get("include_usage"):
        yield {**_head("chat.completion.chunk", body, number), "choices": [], "usage": _usage(reply)}


def _head(kind: str, body: Mapping[str, Any], number: int) -> dict[str, Any]:
    return {"id": f"chatcmpl-{number}", "object": kind, "created": 0, "model": body["model"]}


def _calls(reply: Reply, number: int) -> list[dict[str, Any]]:
    return [
        {"id": f"call-{number}-{place}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for place, (name, arguments) in enumerate(reply.calls)
    ]


def _finish(reply: Reply) -> str:
    return reply.finish or ("tool_calls" if reply.calls else "stop")


def _usage(reply: Reply) -> dict[str, int]:
    given, written = reply.tokens or (0, 0)
    return {"prompt_tokens": given, "completion_tokens": written, "total_tokens": given + written}


def _pieces(text: str) -> Iterator[str]:
    for start in range(0, len(text), _PIECE):
        yield text[start : start + _PIECE]
