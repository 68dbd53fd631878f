"""The log: an append-only, hash-chained record of decisions and effects."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loopwright.errors import StorageCorrupt
from loopwright.state import canonical

from .database import Database, Row
from .listing import check_moment


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One thing that was decided or done."""

    number: int
    at: float
    thread_id: str
    run_id: str
    event: str
    """`asked`, `voted`, `decided`, `cancelled`, `claimed`, `settled`, `late`, `unknown`, `resolved`, `began`, `ended`
    or, on a branch, `reopened`."""
    data: dict[str, Any]
    previous: str
    hash: str
    """SHA-256 over this record and the hash before it: a changed, missing or moved record breaks the chain."""


@dataclass(frozen=True, slots=True)
class LogReport:
    """What verifying the log found."""

    records: int
    problems: tuple[str, ...]
    """One sentence each; empty when the log is whole."""

    @property
    def is_whole(self) -> bool:
        """Whether nothing was changed, moved, left out or added."""
        return not self.problems


class Log:
    """Appends in the transaction of what it records, so that the two cannot part."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Put the log over its table."""
        self._database = database
        self._clock = clock

    def append(self, event: str, *, thread_id: str, run_id: str, **data: Any) -> None:
        """Record one event; joins the open transaction."""
        with self._database.serial():
            head = self._head()
            if head is None:
                text = f"the head of the log in {self._database.name} is gone: nothing can be chained to it; "
                raise StorageCorrupt(text + "restore the database from a backup", database=self._database.name)
            values: dict[str, Any] = {
                "number": head["number"] + 1,
                "at": self._clock(),
                "thread_id": thread_id,
                "run_id": run_id,
                "event": event,
                "data": canonical(data),
                "previous": head["hash"],
            }
            hash_ = _hash(values)
            moved = {"number": values["number"], "hash": hash_}
            self._database.together([("append_log", {"hash": hash_, **values}), ("move_log_head", moved)])

    def verify(self) -> LogReport:
        """Recompute the chain: finds every record that was changed, moved, left out or added since it was written."""
        problems: list[str] = []
        expected, previous = 1, ""
        rows = self._database.query("whole_log")
        for row in rows:
            if row["number"] != expected:
                problems.append(f"record {expected} is missing: record {row['number']} stands in its place")
            if row["previous"] != previous:
                problems.append(f"record {row['number']} does not follow the one before it")
            if row["hash"] != _hash(row):
                problems.append(f"record {row['number']} was changed")
            expected, previous = row["number"] + 1, row["hash"]
        head = self._head()
        if head is None:
            problems.append("what the newest record should be is not known: the head of the log is gone")
        elif (head["number"], head["hash"]) != (expected - 1, previous):
            problems.append(f"the newest record should be number {head['number']}, and is number {expected - 1}")
        return LogReport(len(rows), tuple(problems))

    def _head(self) -> Row | None:
        """Return number and hash of the newest record; None when somebody deleted that row."""
        rows = self._database.query("last_log")
        return rows[0] if rows else None

    def records(self, run_id: str = "", *, since: float = 0.0, until: float = math.inf) -> list[LogRecord]:
        """Return the records of a run, or of all, oldest first: those from `since` on and before `until`.

        Raises:
            ConfigurationError: If a time is no number.
        """
        check_moment("since", since)
        check_moment("until", until)
        if run_id:
            rows = self._database.query("log_of_run", run_id=run_id)
            rows = [row for row in rows if since <= row["at"] < until]
        else:
            rows = self._database.query("log_between", since=since, until=until)
            rows.sort(key=lambda row: int(row["number"]))
        return [_record(row) for row in rows]


def _hash(row: Row) -> str:
    """Chain a record to the one before it."""
    chained = canonical([row[name] for name in ("number", "at", "thread_id", "run_id", "event", "data", "previous")])
    return hashlib.sha256(chained.encode()).hexdigest()


def _record(row: Row) -> LogRecord:
    return LogRecord(**{**row, "data": json.loads(row["data"])})
