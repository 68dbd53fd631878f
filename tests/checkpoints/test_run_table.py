"""The runs, as the ledger lists them."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.world.stores import Store

from loopwright import Checkpoints, RunStatus, StopReason, open_checkpoints
from loopwright.checkpoints import NewApproval, RunRow
from loopwright.checkpoints.database import load_queries
from loopwright.errors import ConfigurationError
from loopwright.testing import ManualClock

WHO: Any = {"thread_id": "t", "agent": "a"}


def row(checkpoints: Checkpoints, run_id: str) -> RunRow:
    """Return a run that is there."""
    found = checkpoints.ledger.runs.find(run_id)
    assert found is not None
    return found


def start(checkpoints: Checkpoints, run_id: str, thread_id: str = "t") -> None:
    """Note a run that was asked for."""
    checkpoints.ledger.runs.start(run_id, thread_id=thread_id, agent="a", message="hello", task="hello")


def test_starting_twice_is_once(checkpoints: Checkpoints) -> None:
    """The second start changes nothing, whatever it says."""
    start(checkpoints, "r1")
    before = row(checkpoints, "r1")
    checkpoints.ledger.runs.start("r1", thread_id="x", agent="b", message="other", task="other")
    assert before == row(checkpoints, "r1")
    assert checkpoints.ledger.runs.find("r2") is None


def test_taking_in_ends_what_was_left(checkpoints: Checkpoints) -> None:
    """An unfinished run of the thread is superseded; one that still queues is not, nor is one of another thread."""
    for run_id, thread_id in (("old", "t"), ("new", "t"), ("queued", "t"), ("other", "t2")):
        start(checkpoints, run_id, thread_id)
    runs = checkpoints.ledger.runs
    runs.begin("old", **WHO, task="hello")
    runs.begin("other", thread_id="t2", agent="a", task="hello")
    runs.begin("new", **WHO, task="hello")
    statuses = {run_id: row(checkpoints, run_id).status for run_id in ("old", "new", "queued", "other")}
    assert {"old": "cancelled", "new": "running", "queued": "running", "other": "running"} == statuses
    assert ("", "hello") == (row(checkpoints, "new").input, row(checkpoints, "queued").input)


def test_the_first_end_counts(checkpoints: Checkpoints) -> None:
    """A run that has ended stays as it ended."""
    start(checkpoints, "r1")
    ledger = checkpoints.ledger
    ledger.end_run("r1", StopReason.ANSWERED, thread_id="t", cost_nano=5)
    ledger.end_run("r1", StopReason.CANCELLED, thread_id="t", cost_nano=9)
    ledger.runs.set_status("r1", RunStatus.RUNNING)
    ended = row(checkpoints, "r1")
    assert ("succeeded", "answered", 5, True) == (ended.status, ended.reason, ended.cost_nano, ended.is_final)
    assert not ledger.cancel("r1", "ana")


def test_cancelling_once(checkpoints: Checkpoints) -> None:
    """The first wish counts, closes what is open, and is in the log."""
    start(checkpoints, "r1")
    ledger = checkpoints.ledger
    ledger.approvals.open("r1", "t", [NewApproval("q1", "tool_approval", "pay", {}, {})])
    assert ledger.cancel("r1", "ana")
    assert not ledger.cancel("r1", "ben")
    assert not ledger.cancel("nope", "ben")
    assert row(checkpoints, "r1").cancel_by == "ana"
    assert ledger.approvals.list_open() == []
    assert ["asked", "cancelled", "decided"] == sorted(record.event for record in ledger.log.records())


def test_listing(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Newest first; by status, by thread, and no more than asked for."""
    for number in range(4):
        start(checkpoints, f"r{number}", f"t{number % 2}")
        clock.advance(1)
    runs = checkpoints.ledger.runs
    checkpoints.ledger.end_run("r3", StopReason.ANSWERED, thread_id="t1", cost_nano=0)
    assert ["r3", "r2", "r1", "r0"] == [run.id for run in runs.list()]
    assert ["r3", "r2"] == [run.id for run in runs.list(limit=2)]
    assert ["r3", "r1"] == [run.id for run in runs.list(thread_id="t1")]
    assert ["r3"] == [run.id for run in runs.list(status="succeeded")]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"status": "nope"}, "status is 'nope'; there are running, waiting, succeeded, stopped, failed, cancelled"),
        ({"limit": "x"}, "limit is 'x'; give a whole number from 0 on"),
        ({"limit": -1}, "limit is -1; give a whole number from 0 on"),
        ({"limit": 10**30}, "limit is 1000"),
        ({"limit": True}, "limit is True"),
        ({"since": "2026-10-13"}, "since is '2026-10-13'; give seconds since the epoch"),
        ({"before": float("nan")}, "before is nan; give seconds since the epoch"),
    ],
)
def test_what_is_no_list(checkpoints: Checkpoints, given: Any, told: str) -> None:
    """On each store alike: nothing is taken for an empty list, or for all there is."""
    with pytest.raises(ConfigurationError, match=told):
        checkpoints.ledger.runs.list(**given)
    if "limit" in given:
        for listed in (checkpoints.ledger.approvals.list_open, checkpoints.ledger.approvals.list_parked):
            with pytest.raises(ConfigurationError, match=told):
                listed(**given)


