"""One live session with a server, and all the ways in which it can end."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, TextIO, TypeVar, cast

import anyio
import httpx
from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

from loopwright.errors import ConfigurationError

from .hints import Described
from .servers import McpServer, Vault

T = TypeVar("T")

PULSE_SECONDS = 2.0
"""How often a server behind HTTP is looked at while a call runs: the end of its process breaks no line there."""
MAX_PAGES = 50
"""Of a list of tools: there could be no end to it."""
MAX_TOOLS = 1_000
"""Of one server: each costs milliseconds to take in, and no model is offered so many."""
IDEMPOTENCY_KEY = "loopwright/idempotency-key"
"""In the `_meta` of a call that changes something: a server that honours it does nothing twice under one key."""
_HTTP_SECONDS = 30.0
_DAY = 86_400.0
_NEVER_BEGUN = (
    types.PARSE_ERROR,
    types.INVALID_REQUEST,
    types.METHOD_NOT_FOUND,
    types.URL_ELICITATION_REQUIRED,
)
"""Answers that JSON-RPC, or MCP, reserve for a request that was not carried out.

Not `INVALID_PARAMS`: a server answers so in the midst of a tool as well, when a service behind it refuses something.
"""
_FORGOTTEN = "Session terminated"
"""What the client library makes of HTTP's 404: the server does not know this session, or not any more."""


class NotSent(Exception):
    """Nothing was done, and the reason may pass: the same can be sent over another line."""


class NotBegun(Exception):
    """Nothing was done: the server refused the call before it began."""


class Broken(Exception):
    """It was sent, and nobody knows what became of it."""


