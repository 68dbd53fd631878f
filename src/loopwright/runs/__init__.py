"""Embedding, resuming, deciding: the runs of an agent."""

from __future__ import annotations

from .results import Event, EventKind, Receipt, Run, RunResult, receipt_of
from .runs import Runs
from .sync_runs import SyncRuns

__all__ = ["Event", "EventKind", "Receipt", "Run", "RunResult", "Runs", "SyncRuns", "receipt_of"]
