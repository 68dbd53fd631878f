"""What a run remembers: the typed state of the ring.

Everything is JSON-like data or a LangChain message, so that a checkpoint loads without importing a class of ours.
`TypedDict` comes from `typing_extensions`: with the standard one, Studio sees no input schema before Python 3.12.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self, cast

from langchain_core.messages import AnyMessage
from langgraph.channels import DeltaChannel, LastValue, Topic
from typing_extensions import TypedDict

from .records import Answer, Call, CompactionRecord, Result, RunRecord, TaintSource, ThreadRecord, TrailEntry
from .transcript import fold_messages, fold_taint, fold_trail
from .upgrading import default_of, upgrade
from .usage import UsageRecord

SNAPSHOT_FREQUENCY = 1_000_000
"""A delta channel is stored whole every so many updates; in between only what was added is stored.

So many that LangGraph's own bound comes first (5,000 super-steps): each such copy is as long as the thread, and reading
what was added to a thread costs little more than reading a copy.
"""


DELTA_CHANNELS = {"messages": fold_messages, "trail": fold_trail, "taint": fold_taint, "compactions": fold_trail}
"""The channels that are stored as what was added to them, each with its reducer."""


class Kept(LastValue[Any]):
    """A channel that is replaced whole; loaded, it is what this release reads, whichever wrote it."""

    __slots__ = ()

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Load the channel."""
        loaded = super().from_checkpoint(checkpoint)
        if loaded.is_available():
            loaded.value = upgrade(self.key, loaded.value)
        elif (default := default_of(self.key)) is not None:
            loaded.value = default
        return loaded


class Brought(Topic[Any]):
    """A channel of what tasks and people brought; loaded likewise."""

    __slots__ = ()

    def from_checkpoint(self, checkpoint: Any) -> Self:
        """Load the channel."""
        loaded = super().from_checkpoint(checkpoint)
        loaded.values = upgrade(self.key, loaded.values)
        return loaded


class AgentInput(TypedDict):
    """What a caller gives: the task, as the newest message."""

    messages: Annotated[list[AnyMessage], DeltaChannel(fold_messages, list, snapshot_frequency=SNAPSHOT_FREQUENCY)]


class AgentState(TypedDict):
    """The channels of the ring. All are there once `observe` has taken the first task in."""

    messages: Annotated[list[AnyMessage], DeltaChannel(fold_messages, list, snapshot_frequency=SNAPSHOT_FREQUENCY)]
    """The transcript that the model sees. Each call has its result right behind it, exactly once."""
    run: Annotated[RunRecord, Kept(dict)]
    """The run that is on, or was last. Replaced whole."""
    usage: Annotated[UsageRecord, Kept(dict)]
    """What this run has used. Replaced whole; starts at zero with a new task."""
    decision: dict[str, Any] | None
    """What `reason` decided (`loopwright.state.Decision`, dumped); cleared by `guard`, who consumes it."""
    turn: Annotated[list[Call], Kept(list)]
    """The calls on the table. Replaced whole; emptied by `observe`."""
    thread: Annotated[ThreadRecord, Kept(dict)]
    """What outlives a run: totals, the loop guard's memory, the schema version. Replaced whole."""
    results: Annotated[list[Result], Brought(dict)]
    """What the `act` tasks brought back; gone after one super-step."""
    answers: Annotated[list[Answer], Brought(dict)]
    """What a person's resume brought; gone after one super-step."""
    trail: Annotated[list[TrailEntry], DeltaChannel(fold_trail, list, snapshot_frequency=SNAPSHOT_FREQUENCY)]
    """One small record a call, over all runs of the thread. Appended."""
    taint: Annotated[list[TaintSource], DeltaChannel(fold_taint, list, snapshot_frequency=SNAPSHOT_FREQUENCY)]
    """Where the text by strangers came from that is in the transcript, or in what was made of it. Appended."""
    compactions: Annotated[
        list[CompactionRecord], DeltaChannel(fold_trail, list, snapshot_frequency=SNAPSHOT_FREQUENCY)
    ]
    """What the model is no longer sent whole, once the transcript has outgrown its context window. Appended."""


def current_run(values: Mapping[str, object]) -> RunRecord | None:
    """Return the run that a thread's state holds; None for a thread that has not begun."""
    return cast("RunRecord | None", values.get("run"))


def current_thread(values: Mapping[str, object]) -> ThreadRecord | None:
    """Return what outlives the runs; None for a thread that has not begun."""
    return cast("ThreadRecord | None", values.get("thread"))
