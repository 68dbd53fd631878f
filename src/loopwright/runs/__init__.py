"""Embedding, resuming, deciding: the runs of an agent."""

from __future__ import annotations

from .options import DrivingOptions, ExtendOptions, RunOptions
from .results import Event, EventKind, Receipt, Run, RunResult, receipt_of
from .runs import Runs
from .sync_runs import SyncRuns

__all__ = [
    "DrivingOptions",
    "Event",
    "EventKind",
    "ExtendOptions",
    "Receipt",
    "Run",
    "RunOptions",
    "RunResult",
    "Runs",
    "SyncRuns",
    "receipt_of",
]
