"""Squashing: a thread's newest checkpoint, made to need none before it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from langgraph.checkpoint.base import Checkpoint, CheckpointTuple, DeltaChannelHistory
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name

from loopwright.state import DELTA_CHANNELS

from .store import Batch, Seal, Stored


def squashed(thread_id: str, newest: CheckpointTuple, history: Mapping[str, DeltaChannelHistory], seal: Seal) -> Batch:
    """Return the checkpoint with its delta channels stored whole."""
    known = newest.checkpoint["channel_versions"]  # a value without a version would be lost, or be taken for a mark
    values = {name: _DeltaSnapshot(_rebuilt(name, past)) for name, past in history.items() if name in known}
    merged = {**newest.checkpoint["channel_values"], **values}
    checkpoint = cast("Checkpoint", {**newest.checkpoint, "channel_values": merged})
    kept = {name: value for name, value in newest.metadata.items() if name != "counters_since_delta_snapshot"}
    metadata = seal.seal_metadata(kept, thread_id, Stored(checkpoint, None))
    return Batch(thread_id, "", None, checkpoint, metadata, dict(checkpoint["channel_versions"]), ())


def _rebuilt(name: str, past: DeltaChannelHistory) -> list[Any]:
    """Return a delta channel's value, as LangGraph would rebuild it."""
    seed: Any = past.get("seed")
    base = seed.value if isinstance(seed, _DeltaSnapshot) else seed
    return DELTA_CHANNELS[name](base, [value for _, _, value in past["writes"]])
