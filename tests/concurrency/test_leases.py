"""Leases and claims: kept by a heartbeat while their owner lives, taken over when it does not."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.world.bank import Bank, build_pay
from tests.world.gates import Gate, wait_until
from tests.world.plans import planned

from loopwright import Checkpoints, RunResult, SyncRuns, allow, create_agent, open_checkpoints
from loopwright.checkpoints import ClaimRequest, ClaimStatus, EffectStatus
from loopwright.graphs import Agent
from loopwright.testing import ManualClock, call

PLAN = [call("pay", order_id="A100", amount=250), "Paid."]


def build(bank: Bank, gate: Gate) -> Agent:
    """Build an agent that pays without asking, as soon as the gate is open."""
    pay = build_pay(bank, before=gate.pass_through)
    return create_agent(planned(PLAN), [pay], permissions=[allow("pay")])


@pytest.fixture(name="url")
def make_url(tmp_path: Path) -> str:
    """A database file."""
    return f"sqlite:///{tmp_path / 'runs.db'}"


def drive(agent: Agent, checkpoints: Checkpoints) -> RunResult:
    """Run the task to its end."""
    return SyncRuns(agent, checkpoints).run("Pay.", thread_id="t")


def test_a_long_effect_is_not_taken_over_while_its_owner_lives(url: str, tmp_path: Path) -> None:
    """An effect that lasts many leases is run by one worker only; the other one waits for its result."""
    bank, gate = Bank(tmp_path / "bank.db"), Gate()
    agent = build(bank, gate)
    with (
        open_checkpoints(url, lease_seconds=0.15) as first,
        open_checkpoints(url, lease_seconds=0.15) as second,
        ThreadPoolExecutor(2) as threads,
    ):
        running = threads.submit(drive, agent, first)
        gate.wait_until_reached()
        (row,) = first.ledger.runs.list()
        (effect,) = first.ledger.effects.of_run(row.id)
        other = SyncRuns(agent, second)
        waiting = threads.submit(other.wait, row.id)
        wait_until(lambda: first.ledger.effects.get(effect.id).until > effect.until + 5 * 0.15)
        assert [] == other.recover()
        assert (effect.owner, "claimed") == _owner(second, effect.id)
        gate.open()
        assert ("Paid.", "Paid.") == (running.result().answer, waiting.result().answer)
    assert bank.payments() == [("A100", 250)]


def _owner(checkpoints: Checkpoints, effect_id: str) -> tuple[str, str]:
    row = checkpoints.ledger.effects.get(effect_id)
    return row.owner, row.status


def test_heartbeats_move_lease_and_claim(url: str, tmp_path: Path) -> None:
    """By a clock that a test moves: beat in time, nobody else gets the thread; without, the next one does."""
    clock = ManualClock()
    bank, gate = Bank(tmp_path / "bank.db"), Gate()
    with (
        open_checkpoints(url, clock=clock, lease_seconds=600) as first,
        open_checkpoints(url, clock=clock, lease_seconds=600) as second,
        ThreadPoolExecutor(1) as threads,
    ):
        running = threads.submit(drive, build(bank, gate), first)
        gate.wait_until_reached()
        for _ in range(4):
            clock.advance(500)
            first.ledger.heart.beat()
            assert second.ledger.leases.take("t") is None
        clock.advance(601)
        assert second.ledger.leases.holder("t") is None
        taken = second.ledger.leases.take("t")
        assert taken is not None
        assert 2 == taken.token
        gate.open()
        assert running.result().status == "succeeded"


def test_a_lost_lease_is_not_renewed(url: str) -> None:
    """Who was taken for dead learns it at the next beat, and cannot give away what is another's."""
    clock = ManualClock()
    with open_checkpoints(url, clock=clock) as first, open_checkpoints(url, clock=clock) as second:
        old = first.ledger.leases.take("t")
        assert old is not None
        assert first.ledger.leases.take("t") is None
        clock.advance(11)
        new = second.ledger.leases.take("t")
        assert new is not None
        assert [False] == first.ledger.renewals.renew([old])
        first.ledger.leases.release(old)
        assert new == second.ledger.leases.holder("t")
        second.ledger.leases.release(new)
        assert second.ledger.leases.holder("t") is None


def test_a_worker_that_comes_back_settles_what_it_did(url: str) -> None:
    """Taken for dead, yet done after all: its result counts, and the question about it is answered by that."""
    clock = ManualClock()
    request = ClaimRequest("e1", "key", "digest", "pay", "r1", "t", repeatable=False, own_key=False)
    with open_checkpoints(url, clock=clock) as first, open_checkpoints(url, clock=clock) as second:
        claim = first.ledger.effects.claim(request)
        assert claim.effect is not None
        assert second.ledger.effects.claim(request).status is ClaimStatus.BUSY
        clock.advance(11)
        assert second.ledger.effects.claim(request).status is ClaimStatus.UNKNOWN
        row = first.ledger.settle(claim.effect, EffectStatus.DONE, "paid")
        assert (row.status, row.result) == ("done", "paid")
        assert second.ledger.effects.claim(request).result == "paid"


def test_threads_of_one_process_keep_apart(url: str, tmp_path: Path) -> None:
    """Four threads that share one `SyncRuns` and want one run: it is driven once, and all get its end."""
    bank, gate = Bank(tmp_path / "bank.db"), Gate()
    barrier = threading.Barrier(4)
    with open_checkpoints(url) as checkpoints, ThreadPoolExecutor(4) as threads:
        runs = SyncRuns(build(bank, gate), checkpoints)
        gate.open()

        def go() -> str:
            barrier.wait(20)
            return runs.run("Pay.", thread_id="t", run_id="r1").answer

        assert ["Paid."] * 4 == [future.result() for future in [threads.submit(go) for _ in range(4)]]
    assert bank.payments() == [("A100", 250)]
