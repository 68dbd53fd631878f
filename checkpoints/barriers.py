"""Which checkpoints must be stored at once. Pure functions.

Between two barriers only reads happen and only models are called whose replies hold no calls: a crash there repeats
reads, and nothing else. What each barrier guards:

* the input, and its message in the transcript: from then on a task counts as taken in;
* a reply with calls, or with an answer that is still to be judged: it was paid for, and what a check said of it counts;
* a summary: it was paid for, and the transcript is sent without what it stands for;
* before a call that changes something: the verdict, and whoever gave it, stand before the effect;
* a pause, an error: handled where they are written, not here;
* a snapshot of a delta channel: what was folded into it is dropped from memory;
* the end: the answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from langgraph.checkpoint.base import Checkpoint, CheckpointMetadata
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name
from langgraph.constants import TASKS

from loopwright.state import Purpose

_OBSERVE = "branch:to:observe"
_NEXT = "branch:to:"
"""LangGraph's channels that say which node is next."""


def is_barrier(checkpoint: Checkpoint, metadata: CheckpointMetadata) -> bool:
    """Tell whether this checkpoint of the ring must be stored before anything else happens."""
    values: Mapping[str, Any] = checkpoint["channel_values"]
    sends: Iterable[Any] = values.get(TASKS) or ()
    decision: Mapping[str, Any] = values.get("decision") or {}
    return (
        metadata.get("source") != "loop"
        or (_OBSERVE in values and not values.get("results"))
        or decision.get("kind") == "call_tools"
        or decision.get("is_checked") is True
        or _is_summary(values)
        or any(_changes_something(send) for send in sends)
        or any(isinstance(value, _DeltaSnapshot) for value in values.values())
        or _is_end(values)
    )


def _changes_something(send: Any) -> bool:
    return bool(send.node == "act" and send.arg["call"]["changes"])


def _is_summary(values: Mapping[str, Any]) -> bool:
    run: Mapping[str, Any] = values.get("run") or {}
    return bool(run.get("purpose") == Purpose.SUMMARISE and values.get("decision"))


def _is_end(values: Mapping[str, Any]) -> bool:
    """Tell whether nothing is next: no node's channel is set, and no call is sent."""
    return not any(name.startswith(_NEXT) for name in values) and not values.get(TASKS)
