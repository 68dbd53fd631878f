"""What is stored beside a checkpoint: LangGraph's own metadata, and what the caller gave as metadata."""

from __future__ import annotations

import math
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointMetadata, get_checkpoint_metadata

from loopwright.state import storable_data

from .behind import Skipped

FORK_KEY = "__loopwright_fork"
"""In `configurable`: the checkpoint that the caller named to go on from, and so asked for a branch of its own."""


FAR = 1_000
"""Super-steps; LangGraph makes its copies after 5,000."""


def hold_off_copies(metadata: CheckpointMetadata) -> None:
    """Keep LangGraph from storing the long channels whole, again and again, as a thread grows.

    It does so each time that its counters, which a run carries on in this very dict, have come far enough, so that a
    reader need not go further back. Here a reader finds all that was added to a thread by one query, and the copies
    would make a thread's size grow with the square of its length. So the counters begin anew in time. Copies that are
    made for another reason, as for a branch, have nothing to do with them.
    """
    counters = metadata.get("counters_since_delta_snapshot") or {}
    for channel, (updates, super_steps) in counters.items():
        if super_steps >= FAR:
            counters[channel] = (min(updates, 1), 1)


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