def test_questions_stand_in_the_order_of_their_turn(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Whatever their ids are; those that were asked earlier stand before them."""
    ledger = checkpoints.ledger
    start(checkpoints, "r1")
    ledger.approvals.open("r1", "t", [NewApproval("q9", "tool_approval", "pay", {}, {})])
    clock.advance(1)
    names = ["q7", "q1", "q4"]
    ledger.approvals.open("r1", "t", [NewApproval(name, "tool_approval", "pay", {}, {}) for name in names])
    listed = [ledger.approvals.list_open(), ledger.approvals.list_open("r1"), ledger.approvals.of_run("r1")]
    assert [["q9", *names]] * 3 == [[asked.id for asked in found] for found in listed]


@pytest.mark.parametrize("worker", [False, True])
def test_what_is_left_to_do(checkpoints: Checkpoints, clock: ManualClock, worker: bool) -> None:  # noqa: FBT001 -- a column
    """Running, and nobody drives it; waiting, and decided, expired or cancelled; also after a worker died with it."""
    ledger = checkpoints.ledger
    names = ["running", "leased", "asked", "decided", "expired", "cancelled", "ended"]
    for name in names:
        start(checkpoints, name, thread_id=name)
    for name in names[2:6]:
        expires = 60 if name == "expired" else None
        ledger.approvals.open(name, name, [NewApproval(name, "tool_approval", "pay", {}, {}, expires_in=expires)])
    clock.advance(60)
    ledger.leases.take("leased")
    ledger.approvals.decide("decided", {"type": "approve"}, "ana")
    ledger.cancel("cancelled", "ana")
    ledger.end_run("ended", StopReason.ANSWERED, thread_id="ended", cost_nano=0)
    if worker:
        clock.advance(1)
        for name in names:
            ledger.runs.set_worker(name, "somebody")
    assert {"running", "decided", "expired", "cancelled"} == {run.id for run in ledger.runs.unfinished()}
    clock.advance(11)
    assert "leased" in {run.id for run in ledger.runs.unfinished()}


def test_a_decision_by_a_clock_that_is_behind(kept: Store) -> None:
    """Whoever decides may have another clock than the worker: what they decided is found, until it is taken."""
    with (
        open_checkpoints(kept.url, clock=ManualClock(100)) as worker,
        open_checkpoints(kept.url, clock=ManualClock(97)) as person,
    ):
        runs = worker.ledger.runs
        runs.begin("r1", thread_id="t", agent="a", task="Pay.")
        question = NewApproval("q1", "tool_approval", "pay", {}, {})
        worker.ledger.ask("r1", "t", [question])
        assert [] == runs.unfinished()
        person.ledger.decide("q1", {"type": "approve"}, "ana")
        assert ["r1"] == [run.id for run in runs.unfinished()]
        worker.ledger.approvals.use(["q1"], "here")
        assert [] == runs.unfinished()


def test_saying_again_that_it_waits_loses_no_decision(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """What was decided since it waits is still to be carried out."""
    start(checkpoints, "r1")
    ledger = checkpoints.ledger
    ledger.approvals.open("r1", "t", [NewApproval("q1", "tool_approval", "pay", {}, {})])
    ledger.approvals.decide("q1", {"type": "approve"}, "ana")
    clock.advance(5)
    ledger.runs.set_status("r1", RunStatus.WAITING)
    assert ["r1"] == [run.id for run in ledger.runs.unfinished()]


def test_lists(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Newest first; of one status, of one thread, of both, or of all."""
    for number in range(4):
        start(checkpoints, f"r{number}", f"t{number % 2}")
        clock.advance(1)
    checkpoints.ledger.end_run("r2", StopReason.ANSWERED, thread_id="t0", cost_nano=0)
    runs = checkpoints.ledger.runs
    listed = [runs.list(), runs.list(status="running"), runs.list(thread_id="t0")]
    assert [["r3", "r2", "r1", "r0"], ["r3", "r1", "r0"], ["r2", "r0"]] == [[row.id for row in rows] for rows in listed]
    assert ["r0"] == [row.id for row in runs.list(thread_id="t0", status="running")]
    assert ["r3"] == [row.id for row in runs.list(limit=1)]


@pytest.mark.parametrize("which", [{}, {"status": "running"}, {"thread_id": "t"}])
def test_pages(checkpoints: Checkpoints, clock: ManualClock, which: Any) -> None:
    """Whatever is listed, the next page is what was started before the last one of this."""
    runs, begun = checkpoints.ledger.runs, clock()
    for number in range(5):
        start(checkpoints, f"r{number}")
        clock.advance(1)
    page = runs.list(**which, limit=2)
    assert ["r4", "r3"] == [row.id for row in page]
    assert ["r2", "r1"] == [row.id for row in runs.list(**which, limit=2, before=page[-1].created_at)]
    assert ["r2", "r1"] == [row.id for row in runs.list(**which, since=begun + 1, before=begun + 3)]


@pytest.mark.parametrize(
    "name",
    [
        "list_runs",
        "list_runs_of_status",
        "list_runs_of_thread",
        "open_approvals_of_run",
        "approvals_of_effect",
        "unsettled_like",
        "log_of_run",
        "log_between",
    ],
)
def test_what_is_asked_often_is_read_from_an_index(tmp_path: Path, name: str) -> None:
    """However many rows there are, no table is read through, and no list is sorted whole."""
    steps = plan_of(name, tmp_path)
    assert [] == [step for step in steps if step.startswith("SCAN") and "USING INDEX" not in step]
    assert not name.startswith(("list", "log_between")) or "USE TEMP B-TREE FOR ORDER BY" not in steps


def test_what_is_left_is_found_by_why(tmp_path: Path) -> None:
    """However many runs wait, each look reads the indexes of the reasons to carry one on."""
    steps = plan_of("unfinished_runs", tmp_path)
    assert [] == [step for step in steps if step.startswith("SCAN") and "USING COVERING INDEX" not in step]
    found = set(re.findall(r"INDEX (lw_\w+)", " ".join(steps)))
    reasons = {"lw_runs_by_status", "lw_runs_cancelled", "lw_approvals_untaken", "lw_approvals_due"}
    assert reasons | {"lw_runs_waiting"} == found


def plan_of(name: str, folder: Path) -> list[str]:
    """Return how SQLite carries a named query out."""
    query = load_queries("sqlite")[name]
    values = dict.fromkeys(re.findall(r":(\w+)", query), "")
    path = folder / "runs.db"
    with open_checkpoints(f"sqlite:///{path}"), closing(sqlite3.connect(path)) as connection:
        return [str(row[3]) for row in connection.execute(f"explain query plan {query}", values)]


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("open_approvals", "asked"),
        ("parked_approvals", "due"),
        ("parked_ahead", "parked (tool=? AND expires_at>?)"),
        ("due_approvals", "due (expires_at<?)"),
        ("due_reminders", "reminders (remind_at<?)"),
    ],
)
def test_what_waits_is_found_by_what_it_waits_for(tmp_path: Path, name: str, index: str) -> None:
    """However many wait for something else: a person, a rate, a moment."""
    assert f"INDEX lw_approvals_{index}" in " ".join(plan_of(name, tmp_path))
