"""The saver that LangGraph gets: both doors, and write-behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, ParamSpec, TypeVar, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.types import (
    RESUME,
    _DeltaSnapshot,  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name
)

from loopwright.crash import CrashPoint, reached
from loopwright.errors import ClockBehind, StorageCorrupt, ThreadMoved
from loopwright.state import DELTA_CHANNELS

from .behind import Behind, Key, Skipped
from .clock import await_clock, explain_behind
from .metadata import hold_off_copies, metadata_of
from .squashing import squashed
from .store import Batch, NoSeal, Seal, SealedColumn, Store, Stored, TaskWrites, place_of
from .threads import check_thread_id

P = ParamSpec("P")
T = TypeVar("T")

_SIGNALS = frozenset(WRITES_IDX_MAP) - {RESUME}
RING_KEY = "__loopwright_ring"
"""In `configurable`: these are a ring's checkpoints, whose barriers are known, and the thread id is checked. Its value
tells one call of the agent from any other. LangGraph keeps it out of metadata."""


class Saver(BaseCheckpointSaver[Any]):
    """Stores checkpoints beside the ledger, in the same database.

    One history a thread: a checkpoint has one child, unless a branch was asked for; who comes second gets
    `ThreadMoved`, and nothing of theirs is stored. With write-behind, a ring's checkpoints between two barriers stay
    in memory, and the next barrier stores one in their place, in one transaction.

    A thread id is a string of 1 to 255 characters without NUL; an `int` or a `UUID` is taken by its `str`.
    """

    def __init__(self, store: Store, *, is_memory: bool, write_behind: bool, seal: Seal | None = None) -> None:
        """Put the saver over a store.

        Args:
            store: Where checkpoints go.
            is_memory: Whether the store cannot block, so that an async call needs no thread.
            write_behind: Whether checkpoints between two barriers may stay in memory.
            seal: Encryption, if there is any; the store has the same.
        """
        super().__init__(serde=store.serde)
        self._store = store
        self._seal: Seal = seal or NoSeal()
        self._is_memory = is_memory
        self._write_behind = write_behind
        self._lines: dict[Key, Behind] = {}
        self._lost: set[tuple[Key, str]] = set()

    @property
    def sealed_columns(self) -> Sequence[SealedColumn]:
        """The columns of the store whose values encryption seals."""
        return self._store.sealed_columns

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return a channel's next version."""
        return self._store.get_next_version(current, channel)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint; committed before this returns, unless it lies between two barriers.

        Raises:
            ThreadMoved: If another worker has carried the thread on.
            ClockBehind: If its id, which is made of the time, is older than its parent's.
        """
        return self._put(Skipped(config, checkpoint, metadata), new_versions)

    def _put(self, new: Skipped, versions: ChannelVersions) -> RunnableConfig:
        key, parent, checkpoint_id = _key(new.config), place_of(new.config).get("checkpoint_id"), new.checkpoint["id"]
        is_ours = RING_KEY in place_of(new.config) or new.metadata.get("source") == "update"
        if is_ours and parent and checkpoint_id <= parent:
            raise ClockBehind(explain_behind(key[0]), thread_id=key[0])
        if (key, str(parent)) in self._lost:
            self._lost.discard((key, str(parent)))  # who tries again reads what the other one wrote
            self._lose(key)
            raise ThreadMoved.of(key[0])
        if RING_KEY in place_of(new.config):
            hold_off_copies(new.metadata)
        if self._is_behind(new.config):
            line = self._line(key)
            with line.lock:
                _check_line(key, line)
                line.advance(parent, new, versions)
                if line.must_store():
                    self._store_line(key, line)
        else:
            self._store_batch(key, parent, new, versions, ())
            reached(CrashPoint.AFTER_CHECKPOINT)
        place = {"thread_id": key[0], "checkpoint_ns": key[1], "checkpoint_id": checkpoint_id}
        return {"configurable": place}

    def _store_batch(
        self, key: Key, parent_id: str | None, new: Skipped, versions: ChannelVersions, writes: Sequence[TaskWrites]
    ) -> None:
        metadata = self._seal.seal_metadata(metadata_of(new, parent_id), key[0], Stored(new.checkpoint, parent_id))
        thread_id, namespace, _ = key
        batch = Batch(thread_id, namespace, parent_id, new.checkpoint, metadata, dict(versions), tuple(writes))
        with self._seal.at(thread_id):
            self._store.store(batch)

    def _line(self, key: Key) -> Behind:
        return self._lines.setdefault(key, Behind())

    def _is_behind(self, config: RunnableConfig) -> bool:
        return self._write_behind and RING_KEY in place_of(config)

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote: a pause, an answer or an error is stored at once, all else with the next barrier."""
        key, checkpoint_id = _key(config), str(place_of(config)["checkpoint_id"])
        task = TaskWrites(task_id, task_path, writes)
        if not self._is_behind(config):
            self._add(key, config, task)
            return
        line = self._line(key)
        with line.lock:
            if not _has_signal(writes):
                line.keep(checkpoint_id, task)
                return
            if line.needs_storing(checkpoint_id):
                self._store_line(key, line)
            for kept in line.take(checkpoint_id):
                self._add(key, config, kept)
            self._add(key, config, task)

    def _add(self, key: Key, config: RunnableConfig, task: TaskWrites) -> None:
        """Store a task's writes; where another writer's stood first, our next checkpoint must not follow them."""
        with self._seal.at(key[0]):
            was_first = self._store.add_writes(_checked(config), task)
        if not was_first:
            self._lost.add((key, str(place_of(config)["checkpoint_id"])))

    def _store_line(self, key: Key, line: Behind) -> None:
        _check_line(key, line)
        if line.newest is None:
            return
        try:
            self._store_batch(key, line.anchor, line.newest, line.versions, line.writes)
        except ThreadMoved:
            line.is_lost = True
            raise
        line.stored()
        reached(CrashPoint.AFTER_CHECKPOINT)

    def flush(self, config: RunnableConfig) -> None:
        """Store what stands in memory of a call of the agent: at its exit, however it comes about.

        Raises:
            ThreadMoved: If another worker has carried the thread on.
        """
        thread_id, call = str(place_of(config).get("thread_id") or ""), place_of(config).get(RING_KEY)
        self._flush([key for key in self._lines if key[0] == thread_id and key[2] == call])

    def _flush(self, keys: Sequence[Key]) -> None:
        try:
            for key in keys:
                self._store_if_there(key)
        finally:  # what could not be stored is as after a crash: the thread stands as of its last save
            for key in keys:
                self._lines.pop(key, None)

    def _store_if_there(self, key: Key) -> None:
        if line := self._lines.get(key):
            with line.lock:
                self._store_line(key, line)

    def _lose(self, key: Key) -> None:
        if line := self._lines.get(key):
            line.is_lost = True

    def flush_all(self) -> None:
        """Store what stands in memory of any thread, but of one that another worker has: at the end of the process."""
        for key in [*self._lines]:
            with suppress(ThreadMoved):
                self._flush([key])

    async def aflush(self, config: RunnableConfig) -> None:
        """Do what `flush` does."""
        await self._hop(self.flush, config)

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint; without an id the newest, which may be one that stands in memory and is stored now."""
        config = _checked(config)
        thread_id = str(place_of(config)["thread_id"])
        self._settle(thread_id)
        with self._seal.at(thread_id):
            found = self._store.get_tuple(config)
        if found is None:
            return None
        if not get_checkpoint_id(config):
            await_clock(found.checkpoint["id"])
        return self._opened(found)

    def _opened(self, found: CheckpointTuple) -> CheckpointTuple:
        """Return what the store found with its metadata opened."""
        place = place_of(found.config)
        if found.checkpoint["id"] != place["checkpoint_id"]:
            text = f"checkpoint {place['checkpoint_id']} of thread {place['thread_id']!r} holds another one's state"
            raise StorageCorrupt(text, thread_id=place["thread_id"])
        parent = place_of(found.parent_config)["checkpoint_id"] if found.parent_config else None
        about = Stored(found.checkpoint, parent)
        metadata = self._seal.open_metadata(cast("dict[str, Any]", found.metadata), str(place["thread_id"]), about)
        return found._replace(metadata=cast("CheckpointMetadata", metadata))

    def _settle(self, thread_id: str) -> None:
        """Store what a reader of this process should see; the lines go on, for their calls may be under way."""
        for key in self._lines_of(thread_id):
            with suppress(ThreadMoved):  # whoever was faster is who is read
                self._store_if_there(key)

    def _lines_of(self, thread_id: str) -> list[Key]:
        return [key for key in [*self._lines] if key[0] == thread_id]

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return the stored checkpoints, newest first; read at once, so that a slow reader holds nothing."""
        config = _checked(config) if config else None
        thread_id = place_of(config)["thread_id"] if config else None
        hidden = {name: value for name, value in (filter or {}).items() if not self._seal.is_clear(name)}
        clear = {name: value for name, value in (filter or {}).items() if name not in hidden}
        with self._seal.at(str(thread_id or "")):
            found = [*self._store.list(config, filter=clear, before=before, limit=None if hidden else limit)]
        opened = (self._opened(one) for one in found)
        return islice((one for one in opened if hidden.items() <= one.metadata.items()), limit)

    def squash(self, thread_id: str) -> int:
        """Keep only the newest checkpoint of a thread, with all that was said in it; returns how many were deleted.

        Nobody may drive the thread meanwhile.
        """
        found = self.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
        if found is None or found.parent_config is None:
            return 0
        history = self.get_delta_channel_history(config=found.config, channels=[*DELTA_CHANNELS])
        head = squashed(thread_id, found, history, self._seal)
        with self._seal.at(thread_id):
            return self._store.replace_history(head)

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoints; the ledger keeps its runs, effects and log."""
        thread_id = check_thread_id(thread_id)
        for key in self._lines_of(thread_id):
            self._lose(key)
        self._store.delete_thread(thread_id)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what the delta channels are built from."""
        config = _checked(config)
        thread_id = str(place_of(config)["thread_id"])
        self._settle(thread_id)
        with self._seal.at(thread_id):
            found = self._store.get_delta_channel_history(config=config, channels=channels)
            if any(past["writes"] or "seed" in past for past in found.values()):
                return found
            # Nothing before it: it is the first, or was read just before `prune` made it need nothing before it.
            whole = self._store.get_tuple(config)
        values: Mapping[str, Any] = whole.checkpoint["channel_values"] if whole else {}
        return {
            name: {"writes": [], "seed": values[name]} if isinstance(values.get(name), _DeltaSnapshot) else past
            for name, past in found.items()
        }

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
        """Return the stored checkpoints, newest first."""
        for found in await self._hop(lambda: [*self.list(config, filter=filter, before=before, limit=limit)]):
            yield found

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, as `put` does; one that stays in memory needs no thread."""
        new = Skipped(config, checkpoint, metadata)
        stays = self._is_behind(config) and not new.is_barrier
        if stays and not self._line(_key(config)).is_forced(checkpoint["id"]):
            return self._put(new, new_versions)
        return await self._hop(self._put, new, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a task wrote, as `put_writes` does."""
        if self._is_behind(config) and not _has_signal(writes):
            self.put_writes(config, writes, task_id, task_path)
            return
        await self._hop(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete a thread's checkpoints."""
        await self._hop(self.delete_thread, thread_id)

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what the delta channels are built from."""
        return await self._hop(lambda: self.get_delta_channel_history(config=config, channels=channels))

    async def _hop(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run in a thread, unless the database is in memory: then nothing blocks."""
        if self._is_memory:
            return function(*args, **kwargs)
        return await asyncio.to_thread(function, *args, **kwargs)


def _checked(config: RunnableConfig) -> RunnableConfig:
    """Return a config with the thread id as the text that is stored."""
    given = place_of(config)
    return {**config, "configurable": {**given, "thread_id": check_thread_id(given.get("thread_id"))}}


def _key(config: RunnableConfig) -> Key:
    given = place_of(config)
    thread_id = str(given["thread_id"]) if RING_KEY in given else check_thread_id(given.get("thread_id"))
    return thread_id, str(given.get("checkpoint_ns", "")), given.get(RING_KEY)


def _check_line(key: Key, line: Behind) -> None:
    if line.is_lost:
        raise ThreadMoved.of(key[0])


def _has_signal(writes: Sequence[tuple[str, Any]]) -> bool:
    """Tell whether they are a pause, an answer or an error.

    The output of a task that has taken its answer is none: the answer itself is stored, and would be taken again.
    """
    channels = {channel for channel, _ in writes}
    return not channels.isdisjoint(_SIGNALS) or channels <= WRITES_IDX_MAP.keys()
