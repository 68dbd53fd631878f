"""Runs and leases: what is there, how it stands, and who drives it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.errors import StorageCorrupt
from loopwright.state import RunStatus, StopReason

from .database import Database, Row
from .listing import check_limit, check_moment, check_status
from .log import Log

PLAIN_INVOKE = "(invoke)"
"""The agent of a run that its caller drives: it lives in that program, and nobody else may carry it on."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What was noted when a run was taken in; empty texts in what 0.1.0 noted."""

    message: str
    """A digest of the whole message."""
    binding: str
    """Of the agent: see `AgentSpec.binding`."""


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run, as the ledger lists it."""

    id: str
    thread_id: str
    agent: str
    """Where another process finds the agent, `package.module:name`; empty when nobody said."""
    task: str
    input: str
    """The message of a run that the ring has not yet taken in."""
    status: str
    reason: str
    cancel_by: str
    worker: str
    cost_nano: int
    created_at: float
    updated_at: float
    requester: str = ""
    """For whom it runs; empty when nobody said."""
    labels: str = ""
    """JSON; empty for none."""
    added: str = ""
    """JSON: what was added to its limits, one entry each time; empty for nothing."""
    context: str = ""
    """What its caller gave it besides its message: JSON, without secrets; empty for nothing."""
    state: str = ""
    """What its caller gave open channels of the state, while the ring has not yet taken it in: JSON; empty for
    nothing."""
    parked_until: float | None = None
    """Until when it waits for a rate; known where runs are listed."""

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen any more."""
        return self.standing.is_final

    @property
    def standing(self) -> RunStatus:
        """How it stands.

        Raises:
            StorageCorrupt: If what is stored is no status: under encryption too, it is not sealed.
        """
        try:
            return RunStatus(self.status)
        except ValueError:
            raise self._changed("status") from None

    @property
    def stop_reason(self) -> StopReason | None:
        """Why it ended; None while it has not.

        Raises:
            StorageCorrupt: If what is stored is no reason; likewise.
        """
        try:
            return StopReason(self.reason) if self.reason else None
        except ValueError:
            raise self._changed("reason") from None

    def _changed(self, column: str) -> StorageCorrupt:
        text = f"the {column} of run {self.id!r} is none that loopwright wrote; restore the database from a backup"
        return StorageCorrupt(text, run_id=self.id, column=column)

    @property
    def is_plain(self) -> bool:
        """Whether its caller drives it: a plain `agent.invoke`."""
        return self.agent == PLAIN_INVOKE