class Line:
    """A session that is opened once, and never again after it has ended."""

    def __init__(self, settings: McpServer, vault: Vault) -> None:
        """Say where the server is; `open` goes there."""
        self._settings = settings
        self._vault = vault
        self._stop = asyncio.Event()
        self._session: ClientSession | None = None
        self._holder: asyncio.Task[None] | None = None
        self._reason = "its connection ended"
        self.over = asyncio.Event()
        """Set when nothing can be sent any more."""
        self.is_stale = False
        """Whether the server has said that its tools are others now."""
        self.calls = 0
        """How many are under way."""
        self.tools: dict[str, Described] = {}
        """As last listed, by the server's names."""

    async def open(self, seconds: float) -> None:
        """Connect, greet, and list the tools.

        Raises:
            NotSent: If that does not succeed in time.
        """
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._holder = asyncio.create_task(self._hold(ready))
        await asyncio.wait({ready, self._holder}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if ready.done() and not self.over.is_set():
            return
        if not self._holder.done():
            self._reason = f"it did not answer within {seconds:g} s"
            self._holder.cancel()
            await asyncio.wait({self._holder})
        raise NotSent(self._reason)

    async def close(self) -> None:
        """End the session, and the process behind it; may be called twice."""
        self._stop.set()
        if self._holder is not None:
            await asyncio.wait({self._holder})

    async def refresh(self, seconds: float) -> None:
        """List the tools anew.

        Raises:
            NotSent: If the server does not answer in time.
            NotBegun: If its list is no proper one.
        """
        self.is_stale = False
        try:
            self.tools = await self._answer(self._list, seconds)
        except Exception as error:
            self.is_stale = True
            if isinstance(error, Broken):
                raise NotSent(str(error)) from None
            raise

    async def call(
        self,
        name: str,
        args: Mapping[str, Any],
        *,
        key: str,
        seconds: float,
        said: Callable[[str], None],
    ) -> types.CallToolResult:
        """Call a tool.

        Raises:
            NotSent: If the line was down already.
            NotBegun: If the server refused it as wrong.
            Broken: If it was sent, and no answer came.
        """
        # Not `ClientSession.call_tool`: it raises when a result does not fit its schema, and by then the work is done.
        meta = types.RequestParams.Meta.model_validate({IDEMPOTENCY_KEY: key}) if key else None
        params = types.CallToolRequestParams(name=name, arguments=dict(args), _meta=meta)
        request = types.ClientRequest(types.CallToolRequest(params=params))

        async def heard(progress: float, total: float | None, message: str | None) -> None:
            text = message or (f"{progress:g} of {total:g}" if total else f"{progress:g}")
            said(self._vault.hide(text))

        self.calls += 1
        try:
            return await self._answer(
                lambda session: session.send_request(request, types.CallToolResult, progress_callback=heard), seconds
            )
        finally:
            self.calls -= 1

    async def _answer(self, ask: Callable[[ClientSession], Awaitable[T]], seconds: float) -> T:
        """Wait for an answer, for the end of the line, or for the time to be up."""
        if self._session is None or self.over.is_set():
            raise NotSent(self._reason)
        asked: asyncio.Future[T] = asyncio.ensure_future(ask(self._session))
        ended = asyncio.ensure_future(self.over.wait())
        pulse = asyncio.create_task(self._feel()) if "url" in self._settings else None
        try:
            both: set[asyncio.Future[Any]] = {asked, ended}
            await asyncio.wait(both, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                return self._answered(asked)
            if ended.done():
                raise Broken(self._reason)
            raise Broken(f"it did not answer within {seconds:g} s")
        finally:
            for task in (asked, ended, pulse):
                if task is not None and not task.cancel() and not task.cancelled():
                    task.exception()  # looked at, so that asyncio does not report it as lost

    def _answered(self, asked: asyncio.Future[T]) -> T:
        try:
            return asked.result()
        except McpError as error:
            said = self._vault.hide(error.error.message)
            if said == _FORGOTTEN:
                self._end("it has forgotten this session")
                raise NotSent(self._reason) from None
            if error.error.code == types.CONNECTION_CLOSED:
                self._end("its connection ended")
                raise Broken(self._reason) from None
            if error.error.code in _NEVER_BEGUN:
                raise NotBegun(f"it refused the request: {said}") from None
            raise Broken(f"it failed: {said}") from None
        except anyio.ClosedResourceError:  # the door was shut before the request went through it
            self._end("its connection ended")
            raise NotSent(self._reason) from None
        except NotBegun:
            raise
        except Exception as error:  # noqa: BLE001 -- whatever it is, an answer had come
            raise Broken(f"its answer cannot be read ({type(error).__name__})") from None

    async def _feel(self) -> None:
        """Send a sign of life now and then: if nobody is there, that ends the line."""
        while self._session is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(PULSE_SECONDS):
                    await self.over.wait()
                return
            try:
                async with asyncio.timeout(PULSE_SECONDS):
                    await self._session.send_ping()
            except McpError as error:
                if error.error.message == _FORGOTTEN:
                    self._end("it has forgotten this session")
            except Exception:  # noqa: BLE001, S112 -- a server too busy for an answer is no dead one
                continue

    def _end(self, reason: str) -> None:
        self._reason = reason
        self.over.set()
        self._stop.set()

    async def _hold(self, ready: asyncio.Future[None]) -> None:
        """Hold the session open: what enters it must be what leaves it, so it has a task of its own."""
        client = types.Implementation(name="loopwright", version=version("loopwright"))
        try:
            async with (
                _streams(self._settings, self._vault) as (read, write),
                ClientSession(read, write, message_handler=self._heard, client_info=client) as session,
            ):
                await session.initialize()
                self.tools = await self._list(session)
                self._session = session
                ready.set_result(None)
                await self._stop.wait()
        except Exception as error:  # noqa: BLE001 -- a foreign server, and three foreign libraries
            self._reason = self._told(error)
        finally:
            self.over.set()

    async def _heard(self, message: object) -> None:
        if isinstance(message, types.ServerNotification) and isinstance(
            message.root, types.ToolListChangedNotification
        ):
            self.is_stale = True

    async def _list(self, session: ClientSession) -> dict[str, Described]:
        found: dict[str, Described] = {}
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
            if len(found) + len(page.tools) > MAX_TOOLS:
                raise NotBegun(f"it lists more than {MAX_TOOLS:,} tools")
            for listed in page.tools:
                if listed.name in found:
                    raise NotBegun(f"it lists two tools called {listed.name!r}")
                found[listed.name] = _described(listed, self._vault)
            cursor = page.nextCursor
            if not cursor:
                return found
        raise NotBegun(f"its list of tools has no end within {MAX_PAGES} pages")

    def _told(self, error: BaseException) -> str:
        """Say why a session ended, in words that hold no header and no address."""
        while isinstance(error, BaseExceptionGroup):
            error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
        match error:
            case httpx.HTTPStatusError():
                return f"it answered with HTTP {error.response.status_code}"
            case httpx.TransportError():
                return f"it cannot be reached ({type(error).__name__})"
            case McpError():
                return f"it failed: {self._vault.hide(error.error.message)}"
            case NotBegun() | ConfigurationError():  # our own words
                return self._vault.hide(str(error))
            case OSError():
                return f"its command cannot be started: {error.strerror or type(error).__name__}"
            case _:
                return f"it cannot be understood ({type(error).__name__})"


def _described(listed: types.Tool, vault: Vault) -> Described:
    hints = listed.annotations or types.ToolAnnotations()
    return Described(
        name=listed.name,
        description=vault.hide(listed.description or listed.title or hints.title or ""),
        schema=listed.inputSchema,
        read_only=hints.readOnlyHint,
        destructive=hints.destructiveHint,
        idempotent=hints.idempotentHint,
    )


Streams = tuple[Any, Any]
"""What is read from and written to: the client library's own."""


@asynccontextmanager
async def _streams(settings: McpServer, vault: Vault) -> AsyncGenerator[Streams]:
    """Open the way to the server."""
    if "command" in settings:
        parameters = StdioServerParameters(
            command=settings["command"],
            args=[*settings.get("args", ())],
            env=vault.env(),
            cwd=settings.get("cwd"),
        )
        with open(os.devnull, "w", encoding="utf-8") as nowhere:  # noqa: ASYNC230, PTH123 -- no file that could block
            async with stdio_client(parameters, errlog=_error_output(nowhere)) as (read, write):
                yield read, write
        return
    url = settings.get("url", "")
    if settings.get("transport") == "sse":
        headers = vault.headers()
        async with sse_client(url, headers, timeout=_HTTP_SECONDS, sse_read_timeout=_DAY) as (read, write):
            yield read, write
    else:
        # No bound on reading: a call has its own.
        timeout = httpx.Timeout(_HTTP_SECONDS, read=None)
        async with (
            httpx.AsyncClient(headers=vault.headers(), timeout=timeout) as client,
            streamable_http_client(url, http_client=client) as (read, write, _),
        ):
            yield read, write


def _error_output(otherwise: TextIO) -> TextIO:
    """Return where the server's own complaints go: where ours go, if that is a real file."""
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return otherwise
    return sys.stderr
