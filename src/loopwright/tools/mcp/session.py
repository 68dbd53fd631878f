"""The loop that owns the sessions: one thread for all servers, whoever calls from wherever."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

from mcp import types

from .hiding import Discretion
from .hints import Described
from .line import Line, NotBegun, NotSent
from .servers import McpServer, Vault

T = TypeVar("T")

LIST_SECONDS = 5.0
"""In which a server that is alive lists its tools."""


class Loop:
    """An event loop in a thread of its own."""

    def __init__(self, vaults: Sequence[Vault]) -> None:
        """Start the thread; it ends with the process, if nobody closes it before. The vaults are of its sessions."""
        self._loop = asyncio.new_event_loop()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=self._loop.run_forever, name="loopwright-mcp", daemon=True)
        self._thread.start()
        self._discretion = Discretion(vaults)
        self._discretion.begin(self._thread)

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Have something done there.

        Raises:
            NotSent: If the loop is closed, or is another process's: a fork has no threads.
        """
        if self._loop.is_closed() or not self._thread.is_alive() or os.getpid() != self._pid:
            work.close()
            raise NotSent("its tools are closed here; open them in the process, and for the time, in which they run")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Stop, and free what it holds; may be called twice."""
        if self._loop.is_closed() or os.getpid() != self._pid:
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._discretion.end()


class Session:
    """What stands for one server: connected, and connected again when its line has ended."""

    def __init__(self, name: str, settings: McpServer, *, connect_seconds: float) -> None:
        """Say where the server is; the first use goes there."""
        self.name = name
        self.vault = Vault(name, settings)
        self._settings = settings
        self._connect_seconds = connect_seconds
        self._line: Line | None = None
        self._lock = asyncio.Lock()
        self._is_closed = False

    async def tools(self) -> dict[str, Described]:
        """Return what the server offers now.

        Raises:
            NotSent: If it cannot be reached.
            ConfigurationError: If a secret cannot be read.
        """
        return (await self._current(self._connect_seconds, fresh=True)).tools

    async def call(
        self, tool: Described, args: Mapping[str, Any], *, key: str, seconds: float, said: Callable[[str], None]
    ) -> types.CallToolResult:
        """Call a tool, if it still is the one that is meant.

        A call that changes something (it has a `key`) looks at the server's list right before: what was approved hours
        ago must be what is called. It is sent a second time only if it did not go out the first time; a read, once
        more in any case where the line broke.

        Raises:
            NotSent: If the server cannot be reached.
            NotBegun: If the tool is gone or has changed, or the server refused the call.
            Broken: If nobody knows what became of it.
        """
        for last in (False, True):
            line = await self._current(min(self._connect_seconds, seconds / 2), fresh=bool(key))
            self._compare(tool, line.tools)
            try:
                return await line.call(tool.name, args, key=key, seconds=seconds, said=said)
            except NotSent:
                if last:
                    raise
            except Exception:
                if last or key or not line.over.is_set() or self._is_closed:
                    raise
        raise AssertionError("unreachable")

    async def close(self) -> None:
        """End the session for good; may be called twice."""
        self._is_closed = True
        if self._line is not None:
            await self._line.close()

    def _compare(self, tool: Described, now: Mapping[str, Described]) -> None:
        found = now.get(tool.name)
        if found is None:
            raise NotBegun(f"its tool {tool.name!r} is gone")
        if found.version != tool.version:
            parts = [
                what
                for what, is_other in (
                    ("description", found.description != tool.description),
                    ("arguments", found.schema != tool.schema),
                )
                if is_other
            ]
            text = f"not run: its tool {tool.name!r} has changed ({' and '.join(parts) or 'hints'}) since it was opened"
            raise NotBegun(f"{text}; somebody has to look at it, and open the tools anew")

    async def _current(self, seconds: float, *, fresh: bool) -> Line:
        """Return a live line whose list of tools can be relied on."""
        async with self._lock:
            line = self._line
            if self._is_closed:
                raise NotSent("its tools are closed")
            if line is None or line.over.is_set():
                return await self._connect(line, seconds)
            if not fresh and not line.is_stale:
                return line
            try:
                await line.refresh(min(LIST_SECONDS, seconds))
            except NotSent:
                if line.calls:  # what hangs may be busy with them, and would not survive
                    raise
                return await self._connect(line, seconds)
            return line

    async def _connect(self, old: Line | None, seconds: float) -> Line:
        if old is not None:
            await old.close()
        self._line = Line(self._settings, self.vault)
        await self._line.open(seconds)
        return self._line