class RunTable:
    """The runs."""

    def __init__(self, database: Database, log: Log, clock: Callable[[], float]) -> None:
        """Put the runs over their table."""
        self._database = database
        self._log = log
        self._clock = clock

    def start(
        self,
        run_id: str,
        *,
        thread_id: str,
        agent: str,
        message: str,
        task: str,
        requester: str = "",
        labels: Mapping[str, str] | None = None,
        context: str = "",
        state: str = "",
    ) -> None:
        """Note that a run was asked for; a second time changes nothing."""
        values = {"thread_id": thread_id, "agent": agent, "task": task, "requester": requester}
        given = {"labels": dump_labels(labels), "context": context, "state": state}
        self._database.write("start_run", id=run_id, input=message, now=self._clock(), **given, **values)

    def begin(
        self,
        run_id: str,
        *,
        thread_id: str,
        agent: str,
        task: str,
        requester: str = "",
        labels: Mapping[str, str] | None = None,
        begun: Begun | None = None,
    ) -> Sequence[str]:
        """Note that the ring has taken the task in, and end what the thread left unfinished before it.

        Returns:
            The ids of the runs that were ended: what they ask is still open.
        """
        noted = {"message": begun.message, "binding": begun.binding} if begun else {}
        with self._database.serial():
            ended = [row.id for row in self.others(run_id, thread_id)]
            for other in ended:
                self.set_status(other, RunStatus.CANCELLED, reason="cancelled")
            values = {"thread_id": thread_id, "agent": agent, "task": task, "requester": requester}
            self._database.write("begin_run", id=run_id, labels=dump_labels(labels), now=self._clock(), **values)
            self._log.append("began", thread_id=thread_id, run_id=run_id, task=task, **noted)
            return ended

    def set_status(self, run_id: str, status: RunStatus, *, reason: str = "", cost_nano: int = 0) -> None:
        """Note how a run stands; a run that has ended stays as it ended."""
        now = self._clock()
        self._database.write(
            "set_run_status", id=run_id, status=status.value, reason=reason, cost_nano=cost_nano, now=now
        )

    def end(
        self, run_id: str, status: RunStatus, *, thread_id: str, reason: str, cost_nano: int, error: str = ""
    ) -> None:
        """Note that a run has ended, in the log too; with the error of one that no state could keep."""
        noted = {"error": error} if error else {}
        with self._database.serial():
            self.set_status(run_id, status, reason=reason, cost_nano=cost_nano)
            self._log.append("ended", thread_id=thread_id, run_id=run_id, status=status.value, reason=reason, **noted)

    def error_of(self, run_id: str) -> str:
        """Return the error that was noted when a run ended; empty for none."""
        return next(
            (str(each.data.get("error", "")) for each in self._log.records(run_id) if each.event == "ended"), ""
        )

    def begun(self, run_id: str) -> Begun | None:
        """Return what was noted when a run was first taken in; None for one that was not yet."""
        for record in self._log.records(run_id):
            if record.event == "began":
                return Begun(record.data.get("message", ""), record.data.get("binding", ""))
        return None

    def others(self, run_id: str, thread_id: str) -> Sequence[RunRow]:
        """Return the other runs of a thread that were taken in and have not ended."""
        rows = self._database.query("other_unfinished_runs", thread_id=thread_id, id=run_id)
        return [_run(row) for row in rows if not row["input"]]

    def reopen(self, run_id: str, thread_id: str) -> None:
        """Note that a run which has ended goes on, on another branch of its thread."""
        with self._database.serial():
            if self._database.write("reopen_run", id=run_id, now=self._clock()):
                self._log.append("reopened", thread_id=thread_id, run_id=run_id)

    def set_worker(self, run_id: str, worker: str) -> None:
        """Note who drives the run now."""
        self._database.write("set_run_worker", id=run_id, worker=worker)

    def cancel(self, run_id: str, by: str) -> bool:
        """Ask for a run's end; False when it has ended already, or somebody asked before."""
        with self._database.serial():
            won = bool(self._database.write("cancel_run", id=run_id, by=by, now=self._clock()))
            row = self.find(run_id)
            if won and row is not None:
                self._log.append("cancelled", thread_id=row.thread_id, run_id=run_id, by=by)
        return won

    def extend(self, row: RunRow, extension: Mapping[str, Any]) -> bool:
        """Let a stopped run go on with more; False when it is no longer as `row` says.

        Args:
            row: As it was read.
            extension: What is added, as plain data, with `by`.
        """
        added = json.dumps([*extensions_of(row), extension])
        with self._database.serial():
            won = self._database.write("extend_run", id=row.id, added=added, before=row.added, now=self._clock())
            if won:
                self._log.append("extended", thread_id=row.thread_id, run_id=row.id, **extension)
        return bool(won)

    def find(self, run_id: str) -> RunRow | None:
        """Return a run, or None."""
        rows = self._database.query("find_run", id=run_id)
        return _run(rows[0]) if rows else None

    def list(
        self,
        *,
        status: str = "",
        thread_id: str = "",
        since: float = 0.0,
        before: float = math.inf,
        limit: int = 50,
    ) -> Sequence[RunRow]:
        """Return runs, newest first.

        Args:
            status: Only of runs that stand so; empty for any.
            thread_id: Only of this thread; empty for any.
            since: Only what was started then or later; in seconds since the epoch.
            before: Only what was started earlier than that.
            limit: How many at most.

        Raises:
            ConfigurationError: If the status is none, the limit no number of runs, or a time no number.
        """
        check_status(status)
        check_limit(limit)
        check_moment("since", since)
        check_moment("before", before)
        wanted: dict[str, Any] = {"since": since, "before": before, "limit": limit}
        if thread_id:
            rows = self._database.query("list_runs_of_thread", thread_id=thread_id, status=status, **wanted)
        elif status:
            rows = self._database.query("list_runs_of_status", status=status, **wanted)
        else:
            rows = self._database.query("list_runs", **wanted)
        return [_run(row) for row in rows]

    def unfinished(self) -> Sequence[RunRow]:
        """Return what no live worker drives although something is to be done, oldest first."""
        return [_run(row) for row in self._database.query("unfinished_runs", now=self._clock())]

    def finished_threads(self, before: float) -> Sequence[str]:
        """Return the threads of which every run has ended by a time (seconds since the epoch)."""
        return [row["thread_id"] for row in self._database.query("finished_threads", before=before)]

    def matching(self, prefix: str) -> Sequence[str]:
        """Return up to three run ids that begin so."""
        return [row["id"] for row in self._database.query("find_runs_by_prefix", prefix=prefix)]


