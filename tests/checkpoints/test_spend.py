"""Spend: a row for each attempt, opened before the call is made."""

from __future__ import annotations

from pathlib import Path

from loopwright import Checkpoints, open_checkpoints
from loopwright.checkpoints import Attempt
from loopwright.state import Tokens

GUESS = Tokens(100, 1024, estimated=True)


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


def test_a_cancelled_run_opens_none(checkpoints: Checkpoints) -> None:
    """So that no further call is made."""
    ledger = checkpoints.ledger
    ledger.runs.start("r1", thread_id="t", agent="a", message="m", task="m")
    ledger.cancel("r1", "ana")
    assert ledger.spend.open("r1", 1, model="m", estimate=GUESS, cost_nano=7).cancelled_by == "ana"
    assert ledger.spend.of_run("r1") == []
