"""What the saver asks of a database; `sqlite_store.py` and `postgres_store.py` are the two that there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from .database import Row
from .resealing import Resealable

Writes = Sequence[tuple[str, Any]]


@dataclass(frozen=True, slots=True)
class TaskWrites:
    """What one task wrote."""

    task_id: str
    task_path: str
    writes: Writes


@dataclass(frozen=True, slots=True)
class Batch:
    """One checkpoint to be stored, with what was written on its parent meanwhile."""

    thread_id: str
    namespace: str
    parent_id: str | None
    checkpoint: Checkpoint
    metadata: Mapping[str, Any]
    """As it is stored: plain JSON."""
    versions: ChannelVersions
    """Of the channels that changed since the parent."""
    writes: Sequence[TaskWrites]
    """The delta channels' writes of the checkpoints in between, which are not stored; in order."""


class Store(Protocol):
    """Checkpoints in a database. Everything is committed before it returns."""

    serde: SerializerProtocol
    sealed_columns: Sequence[SealedColumn]
    """Those of its values; metadata has its own form."""

    def store(self, batch: Batch) -> None:
        """Store a checkpoint with its writes, in one transaction.

        Raises:
            ThreadMoved: If its parent has another child already; then nothing is stored.
        """
        ...

    def add_writes(self, config: RunnableConfig, task: TaskWrites) -> bool:
        """Store what a task wrote; False when another writer's output of the same task was there first."""
        ...

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return a checkpoint, or the newest one."""
        ...

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return checkpoints, newest first."""
        ...

    def replace_history(self, head: Batch) -> int:
        """Drop all before this checkpoint of a thread, which needs no parent then; in one transaction.

        What somebody put behind it meanwhile stays, and a thread that was deleted meanwhile stays deleted. Returns how
        many checkpoints were deleted.
        """
        ...

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread."""
        ...

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what delta channels are built from."""
        ...

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Return a channel's next version."""
        ...


@dataclass(frozen=True, slots=True)
class Stored:
    """Which checkpoint a row of metadata belongs to."""

    checkpoint: Checkpoint
    parent_id: str | None


class Seal(Protocol):
    """What encryption adds to saver and store; `cipher.py` has the one that there is."""

    is_on: bool
    """Whether anything is sealed at all."""

    def at(self, place: str) -> AbstractContextManager[None]:
        """Read and write values for this thread within the block; for any with an empty one."""
        ...

    def seal(self, kind: str, data: bytes, row: str) -> tuple[str, bytes]:
        """Seal a serialized value for the row that a name says."""
        ...

    def open(self, kind: str, data: bytes, row: str) -> tuple[str, bytes]:
        """Open it again."""
        ...

    def is_clear(self, name: str) -> bool:
        """Tell whether the database can search by this entry of the metadata."""
        ...

    def seal_metadata(self, metadata: dict[str, Any], thread_id: str, about: Stored) -> dict[str, Any]:
        """Hide what is not needed for searching."""
        ...

    def open_metadata(self, metadata: dict[str, Any], thread_id: str, about: Stored) -> dict[str, Any]:
        """Show it again."""
        ...


class NoSeal:
    """No encryption."""

    is_on = False

    def at(self, place: str) -> AbstractContextManager[None]:  # noqa: ARG002 -- the contract's
        """Change nothing."""
        return nullcontext()

    def seal(self, kind: str, data: bytes, row: str) -> tuple[str, bytes]:  # noqa: ARG002 -- the contract's
        """Change nothing."""
        return kind, data

    def open(self, kind: str, data: bytes, row: str) -> tuple[str, bytes]:  # noqa: ARG002 -- the contract's
        """Change nothing."""
        return kind, data

    def is_clear(self, name: str) -> bool:  # noqa: ARG002 -- the contract's
        """All can be searched by."""
        return True

    def seal_metadata(self, metadata: dict[str, Any], thread_id: str, about: Stored) -> dict[str, Any]:  # noqa: ARG002 -- the contract's
        """Change nothing."""
        return metadata

    def open_metadata(self, metadata: dict[str, Any], thread_id: str, about: Stored) -> dict[str, Any]:  # noqa: ARG002 -- the contract's
        """Change nothing."""
        return metadata


def name_metadata(checkpoint_id: str) -> str:
    """Name the metadata of a checkpoint, within its thread."""
    return f"metadata {checkpoint_id}"


def name_checkpoint(checkpoint_id: str) -> str:
    """Name the row of a checkpoint, within its thread."""
    return f"checkpoint {checkpoint_id}"


def name_write(checkpoint_id: str, task_id: str, index: int, channel: str) -> str:
    """Name the row of a write, within its thread."""
    return f"write {checkpoint_id} {task_id} {index} {channel}"


def name_blob(channel: str, version: object) -> str:
    """Name the row of a channel's value, within its thread."""
    return f"blob {channel} {version}"


_CHECKPOINT_KEYS: Mapping[str, str | int] = {"thread_id": "", "checkpoint_ns": "", "checkpoint_id": ""}


@dataclass(frozen=True, slots=True)
class SealedColumn:
    """A column whose values are sealed under encryption: with which queries, and how its rows are named."""

    stale: str
    find: str
    put: str
    before: Mapping[str, str | int]
    """What names a row, with values that come before those of any."""
    name_row: Callable[[Row], str]

    def resealable(self, marks: Mapping[str, str | bytes], reseal: Callable[[Row], Row]) -> Resealable:
        """Say how it is sealed anew."""
        return Resealable(self.stale, self.find, self.put, self.before, marks, reseal)


STATES = SealedColumn(
    "stale_states", "find_state", "reseal_state", _CHECKPOINT_KEYS, lambda row: name_checkpoint(row["checkpoint_id"])
)
BLOBS = SealedColumn(
    "stale_blobs",
    "find_blob",
    "reseal_blob",
    {"thread_id": "", "checkpoint_ns": "", "channel": "", "version": ""},
    lambda row: name_blob(row["channel"], row["version"]),
)
WRITES = SealedColumn(
    "stale_writes",
    "find_write",
    "reseal_write",
    {**_CHECKPOINT_KEYS, "task_id": "", "idx": 0},
    lambda row: name_write(row["checkpoint_id"], row["task_id"], row["idx"], row["channel"]),
)
METADATA = SealedColumn(
    "stale_metadata",
    "find_metadata",
    "reseal_metadata",
    _CHECKPOINT_KEYS,
    lambda row: name_metadata(row["checkpoint_id"]),
)

WriteRow = tuple[str, str, str, str, str, int, str, str, bytes]
"""As both stores write it: thread, namespace, checkpoint, task, its path, index, channel, kind and value."""


def sealed_write(seal: Seal, row: WriteRow) -> WriteRow:
    """Return a row of a write with its value sealed."""
    _, _, checkpoint_id, task_id, _, index, channel, kind, value = row
    return (*row[:7], *seal.seal(kind, value, name_write(checkpoint_id, task_id, index, channel)))


def place_of(config: RunnableConfig) -> Mapping[str, Any]:
    """Return where in the database a config points: `thread_id`, `checkpoint_ns` and perhaps `checkpoint_id`."""
    return config.get("configurable", {})
