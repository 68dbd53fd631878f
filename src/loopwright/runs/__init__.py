"""Embedding, resuming, deciding: the runs of an agent."""

from __future__ import annotations

from .options import DrivingOptions, ExtendOptions, RunOptions
from .results import Event, EventKind, Parked, Receipt, Run, RunResult, parked_of, receipt_of
from .runs import Runs
from .sync_runs import SyncRuns

__all__ = [
    "DrivingOptions",
    "Event",
    "EventKind",
    "ExtendOptions",
    "Parked",
    "Receipt",
    "Run",
    "RunOptions",
    "RunResult",
    "Runs",
    "SyncRuns",
    "parked_of",
    "receipt_of",
]
