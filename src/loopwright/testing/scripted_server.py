"""What the servers of this room have in common: a script, its turns, and HTTP on this machine."""

from __future__ import annotations

import json
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from itertools import islice
from types import TracebackType
from typing import Any, ClassVar, Literal, Self

from langchain_core.messages import ToolCall

from .scripted import ScriptExhausted

PIECE = 7
"""Characters of a streamed piece: short, so that no word and no argument arrives whole."""

UsageMode = Literal["last", "each", "zeros", "split", "never"]
AS_TEXT: Any = object()
"""The content of a reply is its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quirks:
    """How one reply differs from an ordinary one."""

    ids: Sequence[str | None] | None = None
    """Of its calls, as sent; left out, each gets one of its own."""
    content: Any = AS_TEXT
    """Sent in place of the text: None, blanks, blocks."""
    refusal: str = ""
    """OpenAI's field of that name."""
    reasoning: str = ""
    """What it thought aloud, in the provider's own place for it."""
    cached: int = 0
    """Of the input tokens: read from the provider's cache."""
    written: int = 0
    """Of the input tokens: written to that cache."""
    written_hour: int = 0
    """Of these: kept for an hour."""
    reasoned: int = 0
    """Of the output tokens: reasoning."""
    pause: float = 0.0
    """Seconds before each piece of the body."""
    cut_after: int | None = None
    """So many pieces are sent, and the connection ends."""


@dataclass(frozen=True, slots=True)
class Reply(_Quirks):
    """What the model behind a server says."""

    text: str = ""
    calls: Sequence[tuple[str | None, Any]] = ()
    """Names of tools, each with its arguments: a text is sent as it stands, all else as the JSON that it is."""
    finish: str = ""
    """Why it ended; left out, what the provider says for calls, or for an answer."""
    tokens: tuple[int, int] | None = (100, 10)
    """Of the whole input and of the output, as reported; None: nothing is reported."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An error in place of a reply."""

    status: int
    message: str
    code: str | None = None
    """Such as `insufficient_quota`; for Anthropic the error's type."""
    retry_after: float | None = None
    """Seconds, sent as a header."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, as it came in."""

    path: str
    headers: Mapping[str, str]
    """By name in lower case."""
    body: Mapping[str, Any]


Turn = str | ToolCall | Sequence[ToolCall] | Reply | Failure
"""A string is a final answer; `call(…)`, or a list of them, a tool turn."""


