"""Reminders and expiry: by whoever comes by, once, however many workers there are."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.world.plans import planned
from tests.world.sqlite import connection_of
from tests.world.till import Till

from loopwright import (
    Agent,
    Approval,
    Checkpoints,
    RunResult,
    Runs,
    SyncRuns,
    approve,
    ask,
    create_agent,
    open_checkpoints,
)
from loopwright.testing import ManualClock, call


def build(till: Till) -> Agent:
    """Payments are asked about for a minute, and reminded of after half of it."""
    rules = [ask("pay", expires_in=60, remind_after=30)]
    return create_agent(planned([call("pay", order_id="A1", amount=5), "Done."]), [till.pay()], permissions=rules)


def expire(worker: SyncRuns) -> list[RunResult]:
    """Look once."""
    return [*worker.expire()]


def test_each_question_is_reminded_of_once(tmp_path: Path, clock: ManualClock) -> None:
    """By one of several workers that look at the same moment; not before its time, and not again."""
    agent, told, many = build(Till()), list[str](), 4
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    stores = [open_checkpoints(url, clock=clock) for _ in range(many)]
    workers = [SyncRuns(agent, store, on_reminder=lambda asked: told.append(asked.id)) for store in stores]
    asked = [workers[0].run("Pay.", thread_id=name).approvals[0].id for name in "abc"]
    clock.advance(29)
    assert ([], []) == (workers[0].expire(), told)
    clock.advance(1)
    with ThreadPoolExecutor(many) as pool:
        assert [[]] * many == [*pool.map(expire, workers)]
    assert sorted(asked) == sorted(told)
    for worker, store in zip(workers, stores, strict=True):
        worker.recover()
        store.close()
    assert 3 == len(told)


def test_one_broken_run_does_not_hold_up_the_others(
    checkpoints: Checkpoints, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Whose questions have run out: they go on at once, and the broken one is logged."""
    worker = SyncRuns(build(Till()), checkpoints)
    waiting = [worker.run("Pay.", thread_id=name, run_id=f"run-{name}") for name in "abc"]
    connection_of(checkpoints.ledger).execute("update lw_runs set thread_id = '' where id = 'run-b'")
    clock.advance(60)
    with caplog.at_level(logging.WARNING):
        assert ["run-a", "run-c"] == [result.run_id for result in worker.expire()]
    assert "run run-b could not be carried on" in caplog.text
    assert ["succeeded", "succeeded"] == [worker.get(one.run_id).status for one in (waiting[0], waiting[2])]


def test_what_is_decided_is_not_reminded_of(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Nor what has expired; whose run then goes on, and pays nothing."""
    till, told = Till(), list[str]()
    runs = SyncRuns(build(till), checkpoints, on_reminder=lambda asked: told.append(asked.id))
    first, second = (runs.run("Pay.", thread_id=name) for name in "ab")
    runs.decide(first.approvals[0].id, approve(), by="ana")
    clock.advance(60)
    (ended,) = runs.expire()
    assert (second.run_id, "succeeded", "rejected") == (ended.run_id, ended.status, ended.trail[0]["outcome"])
    late = runs.decide(second.approvals[0].id, approve(), by="ana")
    assert "expired unanswered on 20" in late.told
    assert ([], []) == (runs.expire(), told)
    assert [] == till.paid
    assert ("succeeded", [("A1", 5)]) == (runs.wait(first.run_id).status, till.paid)


def test_a_hook_that_fails_is_called_again(
    checkpoints: Checkpoints, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """It keeps nothing else from being done, and the failure is logged."""
    told: list[str] = []

    async def remind(asked: Approval) -> None:
        told.append(asked.id)
        if len(told) == 1:
            raise OSError("the mail server is away")

    async def main() -> None:
        async with Runs(build(Till()), checkpoints, on_reminder=remind) as runs:
            asked = (await runs.run("Pay.", thread_id="a")).approvals[0].id
            clock.advance(30)
            assert [] == await runs.expire()
            assert f"nobody was reminded of approval {asked}" in caplog.text
            await runs.recover()
            await runs.expire()
            assert [asked, asked] == told

    asyncio.run(main())


def test_a_hook_that_nobody_would_await_is_told_of(
    checkpoints: Checkpoints, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    """`SyncRuns` has no event loop."""

    async def remind(_asked: Approval) -> None:
        raise AssertionError

    runs = SyncRuns(build(Till()), checkpoints, on_reminder=remind)
    runs.run("Pay.", thread_id="a")
    clock.advance(30)
    runs.expire()
    assert "SyncRuns awaits nothing" in caplog.text
