"""What write-behind keeps in memory of one thread: everything since its newest stored checkpoint."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata

from loopwright.state import DELTA_CHANNELS

from .barriers import is_barrier
from .store import TaskWrites

Key = tuple[str, str, object]
"""Thread id, namespace, and the call of the agent that drives it: two callers of one thread share nothing."""

_BEHIND = "~000000000"
"""Sorts behind every task that LangGraph names, by id and by path."""


@dataclass(frozen=True)
class Skipped:
    """A checkpoint that was put."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata

    @cached_property
    def is_barrier(self) -> bool:
        """Whether it must be stored at once."""
        return is_barrier(self.checkpoint, self.metadata)


class Behind:
    """The line of checkpoints from the newest stored one, the anchor, to the newest one.

    Only the newest is ever stored. What the skipped ones held is in it, save for the delta channels: their values
    LangGraph rebuilds from the writes on all ancestors. So the skipped writes go onto the anchor, in order, under a
    task id of its own that sorts behind its real ones, as LangGraph's own `exit` durability does.

    Lists that follow each other in a channel become one: every such channel is a fold over the items, and a reader
    pays for each row.
    """

    def __init__(self) -> None:
        """Begin with nothing known."""
        self.lock = threading.RLock()
        self.is_lost = False
        """Whether it ends here: another call has carried the thread on, or somebody deleted it."""
        self.anchor: str | None = None
        self.newest: Skipped | None = None
        self.versions: dict[str, Any] = {}
        self._writes: list[tuple[str, Any]] = []
        self._first_task = ""
        self._loose: dict[str, list[TaskWrites]] = {}
        self._forced: set[str] = set()

    def advance(self, parent: str | None, new: Skipped, versions: Mapping[str, Any]) -> None:
        """Take in a checkpoint that was put behind `parent`."""
        if self.newest is None or self.newest.checkpoint["id"] != parent:
            self.anchor, self.versions, self._writes = parent, {}, []
        for task in self._loose.pop(parent or "", ()):
            for channel, value in task.writes:
                if channel in DELTA_CHANNELS:
                    self._append(task, channel, value)
        self._loose = {name: tasks for name, tasks in self._loose.items() if name > (parent or "")}
        self.versions.update(versions)
        self.newest = new

    def _append(self, task: TaskWrites, channel: str, value: Any) -> None:
        """Add a write behind the others of its channel, or to the last of them."""
        if not self._writes:
            self._first_task = task.task_id
        places = [place for place, write in enumerate(self._writes) if write[0] == channel]
        before: Any = self._writes[places[-1]][1] if places else None
        if type(before) is type(value) is list:
            self._writes[places[-1]] = channel, before + value
        else:
            self._writes.append((channel, value))

    @property
    def writes(self) -> list[TaskWrites]:
        """What was written to delta channels since the anchor, as it is stored there."""
        if not self._writes:
            return []
        return [TaskWrites(f"{_BEHIND}-{self._first_task[:8]}", _BEHIND, self._writes)]

    def keep(self, checkpoint_id: str, task: TaskWrites) -> None:
        """Keep what a task wrote on a checkpoint, which may be put only after; late for a superseded one, drop it."""
        if self.newest is None or checkpoint_id >= self.newest.checkpoint["id"]:
            self._loose.setdefault(checkpoint_id, []).append(task)

    def take(self, checkpoint_id: str) -> list[TaskWrites]:
        """Give out what is kept on a checkpoint, to be stored in place; on one not yet put, see that it is stored."""
        if checkpoint_id != self.anchor and not self.needs_storing(checkpoint_id):
            self._forced.add(checkpoint_id)
        return self._loose.pop(checkpoint_id, [])

    def needs_storing(self, checkpoint_id: str) -> bool:
        """Tell whether that checkpoint is the newest, and stands in memory only."""
        return self.newest is not None and self.newest.checkpoint["id"] == checkpoint_id

    def is_forced(self, checkpoint_id: str) -> bool:
        """Tell whether a checkpoint must be stored although it is no barrier: a pause or an error was written on it."""
        return checkpoint_id in self._forced

    def must_store(self) -> bool:
        """Tell whether the newest must be stored at once."""
        return self.newest is not None and (self.newest.is_barrier or self.is_forced(self.newest.checkpoint["id"]))

    def stored(self) -> None:
        """Note that the newest is stored: it is the anchor from now on."""
        if self.newest is not None:
            self.anchor = self.newest.checkpoint["id"]
            self._forced.discard(self.anchor)
        self.newest, self.versions, self._writes = None, {}, []
