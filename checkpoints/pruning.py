"""Retention: what is finished shrinks to its last state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from langgraph.checkpoint.serde.types import INTERRUPT

from loopwright.state import SCHEMA_VERSION

from .ledger import Ledger
from .saver import Saver


@dataclass(frozen=True, slots=True)
class PruneReport:
    """What pruning did."""

    threads: int
    """Threads that were shrunk."""
    checkpoints: int
    """Checkpoints that were deleted."""
    busy: int
    """Threads that somebody was driving just then, or that wait on a branch, or that a newer release wrote; they were
    left alone."""


def prune(saver: Saver, ledger: Ledger, *, before: float) -> PruneReport:
    """Shrink every thread whose runs have all ended by a time.

    Its last checkpoint stays, with the whole transcript and trail; so it can be read, and carried on with a new task.
    Older checkpoints go, and with them time travel into the past; the rows of settled attempts go too. Runs, approvals,
    effects (their keys hold for the ledger's life) and the log stay. Whatever runs or waits is not touched.

    Args:
        saver: Of the checkpoints.
        ledger: Beside it.
        before: Seconds since the epoch: threads that ended later are left alone.
    """
    threads = checkpoints = busy = 0
    for thread_id in ledger.runs.finished_threads(before):
        lease = ledger.leases.take(thread_id)
        if lease is None:
            busy += 1
            continue
        try:
            if not _is_over(saver, thread_id):
                busy += 1
                continue
            deleted = saver.squash(thread_id)
            ledger.spend.forget(thread_id)
        finally:
            ledger.leases.release(lease)
        threads += bool(deleted)
        checkpoints += deleted
    return PruneReport(threads, checkpoints, busy)


def _is_over(saver: Saver, thread_id: str) -> bool:
    """Tell whether a thread's newest state asks nothing, and can be read here: the ledger may know only of its end."""
    found = saver.get_tuple({"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}})
    if found is None:
        return True
    thread: dict[str, Any] = found.checkpoint["channel_values"].get("thread") or {}
    waits = any(channel == INTERRUPT for _, channel, _ in found.pending_writes or ())
    version: float = thread.get("version", 0)
    return not waits and version <= SCHEMA_VERSION