class ScriptedServer(ABC):
    """Answers requests by the turns of a script, over real HTTP; use it in a `with` block.

    A request that the real provider would refuse gets status 400 with the reason, and takes no turn; so does a request
    too many, and `assert_done` tells.

    Attributes:
        requests: What came in so far.
        refused: Why requests were refused, in order.
    """

    path: ClassVar[str]
    base: ClassVar[str]
    """What a client's base URL has behind the host."""

    def __init__(
        self,
        turns: Sequence[Turn],
        *,
        usage: UsageMode = "last",
        refuses: Collection[str] = (),
        only: Mapping[str, Any] | None = None,
        takes_any_history: bool = False,
    ) -> None:
        """Take the turns, in order; listens from the beginning of the block on.

        Args:
            turns: What is answered.
            usage: How a stream reports it: in its last chunk, as a total with each chunk, with zeros at the end, with
                input and output apart, or never.
            refuses: Parameters that this model does not know: a request with one of them is refused.
            only: Parameters that may have one value alone.
            takes_any_history: Whether requests are answered that the real provider would refuse.
        """
        self.requests: list[Request] = []
        self.refused: list[str] = []
        self.usage: UsageMode = usage
        self._refuses, self._only, self._takes_any = {*refuses}, {**(only or {})}, takes_any_history
        self._turns = [_outcome(turn) for turn in turns]
        self._used = 0
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(target=self._http.serve_forever, args=[0.02], name="model-server", daemon=True)

    @property
    def base_url(self) -> str:
        """What a client takes as its base URL."""
        return f"http://127.0.0.1:{self._http.server_port}{self.base}"

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
        """Fail if there were more requests than turns, or fewer; or if one was refused."""
        if self.refused:
            raise AssertionError(f"requests were refused: {self.refused}")
        if len(self.requests) != len(self._turns):
            raise ScriptExhausted(f"{len(self.requests)} requests came in, the script has {len(self._turns)} turns")

    def take(self, request: Request) -> tuple[int, Reply | Failure]:
        """Record a request; return its number and the turn that answers it."""
        with self._lock:
            self.requests.append(request)
            number = len(self.requests)
            if request.path != self.path:
                return number, Failure(HTTPStatus.NOT_FOUND, f"no such path: {request.path}")
            why = self._refuse_parameter(request.body) or ("" if self._takes_any else self.refuse(request))
            if why:
                self.refused.append(why)
                return number, Failure(HTTPStatus.BAD_REQUEST, why)
            if self._used >= len(self._turns):
                why = f"request {number}, but the script has {len(self._turns)} turns"
                return number, Failure(HTTPStatus.BAD_REQUEST, why)
            self._used += 1
            return number, self._turns[self._used - 1]

    def _refuse_parameter(self, body: Mapping[str, Any]) -> str:
        for name in body:
            if name in self._refuses:
                return f"Unsupported parameter: '{name}' is not supported with this model."
            if name in self._only and body[name] != self._only[name]:
                text = f"Unsupported value: '{name}' does not support {body[name]!r} with this model."
                return f"{text} Only the default ({self._only[name]!r}) value is supported."
        return ""

    @abstractmethod
    def refuse(self, request: Request) -> str:
        """Say why the real provider would refuse a request; empty when it would not."""

    @abstractmethod
    def whole(self, reply: Reply, body: Mapping[str, Any], number: int) -> Mapping[str, Any]:
        """Return the body of an answer that is not streamed."""

    @abstractmethod
    def events(self, reply: Reply, body: Mapping[str, Any], number: int) -> Iterator[str]:
        """Yield the server-sent events of one that is."""

    @abstractmethod
    def error(self, failure: Failure) -> Mapping[str, Any]:
        """Return the body of an error."""


def _outcome(turn: Turn) -> Reply | Failure:
    if isinstance(turn, Reply | Failure):
        return turn
    if isinstance(turn, str):
        return Reply(turn)
    calls = [turn] if isinstance(turn, dict) else turn
    return Reply(calls=[(call["name"], json.dumps(call["args"])) for call in calls])


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """HTTP 1.0: each answer ends with its connection, so that a client keeps none open."""

        def do_POST(self) -> None:
            body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            number, outcome = server.take(Request(self.path, headers, body))
            if isinstance(outcome, Failure):
                self._begin(outcome.status, "application/json", outcome.retry_after)
                self.wfile.write(json.dumps(server.error(outcome)).encode())
            elif body.get("stream"):
                self._begin(HTTPStatus.OK, "text/event-stream")
                _write(self.wfile, server.events(outcome, body, number), outcome)
            else:
                self._begin(HTTPStatus.OK, "application/json")
                whole = json.dumps(server.whole(outcome, body, number))
                _write(self.wfile, pieces(whole, len(whole) // 2 + 1), outcome)

        def _begin(self, status: int, kind: str, retry_after: float | None = None) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            if retry_after is not None:
                self.send_header("Retry-After", str(retry_after))
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class's name
            """Keep quiet."""

    return Handler


def _write(wire: BufferedIOBase, parts: Iterable[str], reply: Reply) -> None:
    """Send a body at its reply's own pace, to its end or to where it is cut."""
    with suppress(OSError):  # a client that would not wait
        for part in islice(parts, reply.cut_after):
            if reply.pause:
                time.sleep(reply.pause)
            wire.write(part.encode())


def pieces(text: str, length: int = PIECE) -> Iterator[str]:
    """Cut a text into pieces."""
    for start in range(0, len(text), length):
        yield text[start : start + length]
