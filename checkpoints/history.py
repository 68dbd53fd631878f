"""What a delta channel is built from: the writes on its ancestors, from the nearest stored value on."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from langgraph.checkpoint.base import DeltaChannelHistory
from langgraph.checkpoint.serde.base import SerializerProtocol

Written = tuple[Any, str, str, str, int, str, bytes, str]
"""A stored write: what orders its checkpoint, channel, task path, task, index, type, value, and id of the checkpoint.

A checkpoint is ordered by its place in `Chain.ids`; in a straight chain by its id, too."""
_ORDER = itemgetter(0, 2, 3, 4)
"""LangGraph's `writes_sort_key`, within the order of the checkpoints."""


class Chain:
    """The ancestors of a checkpoint, walked from the newest to where every channel has a stored value.

    LangGraph's own walk deserializes each ancestor to see whether it holds a value. The counters in its metadata say
    so: a channel that was updated since it was last stored is not stored here. Only where they say nothing, as in what
    another saver wrote or `prune` left, is the checkpoint itself looked at.
    """

    def __init__(self, channels: Sequence[str]) -> None:
        """Begin at the checkpoint whose ancestors are asked for; its own writes do not count."""
        self._channels = channels
        self._open = {channel: f"{json.dumps(channel)}:" for channel in channels}
        self._seen: set[str] = set()
        self._walked: list[str] = []
        self._seeds: dict[str, tuple[int, Any]] = {}

    @property
    def ids(self) -> list[str]:
        """The ancestors, oldest first."""
        return self._walked[::-1]

    @property
    def is_over(self) -> bool:
        """Whether every channel has its stored value."""
        return not self._open

    def enter(self, checkpoint_id: str) -> bool:
        """Go to the next ancestor; False where a checkpoint comes again, as one does that was put behind its child."""
        if checkpoint_id in self._seen:
            return False
        self._seen.add(checkpoint_id)
        self._walked.append(checkpoint_id)
        return True

    def walk(self, parents: Mapping[str, str | None], newest: str | None) -> None:
        """Enter all ancestors of a checkpoint, as far as they are there."""
        parent = parents.get(newest or "")
        while parent is not None and parent in parents and self.enter(parent):
            parent = parents[parent]

    def is_straight(self, line: Mapping[str, object], newest: str | None) -> bool:
        """Tell whether a thread is nothing but this chain and the checkpoint that it leads to, in the order of ids.

        Then all writes that stand before it count, and none need be sought ancestor by ancestor.
        """
        ids = [*self.ids, newest or ""]
        return not self._seeds and len(line) == len(ids) and ids == sorted(ids)

    def of_ancestors(self, rows: Iterable[Written]) -> list[Written]:
        """Return those that were written on an ancestor, of rows that begin with the id of a checkpoint."""
        return [row for row in rows if row[0] in self._seen]

    def may_hold(self, counters: str | None) -> bool:
        """Tell whether this ancestor may hold a value, by the JSON text of its `counters_since_delta_snapshot`."""
        return counters is None or any(name not in counters for name in self._open.values())

    def look_into(self, values: Mapping[str, Any]) -> None:
        """Take the stored values of this ancestor's channels."""
        for channel in [channel for channel in self._open if channel in values]:
            self._seeds[channel] = len(self._walked), values[channel]
            del self._open[channel]

    def history(self, rows: Iterable[Written], serde: SerializerProtocol) -> dict[str, DeltaChannelHistory]:
        """Put the stored values and the writes together, oldest first."""
        found: dict[str, DeltaChannelHistory] = {channel: {"writes": []} for channel in self._channels}
        oldest: dict[str, int] = {}
        for channel, (number, value) in self._seeds.items():
            found[channel]["seed"] = value
            oldest[channel] = len(self._walked) - number
        lists = {channel: history["writes"] for channel, history in found.items()}
        load = serde.loads_typed
        for place, channel, _, task_id, _, kind, value, _ in sorted(rows, key=_ORDER):
            if channel not in oldest or place >= oldest[channel]:
                lists[channel].append((task_id, channel, load((kind, value))))
        return found
