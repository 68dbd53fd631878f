"""The log: append-only, in order, chained by hashes that anybody can recompute."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from tests.world.bank import Bank, build_pay
from tests.world.plans import planned
from tests.world.stores import Store
from tests.world.stories import build_shop, finish
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, approve, create_agent, open_checkpoints
from loopwright.errors import StorageCorrupt
from loopwright.testing import call


def test_the_chain_can_be_recomputed_from_the_rows(tmp_path: Path) -> None:
    """By the rule alone, without our code: a changed, missing or moved row would break it."""
    path = tmp_path / "runs.db"
    agent = create_agent(
        planned([call("pay", order_id="Ä1", amount=5), "Paid."]), [build_pay(Bank(tmp_path / "bank.db"))]
    )
    with open_checkpoints(f"sqlite:///{path}") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        waiting = runs.run("Pay.", thread_id="t")
        runs.decide(waiting.approvals[0].id, approve(), by="ana")
        runs.wait(waiting.run_id)
        events = [record.event for record in checkpoints.ledger.log.records(waiting.run_id)]
    assert ["began", "asked", "decided", "claimed", "settled", "ended"] == events
    previous = ""
    with closing(sqlite3.connect(path)) as connection:
        query = "select number, at, thread_id, run_id, event, data, previous, hash from lw_log order by number"
        rows = connection.execute(query).fetchall()
    for place, (*record, found) in enumerate(rows, start=1):
        assert (place, previous) == (record[0], record[-1])
        whole = [int(value) if isinstance(value, float) and value.is_integer() else value for value in record]
        text = json.dumps(whole, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == found


def test_it_tells_who_decided_what(tmp_path: Path) -> None:
    """The decision with its person, the call with its arguments, the effect with its key."""
    bank = Bank(tmp_path / "bank.db")
    agent = create_agent(planned([call("pay", order_id="A1", amount=5), "Paid."]), [build_pay(bank)])
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        waiting = runs.run("Pay.", thread_id="t")
        runs.decide(waiting.approvals[0].id, approve(), by="ana")
        runs.wait(waiting.run_id)
        by_event = {record.event: record.data for record in checkpoints.ledger.log.records()}
    decided = by_event["decided"]
    assert ("ana", "pay", {"order_id": "A1", "amount": 5}) == (decided["by"], decided["tool"], decided["args"])
    assert bank.keys() == [by_event["claimed"]["key"]] == [by_event["settled"]["key"]]
    assert by_event["settled"]["status"] == "done"


def verify(store: Store) -> tuple[str, ...]:
    """Return what verifying the log finds."""
    with open_checkpoints(store.url) as checkpoints:
        return checkpoints.ledger.log.verify().problems


@pytest.fixture(name="logged")
def write_log(kept: Store) -> Store:
    """A log of twelve records."""
    with open_checkpoints(kept.url) as checkpoints:
        for number in range(12):
            checkpoints.ledger.log.append("asked", thread_id="t", run_id="r", call=number)
    return kept


def test_a_log_that_nobody_touched_is_whole(checkpoints: Checkpoints) -> None:
    """Also an empty one, and one with two runs."""
    log = checkpoints.ledger.log
    assert (0, ()) == (log.verify().records, log.verify().problems)
    finish(build_shop(Till()), checkpoints)
    assert log.verify().is_whole
    assert len(log.records()) == log.verify().records > 5


ADDED = (
    "insert into lw_log (number, at, thread_id, run_id, event, data, previous, hash)"
    " select number + 1, at, thread_id, run_id, event, data, hash, 'x' from lw_log where number = 12"
)
ATTACKS = {
    "data": (["update lw_log set data = '{}' where number = 4"], ["record 4 was changed"]),
    "time": (["update lw_log set at = at + 1 where number = 4"], ["record 4 was changed"]),
    "person": (["update lw_log set event = 'decided' where number = 12"], ["record 12 was changed"]),
    "first": (["delete from lw_log where number = 1"], ["record 1 is missing", "record 2 does not follow"]),
    "middle": (["delete from lw_log where number = 4"], ["record 4 is missing", "record 5 does not follow"]),
    "end": (["delete from lw_log where number > 10"], ["should be number 12, and is number 10"]),
    "all": (["delete from lw_log"], ["should be number 12, and is number 0"]),
    "reordered": (
        [
            "update lw_log set number = 99 where number = 4",
            "update lw_log set number = 4 where number = 5",
            "update lw_log set number = 5 where number = 99",
        ],
        ["record 4 does not follow", "record 4 was changed", "record 5 was changed"],
    ),
    "renumbered": (
        ["delete from lw_log where number = 12", "update lw_log set number = 12 where number = 11"],
        ["record 11 is missing", "record 12 was changed"],
    ),
    "added": ([ADDED], ["record 13 was changed", "should be number 12, and is number 13"]),
    "head": (["delete from lw_log_head"], ["the newest record"]),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_every_touch_shows(logged: Store, attack: str) -> None:
    """Changed, missing at the beginning, in the middle or at the end, reordered or added: each is told."""
    statements, told = ATTACKS[attack]
    logged.drop_log_triggers()
    logged.run(statements)
    problems = verify(logged)
    assert [] == [one for one in told if not any(one in problem for problem in problems)], problems


def test_nothing_is_appended_to_a_log_without_its_head(logged: Store) -> None:
    """A chain that could not be told from a new one is not begun."""
    logged.execute("delete from lw_log_head")
    with open_checkpoints(logged.url) as checkpoints, pytest.raises(StorageCorrupt, match="log"):
        checkpoints.ledger.log.append("asked", thread_id="t", run_id="r")


REFUSED: Sequence[str] = (
    "update lw_log set data = '{}'",
    "update lw_log set number = 99 where number = 3",
    "delete from lw_log where number = 12",
    "delete from lw_log",
)
REFUSED_BY = {
    "sqlite": ["insert or replace into lw_log select * from lw_log where number = 3"],
    "postgres": [
        "truncate lw_log",
        "insert into lw_log select * from lw_log where number = 3 on conflict (number) do update set data = '{}'",
    ],
}


def test_the_database_refuses_to_change_the_log(logged: Store) -> None:
    """Whoever connects: no update, no deletion, no truncation, no replacement; the log stays whole."""
    for statement in [*REFUSED, *REFUSED_BY[logged.kind]]:
        with pytest.raises((sqlite3.DatabaseError, psycopg.Error), match="append-only"):
            logged.execute(statement)
    assert () == verify(logged)
