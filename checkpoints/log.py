"""The log: an append-only, hash-chained record of decisions and effects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loopwright.state import canonical

from .database import Database, Row


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One thing that was decided or done."""

    number: int
    at: float
    thread_id: str
    run_id: str
    event: str
    """`asked`, `decided`, `claimed`, `settled`, `unknown`, `resolved`, `cancelled`, `began` or `ended`."""
    data: dict[str, Any]
    previous: str
    hash: str
    """SHA-256 over this record and the hash before it: a changed, missing or moved record breaks the chain."""


class Log:
    """Appends in the transaction of what it records, so that the two cannot part."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Put the log over its table."""
        self._database = database
        self._clock = clock

    def append(self, event: str, *, thread_id: str, run_id: str, **data: Any) -> None:
        """Record one event; joins the open transaction."""
        with self._database.transaction():
            last = self._database.query("last_log")
            number, previous = (last[0]["number"] + 1, last[0]["hash"]) if last else (1, "")
            at, text = self._clock(), canonical(data)
            chained = canonical([number, at, thread_id, run_id, event, text, previous])
            self._database.write(
                "append_log",
                number=number,
                at=at,
                thread_id=thread_id,
                run_id=run_id,
                event=event,
                data=text,
                previous=previous,
                hash=hashlib.sha256(chained.encode()).hexdigest(),
            )

    def records(self, run_id: str = "") -> list[LogRecord]:
        """Return the records of a run, or all, oldest first."""
        return [_record(row) for row in self._database.query("log_of_run", run_id=run_id)]


def _record(row: Row) -> LogRecord:
    return LogRecord(**{**row, "data": json.loads(row["data"])})
