"""Keys that are dropped: what was sealed with an old one is sealed anew, so that the new one alone opens everything."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.checkpoints.test_sealed_rows import KEY as OLD
from tests.checkpoints.test_sealed_rows import NEW, SEALED
from tests.world.nursery import KILLED, Channel, Nursery
from tests.world.stores import Store
from tests.world.stories import ANSWER, build_shop, finish, wait_at_question
from tests.world.till import Till

from loopwright import Agent, Checkpoints, SyncRuns, approve, open_checkpoints
from loopwright.checkpoints import ClaimRequest, ClaimStatus, NewApproval, ResealReport, resealing
from loopwright.errors import ConfigurationError, StorageCorrupt
from loopwright.state import DECISIONS, Requirement

THIRD = b"3" * 32
TWO = Requirement(roles=[], number=2, not_by="", decisions=[*DECISIONS])


@pytest.fixture(name="till")
def build_till() -> Till:
    """What was paid."""
    return Till()


@pytest.fixture(name="agent")
def build_agent(till: Till) -> Agent:
    """Looks, pays when it is allowed to, and answers."""
    return build_shop(till)


def write(store: Store, agent: Agent) -> None:
    """Leave all that can be sealed, with the old key: a thread that ended and one that waits, and a vote."""
    with open_checkpoints(store.url, encryption=[OLD], write_behind=False) as checkpoints:
        finish(agent, checkpoints)
        wait_at_question(agent, checkpoints)
        asked = NewApproval("q", "tool_approval", "pay", {}, {}, "e", None, needs=TWO)
        checkpoints.ledger.approvals.open("r", "t", [asked])
        assert checkpoints.ledger.decide("q", {"type": "approve"}, "ana").accepted


def read(checkpoints: Checkpoints) -> list[Any]:
    """Return all that is there: every checkpoint with what was written on it, every row, and the log."""
    ledger, found = checkpoints.ledger, [*checkpoints.saver.list(None)]
    runs = sorted(ledger.runs.list(), key=lambda run: run.id)
    rows = [(run, ledger.effects.of_run(run.id), ledger.approvals.of_run(run.id)) for run in runs]
    assert ledger.log.verify().is_whole
    votes = ledger.database.query("votes_of", approval_id="q")
    named = [{name: vote[name] for name in vote if name != "seal"} for vote in votes]
    return [found, rows, named, ledger.log.records()]


def test_the_new_key_alone_opens_everything(kept: Store, agent: Agent, till: Till) -> None:
    """All reads as before; what waited is decided and finished, what was done is answered from the store.

    And so again with the next key: the copies of the log's oldest records are sealed anew, too.
    """
    write(kept, agent)
    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints:
        before = read(checkpoints)
        done: list[int] = []
        report = checkpoints.reseal(on_batch=done.append)
        assert (True, (), report.rewritten) == (report.is_complete, report.problems, done[-1])
        assert ResealReport(0, 0, ()) == checkpoints.reseal()
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        assert before == read(checkpoints)
        runs = SyncRuns(agent, checkpoints)
        (asked,) = [asked for asked in runs.approvals() if asked.id != "q"]
        runs.decide(asked.id, approve(), by="ana")
        assert (ANSWER, [("A1", 5)] * 2) == (runs.wait(asked.run_id).answer, till.paid)
        effects = checkpoints.ledger.effects
        (row,) = [row for run in runs.list() if run.thread_id == "done" for row in effects.of_run(run.id)]
        again = ClaimRequest(row.id, row.key, row.digest, row.tool, row.run_id, "done", repeatable=False, own_key=False)
        assert ClaimStatus.DONE is effects.claim(again).status
        before = read(checkpoints)
    with open_checkpoints(kept.url, encryption=[THIRD, NEW]) as checkpoints:
        assert asyncio.run(checkpoints.areseal()).is_complete
    with open_checkpoints(kept.url, encryption=[THIRD]) as checkpoints:
        assert before == read(checkpoints)


def reseal_and_die(_: Channel, url: str, batches: int) -> None:
    """Be killed after so many batches."""
    left = iter(range(batches))
    with open_checkpoints(url, encryption=[NEW, OLD]) as checkpoints:
        checkpoints.reseal(on_batch=lambda _: None if next(left, None) else os.kill(os.getpid(), signal.SIGKILL))


def test_it_is_killed_and_begun_again(kept: Store, agent: Agent, nursery: Nursery) -> None:
    """What it did is kept, and not done again; both keys open all in between."""
    write(kept, agent)
    with open_checkpoints(kept.url, encryption=[OLD]) as checkpoints:
        before = read(checkpoints)
    assert KILLED == nursery.start(f"{__name__}:reseal_and_die", url=kept.url, batches=3).wait()
    with open_checkpoints(kept.url, encryption=[OLD]) as checkpoints, pytest.raises(StorageCorrupt, match="not given"):
        read(checkpoints)
    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints:
        assert before == read(checkpoints)
        assert checkpoints.reseal().is_complete
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        assert before == read(checkpoints)


def test_others_work_beside_it(kept: Store, agent: Agent, till: Till, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows change under a worker's hands, forth and back, in small batches: nothing is lost, and nothing done twice."""
    monkeypatch.setattr(resealing, "BATCH_ROWS", 8)
    write(kept, agent)
    turns = iter(range(3))
    is_over = threading.Event()

    def turn() -> None:
        """Go on as long as the worker works; not for long, for it has to wait for each batch."""
        with (
            open_checkpoints(kept.url, encryption=[NEW, OLD]) as forth,
            open_checkpoints(kept.url, encryption=[OLD, NEW]) as back,
        ):
            while next(turns, None) is not None and not is_over.is_set():
                assert () == forth.reseal().problems + back.reseal().problems

    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints, ThreadPoolExecutor(1) as pool:
        turning = pool.submit(turn)
        try:
            runs = SyncRuns(agent, checkpoints)
            (asked,) = [asked for asked in runs.approvals() if asked.id != "q"]
            runs.decide(asked.id, approve(), by="ana")
            assert ANSWER == runs.wait(asked.run_id).answer
            finish(agent, checkpoints, "new")
        finally:
            is_over.set()
        turning.result()
        assert checkpoints.reseal().is_complete
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        assert 3 == len(till.paid)
        assert {"succeeded"} == {run.status for run, *_ in read(checkpoints)[1]}


