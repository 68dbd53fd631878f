"""Spend: a row for each attempt, opened before the call is made."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.world.gates import wait_until
from tests.world.postgres import Database
from tests.world.stores import Store, open_store

from loopwright import Budget, Checkpoints, open_checkpoints
from loopwright.checkpoints import Attempt, Drawn, GiveBack, Opened
from loopwright.errors import StorageCorrupt
from loopwright.state import StopReason, Tokens

GUESS = Tokens(100, 1024, estimated=True)


@pytest.fixture(name="shared")
def lend_shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that threads and processes share."""
    return open_store(request, tmp_path)


def test_an_open_attempt_counts_as_its_estimate(checkpoints: Checkpoints) -> None:
    """And is told to whoever tries the same step again."""
    spend = checkpoints.ledger.spend
    first = spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7)
    assert (1, [], "") == (first.number, [*first.lost], first.cancelled_by)
    again = spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7)
    assert (2, [Attempt("r1", 1, 1, GUESS, 7, settled=False)]) == (again.number, [*again.lost])
    assert [] == [*spend.open("r1", 2, model="m", estimate=GUESS, cost_nano=7).lost]


def test_a_settled_attempt_counts_as_it_was(checkpoints: Checkpoints) -> None:
    """The real figures take the estimate's place, with the next transaction of this table or when they are read."""
    spend = checkpoints.ledger.spend
    spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7)
    spend.settle("r1", 1, 1, tokens=Tokens(90, 10), cost_nano=3)
    assert [Attempt("r1", 1, 1, Tokens(90, 10), 3, settled=True)] == spend.of_run("r1")


def test_closing_stores_what_waits(tmp_path: Path) -> None:
    """A process that ends well leaves no estimate behind."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with open_checkpoints(url) as checkpoints:
        checkpoints.ledger.spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7)
        checkpoints.ledger.spend.settle("r1", 1, 1, tokens=Tokens(90, 10), cost_nano=3)
    with open_checkpoints(url) as checkpoints:
        assert [True] == [attempt.settled for attempt in checkpoints.ledger.spend.of_run("r1")]


@pytest.mark.parametrize("shared", ["sqlite", "postgres"], indirect=True)
def test_an_end_that_cannot_be_stored_loses_no_settlement(shared: Store) -> None:
    """It is rolled back with the end, waits on, and what it gives back to a budget is given back with the next try."""
    budget = Budget(name="b", max_tokens=5000).share({}, 0)
    with open_checkpoints(shared.url) as checkpoints:
        ledger = checkpoints.ledger
        ledger.runs.start("r1", thread_id="t", agent="a", message="m", task="m")
        ledger.spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7, shares=[budget])
        ledger.spend.settle("r1", 1, 1, tokens=Tokens(90, 10), cost_nano=3, back=GiveBack([budget], 1124, 7))
        (head,) = shared.execute("select number, hash from lw_log_head")
        shared.execute("delete from lw_log_head")
        with pytest.raises(StorageCorrupt, match="head of the log"):
            ledger.end_run("r1", StopReason.ANSWERED, thread_id="t", cost_nano=3)
        assert [Drawn(1124, 7)] == ledger.budgets.drawn([budget])
        shared.execute(f"insert into lw_log_head (one, number, hash) values (1, {head[0]}, '{head[1]}')")  # noqa: S608 -- ours
        ledger.end_run("r1", StopReason.ANSWERED, thread_id="t", cost_nano=3)
        assert [Drawn(100, 3)] == ledger.budgets.drawn([budget])
        assert [True] == [attempt.settled for attempt in ledger.spend.of_run("r1")]


def test_a_cancelled_run_opens_none(checkpoints: Checkpoints) -> None:
    """So that no further call is made."""
    ledger = checkpoints.ledger
    ledger.runs.start("r1", thread_id="t", agent="a", message="m", task="m")
    ledger.cancel("r1", "ana")
    assert ledger.spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7).cancelled_by == "ana"
    assert ledger.spend.of_run("r1") == []


@pytest.mark.parametrize("shared", ["sqlite", "postgres"], indirect=True)
def test_the_priced_calls_of_a_turn_are_opened_at_one_time(shared: Store) -> None:
    """Each gets its own number, and none takes another call's row for a lost try of its own."""
    opened: list[Opened] = []
    with open_checkpoints(shared.url) as checkpoints:
        spend = checkpoints.ledger.spend
        start = threading.Barrier(8)

        def buy(place: int) -> None:
            start.wait()
            opened.append(spend.open("r1", 1, model="buy", estimate=Tokens(0, 0), cost_nano=7, call=f"{place}"))

        threads = [threading.Thread(target=buy, args=[place]) for place in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert list(range(1, 9)) == sorted(one.number for one in opened)
    assert not [lost for one in opened for lost in one.lost]


def test_two_workers_at_one_step(postgres: Database) -> None:
    """Both count the same attempts; the second, which comes to a number that is taken, counts again."""
    waiting = f"select 1 from pg_stat_activity where datname = '{postgres.name}' and wait_event_type = 'Lock'"  # noqa: S608 -- ours
    with open_checkpoints(postgres.url) as checkpoints, ThreadPoolExecutor(1) as threads:
        with postgres.server.connect(postgres.name) as other, other.transaction():
            other.execute("insert into lw_spend values ('r1', 1, 1, 'm', 'open', 100, 1024, 7, 0, '', '')")
            second = threads.submit(checkpoints.ledger.spend.open, "r1", 1, model="m", estimate=GUESS, cost_nano=7)
            wait_until(lambda: bool(postgres.execute(waiting)))
        assert (2, [1]) == (second.result().number, [attempt.number for attempt in second.result().lost])
