"""Machines whose clocks differ: nobody takes over what is still held, and nobody waits for longer than its lease."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from tests.world.postgres import Database

from loopwright import open_checkpoints
from loopwright.checkpoints import ClaimRequest, ClaimStatus, NewApproval
from loopwright.checkpoints.server_clock import ServerClock
from loopwright.testing import ManualClock

PAY = ClaimRequest("e1", "key", "digest", "pay", "r1", "t", repeatable=True, own_key=False)
HOUR = 3600.0


@contextmanager
def machine(ahead: float) -> Generator[None]:
    """Do what is in the block as on a machine whose clock is wrong by so much."""
    right = time.time
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "time", lambda: right() + ahead)
        yield


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_clocks_that_differ(postgres: Database, ahead: float) -> None:
    """On PostgreSQL the server's clock counts: for leases, claims and what is asked in time."""
    with machine(ahead):
        there = open_checkpoints(postgres.url)
    with there, open_checkpoints(postgres.url) as here:
        lease = here.ledger.leases.take("t")
        assert lease is not None
        assert abs(lease.until - time.time() - 10) < 5
        assert here.ledger.effects.claim(PAY).status is ClaimStatus.MINE
        here.ledger.ask("r1", "t", [NewApproval("q1", "tool_approval", "pay", {}, {}, expires_in=60.0)])
        with machine(ahead):
            assert there.ledger.leases.take("t") is None
            assert there.ledger.effects.claim(PAY).status is ClaimStatus.BUSY
            assert there.ledger.approvals.standing(["q1"])["q1"].decision is None
            other = there.ledger.leases.take("u")
        assert other is not None
        assert abs(other.until - lease.until) < 5
        here.ledger.leases.release(lease)
        with machine(ahead):
            assert there.ledger.leases.take("t") is not None


def test_a_clock_that_is_set_meanwhile(postgres: Database) -> None:
    """By an hour, forward or back: what is held stays held, and its end stays where it was."""
    with open_checkpoints(postgres.url) as checkpoints:
        ledger = checkpoints.ledger
        lease = ledger.leases.take("t")
        assert lease is not None
        for ahead in (HOUR, -HOUR):
            with machine(ahead):
                assert ledger.leases.take("t") is None
                assert [True] == ledger.renewals.renew([lease])
                holder = ledger.leases.holder("t")
            assert holder is not None
            assert 0 <= holder.until - lease.until < 5


def test_a_given_clock_counts(postgres: Database, clock: ManualClock) -> None:
    """Whoever hands one in goes by that alone."""
    with open_checkpoints(postgres.url, clock=clock) as checkpoints:
        lease = checkpoints.ledger.leases.take("t")
        assert lease is not None
        assert clock() + 10 == lease.until


def test_what_the_server_says_is_late() -> None:
    """Of two sayings that nearly agree the later in time is right; a step of the server's clock is followed at once."""
    passed = ManualClock(100.0)
    clock = ServerClock(passed)
    clock.hear(5000.0)
    passed.advance(1)
    assert 5001.0 == clock()
    clock.hear(5000.9)  # a tenth of a second on its way
    assert 5001.0 == clock()
    clock.hear(5001.05)
    assert 5001.05 == clock()
    clock.hear(4000.0)
    assert 4000.0 == clock()
    clock.hear(9000.0)
    assert 9000.0 == clock()
    passed.advance(61)
    clock.hear(9060.9)  # it may run slower than what counts here
    assert 9060.9 == clock()