def dump_labels(labels: Mapping[str, str] | None) -> str:
    """Return labels as they are stored: the same text for the same labels."""
    return json.dumps(labels, sort_keys=True) if labels else ""


def labels_of(row: RunRow) -> dict[str, str]:
    """Return a run's labels."""
    return dict(json.loads(row.labels)) if row.labels else {}


def extensions_of(row: RunRow) -> list[dict[str, Any]]:
    """Return what was added to a run's limits, oldest first."""
    return list(json.loads(row.added)) if row.added else []


def _run(row: Row) -> RunRow:
    return RunRow(**{column: value for column, value in row.items() if column != "seal"})


@dataclass(frozen=True, slots=True)
class Lease:
    """Who drives a thread, until when."""

    thread_id: str
    owner: str
    token: int
    """Counts the holders: a later one has a higher number."""
    until: float


class Leases:
    """The leases: they save wasted work; what must hold without them is fenced elsewhere."""

    def __init__(self, database: Database, clock: Callable[[], float], owner: str, seconds: float) -> None:
        """Put the leases over their table, for one owner."""
        self._database = database
        self._clock = clock
        self._owner = owner
        self._seconds = seconds

    def take(self, thread_id: str) -> Lease | None:
        """Take the lease of a thread; None when a live worker holds it (this one included)."""
        now = self._clock()
        until = now + self._seconds
        rows = self._database.write("take_lease", thread_id=thread_id, owner=self._owner, now=now, until=until)
        return Lease(thread_id, self._owner, rows[0]["token"], until) if rows else None

    def release(self, lease: Lease) -> None:
        """Give the thread free; harmless when another holds it now."""
        values = {"thread_id": lease.thread_id, "owner": lease.owner, "token": lease.token}
        self._database.write("release_lease", **values)

    def drop(self, lease: Lease) -> None:
        """Give free what is needed only while it is held, and keep no row of it."""
        values = {"thread_id": lease.thread_id, "owner": lease.owner, "token": lease.token}
        self._database.write("drop_lease", **values)

    def holder(self, thread_id: str) -> Lease | None:
        """Return who holds the thread now; None when nobody does."""
        lease = self._find(thread_id)
        return lease if lease is not None and lease.until > self._clock() else None

    def is_held(self, lease: Lease) -> bool:
        """Tell whether nobody else has taken a lease, and it was not given back; it may have run out."""
        found = self._find(lease.thread_id)
        return found is not None and (found.owner, found.token) == (lease.owner, lease.token) and found.until > 0

    def _find(self, thread_id: str) -> Lease | None:
        rows = self._database.query("find_lease", thread_id=thread_id)
        return Lease(**rows[0]) if rows else None


class Presence:
    """A caller who drives a thread himself, without `Runs`: whoever looks can tell whether he is still there.

    He has the thread's lease from his first heartbeat on. A call that is over before costs nothing. Where another has
    the lease, he asks for it with each beat.
    """

    def __init__(self, leases: Leases, thread_id: str) -> None:
        """Be there."""
        self.thread_id = thread_id
        self._leases = leases
        self._lease: Lease | None = None
        self._is_over = False
        self._lock = threading.Lock()

    @property
    def lease(self) -> Lease | None:
        """What he holds; None before his first heartbeat, and while another holds it."""
        return self._lease

    def arrive(self, lease: Lease | None) -> None:
        """Take the lease that a beat brought; one that comes when he has left is given back."""
        with self._lock:
            if not self._is_over:
                self._lease = lease
                return
        if lease is not None:
            self._leases.release(lease)

    def lose(self) -> None:
        """Learn that another has the lease."""
        self._lease = None

    def leave(self) -> None:
        """Give the lease back."""
        with self._lock:
            self._is_over = True
        if self._lease is not None:
            self._leases.release(self._lease)