@pytest.mark.parametrize("keys", [[NEW, OLD], [OLD]])
def test_what_an_earlier_release_sealed_is_bound_to_its_row(
    tmp_path: Path, agent: Agent, till: Till, keys: list[bytes]
) -> None:
    """Also without a new key; and then carried on."""
    path = Path(shutil.copy(SEALED, tmp_path / "runs.db"))
    store = Store("sqlite", f"sqlite:///{path}", path=path)
    with open_checkpoints(store.url, encryption=keys) as checkpoints:
        before = read(checkpoints)
        assert checkpoints.reseal().is_complete
    for table, column in (("checkpoints", "checkpoint"), ("writes", "value")):
        assert [("6C7732",)] == store.execute(f"select distinct hex(substr({column}, 1, 3)) from {table}")  # noqa: S608 -- ours
    with open_checkpoints(store.url, encryption=keys[:1]) as checkpoints:
        assert before == read(checkpoints)
        runs = SyncRuns(agent, checkpoints)
        (asked,) = runs.approvals()
        runs.decide(asked.id, approve(), by="ana")
        assert (ANSWER, [("A1", 5)]) == (runs.wait(asked.run_id).answer, till.paid)


def test_what_cannot_be_opened_is_left_and_told(kept: Store, agent: Agent) -> None:
    """A row that was changed, and whatever needs a key that is not given; all else is sealed anew."""
    write(kept, agent)
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        report = checkpoints.reseal()
        assert (0, False) == (report.rewritten, report.is_complete)
        assert (report.left > 20, 20) == (True, len(report.problems))
        assert all("a key that was not given" in problem for problem in report.problems)
    kept.execute("update lw_effects set status = 'failed'")
    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints:
        report = checkpoints.reseal()
        assert (True, 1, 1) == (report.rewritten > 20, report.left, len(report.problems))
        assert "of lw_effects was changed" in report.problems[0]


def ask(checkpoints: Checkpoints, *names: str) -> None:
    """Open questions, each with a record of the log."""
    for name in names:
        asked = NewApproval(name, "tool_approval", "pay", {}, {}, "e", None)
        checkpoints.ledger.approvals.open("r", "t", [asked])


@pytest.mark.parametrize(("rows", "characters", "batches"), [(2, 10**9, [2, 3, 5, 6]), (9, 1, [1, 2, 3, 4, 5, 6])])
def test_a_batch_is_bounded(
    kept: Store, monkeypatch: pytest.MonkeyPatch, rows: int, characters: int, batches: list[int]
) -> None:
    """By rows, and by what they hold: one that is larger is a batch of its own."""
    with open_checkpoints(kept.url, encryption=[OLD]) as checkpoints:
        ask(checkpoints, "q1", "q2", "q3")
    monkeypatch.setattr(resealing, "BATCH_ROWS", rows)
    monkeypatch.setattr(resealing, "BATCH_CHARACTERS", characters)
    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints:
        done: list[int] = []
        assert ResealReport(6, 0, ()) == checkpoints.reseal(on_batch=done.append)
    assert batches == done


def test_a_copy_belongs_to_its_record(kept: Store) -> None:
    """In another one's place it is refused, and one that is missing is not made up for."""
    with open_checkpoints(kept.url, encryption=[OLD]) as checkpoints:
        ask(checkpoints, "q1", "q2")
    with open_checkpoints(kept.url, encryption=[NEW, OLD]) as checkpoints:
        assert checkpoints.reseal().is_complete
    with open_checkpoints(kept.url, encryption=[NEW]) as checkpoints:
        log = checkpoints.ledger.log
        assert log.verify().is_whole
        kept.execute("update lw_log_copies set data = (select data from lw_log_copies where number = 2)")
        with pytest.raises(StorageCorrupt, match="swapped"):
            log.records()
        kept.execute("delete from lw_log_copies")
        with pytest.raises(StorageCorrupt, match="not given"):
            log.verify()


def test_without_encryption_nothing_is_sealed_anew(checkpoints: Checkpoints) -> None:
    """It says what to give."""
    with pytest.raises(ConfigurationError, match=r"encryption=\[new, old\]"):
        checkpoints.reseal()
