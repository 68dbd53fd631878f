"""What is stored beside a checkpoint: LangGraph's own metadata, and what the caller gave as metadata."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointMetadata, get_checkpoint_metadata

from loopwright.state import storable_data

from .behind import Skipped

FORK_KEY = "__loopwright_fork"
"""In `configurable`: the checkpoint that the caller named to go on from, and so asked for a branch of its own."""


FAR = 1_000
"""Super-steps; LangGraph makes its copies after 5,000."""
FIRST_STEP = -1
"""The number that LangGraph gives to a thread's first super-step, its input."""
SET_BACK = 10**9
"""By so much a counter is set back that has come far: more super-steps than any thread will see."""


def hold_off_copies(metadata: CheckpointMetadata) -> None:
    """Keep LangGraph from storing the long channels whole, again and again, as a thread grows.

    It does so each time that its counters, which a run carries on in this very dict, have come far enough, so that a
    reader need not go further back. Here a reader finds all that was added to a thread by one query, and the copies
    would make a thread's size grow with the square of its length. So the counters are set back, once. Copies that are
    made for another reason, as for a branch, have nothing to do with them.
    """
    counters = metadata.get("counters_since_delta_snapshot") or {}
    for channel, (updates, super_steps) in counters.items():
        if super_steps >= FAR:
            counters[channel] = (min(updates, 1), super_steps - SET_BACK)


def is_stored_nowhere(metadata: Mapping[str, Any], channels: Sequence[str]) -> bool:
    """Tell by a checkpoint's metadata that no ancestor of it holds a value of any of these delta channels.

    A counter begins anew with each stored value, and goes on in each super-step: one that has counted them all, from
    the thread's first on, has never begun anew. But for what `prune` stores, who makes a thread's newest checkpoint its
    oldest: a run that goes on just then counts on.
    """
    step: Any = metadata.get("step")
    counters: Mapping[str, tuple[int, int]] = metadata.get("counters_since_delta_snapshot") or {}
    if not isinstance(step, int):
        return False
    all_steps = {step - FIRST_STEP + 1, step - FIRST_STEP + 1 - SET_BACK}
    return all(counters.get(channel, (0, 0))[1] in all_steps for channel in channels)


def is_first(metadata: Mapping[str, Any] | None) -> bool:
    """Tell by its metadata whether a checkpoint is the first that a thread ever had."""
    return metadata is not None and metadata.get("step") == FIRST_STEP


def metadata_of(new: Skipped, parent_id: str | None) -> dict[str, Any]:
    """Return a checkpoint's metadata, as plain JSON.

    Only the first checkpoint of a branch is marked as one: from there on it has one history, as any other.
    LangGraph would also copy each plain value of `configurable`, in the clear: a key or a header among them too.
    """
    given, configurable = new.config.get("metadata") or {}, new.config.get("configurable") or {}
    named = {name: value for name, value in given.items() if name not in configurable}
    own = cast("CheckpointMetadata", storable_data(_json_like(new.metadata)))
    stored: dict[str, Any] = {**get_checkpoint_metadata({"metadata": storable_data(_json_like(named))}, own)}
    stored.pop("writes", None)
    return {**stored, "is_fork": True} if parent_id and configurable.get(FORK_KEY) == parent_id else stored


def _json_like(value: Any) -> Any:
    """Return metadata as JSON that every database takes; what JSON does not know becomes its text."""
    if value is None or isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, dict):
        return {str(key): _json_like(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_json_like(item) for item in cast("list[Any]", value)]
    return repr(value)
