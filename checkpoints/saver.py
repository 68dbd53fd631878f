"""LangGraph's SQLite saver over our connection, with both doors: sync, and one thread hop for an async call."""

from __future__ import annotations

import asyncio
import sqlite3
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.sqlite import SqliteSaver

from loopwright.crash import CrashPoint, reached
from loopwright.errors import ConfigurationError

from .database import Database, translated

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREAD_ID = 255
"""Characters of a thread id: what every store can index."""


class Saver(SqliteSaver):
    """Stores checkpoints beside the ledger, in the same database.

    A thread id is a string of 1 to 255 characters without NUL; an `int` or a `UUID` is taken by its `str`.
    """

    def __init__(self, database: Database) -> None:
        """Share the database's connection and lock."""
        super().__init__(database.connection)
        self._database = database
        with database.lock:
            self.setup()

    @contextmanager
    def cursor(self, transaction: bool = True) -> Generator[sqlite3.Cursor]:  # noqa: FBT001, FBT002 -- LangGraph's signature
        """Give LangGraph's code a cursor in a transaction of ours."""
        block = self._database.transaction() if transaction else self._database.reading()
        with translated(self._database.path), block as cursor:
            yield cursor

    def get_next_version(self, current: Any, channel: None) -> Any:  # noqa: ARG002 -- LangGraph's signature
        """Count up: LangGraph's own versions carry 48 characters of padding into every checkpoint, per channel."""
        if isinstance(current, str):  # written by LangGraph's saver
            return int(current.split(".")[0]) + 1
        return (current or 0) + 1

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, or None."""
        check_thread_id(config.get("configurable", {}).get("thread_id"))
        return super().get_tuple(config)

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return checkpoints, newest first; read at once, so that a slow reader holds no lock."""
        return iter([*super().list(config, filter=filter, before=before, limit=limit)])

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; committed before this returns."""
        stored = super().put(config, checkpoint, metadata, new_versions)
        reached(CrashPoint.AFTER_CHECKPOINT)
        return stored

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, or None."""
        return await self._hop(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Return checkpoints, newest first."""
        for found in await self._hop(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; committed before this returns."""
        return await self._hop(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task wrote; committed before this returns."""
        await self._hop(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoints."""
        await self._hop(self.delete_thread, thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what the delta channels were built from."""
        return await self._hop(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def _hop(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in a thread, unless the database is in memory: then nothing blocks."""
        if self._database.is_memory:
            return function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)


def check_thread_id(thread_id: object) -> str:
    """Return a thread id as the text that is stored.

    Strings are taken as they are; an `int` or a `UUID` by its `str`. So `1` and `"1"` are one thread, knowingly.

    Raises:
        ConfigurationError: If it is missing, empty, blank at its ends, too long, or of another type.
    """
    if isinstance(thread_id, uuid.UUID) or (isinstance(thread_id, int) and not isinstance(thread_id, bool)):
        return str(thread_id)
    way_out = f"give a string of 1 to {MAX_THREAD_ID} characters, without NUL and without blanks at its ends"
    if not isinstance(thread_id, str):
        raise ConfigurationError(f"thread_id is {thread_id!r}; {way_out}", thread_id=repr(thread_id))
    bad = "\x00" in thread_id or thread_id != thread_id.strip() or not 0 < len(thread_id) <= MAX_THREAD_ID
    if bad:
        raise ConfigurationError(f"thread_id {thread_id[:40]!r} cannot be used; {way_out}", thread_id=thread_id[:40])
    return thread_id
