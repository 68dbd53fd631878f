"""Renewing: all that a process holds at once, so that none of it runs out while another part waits."""

from __future__ import annotations

from typing import Any

from tests.checkpoints.test_commits import statements_of
from tests.world.postgres import Database

from loopwright import Checkpoints, open_checkpoints
from loopwright.checkpoints import ClaimRequest, ClaimStatus, EffectRow, EffectStatus, Lease, Ledger
from loopwright.checkpoints.renewals import Held
from loopwright.testing import ManualClock

LATER = 11
"""A lease has run out by then."""


def take(ledger: Ledger, thread_id: str) -> Lease:
    """Take a thread's lease, which is free."""
    lease = ledger.leases.take(thread_id)
    assert lease is not None
    return lease


def request(name: str) -> ClaimRequest:
    """A call that may be repeated."""
    return ClaimRequest(name, name, name, "save", "r", name, repeatable=True, own_key=False)


def claim(ledger: Ledger, name: str) -> EffectRow:
    """Claim an effect, which nobody has claimed."""
    claimed = ledger.effects.claim(request(name))
    assert claimed.status is ClaimStatus.MINE
    assert claimed.effect is not None
    return claimed.effect


def test_all_are_kept_alive(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """As long as they are renewed; not when somebody else has one, or it is settled or given back."""
    ledger = checkpoints.ledger
    held: list[Held] = [take(ledger, "a"), take(ledger, "b"), claim(ledger, "e"), claim(ledger, "f")]
    for _ in range(3):
        clock.advance(9)
        assert [True] * 4 == ledger.renewals.renew(held)
    assert (None, None) == (ledger.leases.take("a"), ledger.leases.take("b"))
    assert ledger.effects.claim(request("e")).status is ClaimStatus.BUSY
    clock.advance(LATER)
    taken = take(ledger, "a")
    again = claim(ledger, "e")
    assert [False, True, False, True] == ledger.renewals.renew(held)
    ledger.leases.release(taken)
    ledger.effects.settle(again, EffectStatus.DONE, "x")
    assert [False, False] == ledger.renewals.renew([taken, again])
    assert ledger.leases.holder("a") is None


def test_a_beat_is_one_commit(tmp_path: Any, clock: ManualClock) -> None:
    """However many leases and claims it moves: the last of hundreds would have run out before its turn."""
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}", clock=clock) as checkpoints:
        ledger = checkpoints.ledger
        held: list[Held] = [*(take(ledger, f"t{n}") for n in range(30)), *(claim(ledger, f"e{n}") for n in range(30))]
        seen = statements_of(checkpoints)
        assert [True] * 60 == ledger.renewals.renew(held)
        assert 1 == sum(statement.casefold() == "commit" for statement in seen)
        assert len(seen) < 20


def test_one_that_is_blocked_lets_no_other_run_out(postgres: Database, clock: ManualClock) -> None:
    """Somebody has locked a lease and a claim: the beat passes over them, renews the rest, and loses none."""
    with open_checkpoints(postgres.url, clock=clock) as here, open_checkpoints(postgres.url, clock=clock) as there:
        ledger = here.ledger
        first, second = take(ledger, "a"), take(ledger, "b")
        effect, other = claim(ledger, "e"), claim(ledger, "f")
        with (
            ledger.heart.keep(first),
            ledger.heart.keep(second),
            ledger.heart.keep(effect),
            ledger.heart.keep(other),
        ):
            with postgres.server.connect(postgres.name) as blocker, blocker.transaction():
                blocker.execute("select 1 from lw_leases where thread_id = 'a' for update")
                blocker.execute("select 1 from lw_effects where id = 'e' for update")
                clock.advance(9)
                ledger.heart.beat()
                clock.advance(9)
                assert there.ledger.leases.take("b") is None
                assert there.ledger.effects.claim(request("f")).status is ClaimStatus.BUSY
            ledger.heart.beat()
            clock.advance(9)
            assert there.ledger.leases.take("a") is None
            assert there.ledger.effects.claim(request("e")).status is ClaimStatus.BUSY


def test_a_lease_that_was_given_back_stays_free(checkpoints: Checkpoints) -> None:
    """A beat that was on its way meanwhile does not take it again, for nobody."""
    ledger = checkpoints.ledger
    lease = take(ledger, "t")
    ledger.leases.release(lease)
    ledger.renewals.renew([lease])
    assert ledger.leases.holder("t") is None


def test_a_caller_is_there_from_his_first_beat_on(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """He waits for a lease that another has, and what comes when he has left is given back."""
    ledger = checkpoints.ledger
    other = take(ledger, "t")
    with ledger.present("t"):
        ledger.heart.beat()
        assert other == ledger.leases.holder("t")
        ledger.leases.release(other)
        for _ in range(3):
            ledger.heart.beat()
            assert 2 == take_token(ledger, "t")
            clock.advance(9)
        clock.advance(LATER)
        taken = take(ledger, "t")
        ledger.heart.beat()
        assert taken == ledger.leases.holder("t")
        ledger.leases.release(taken)
        ledger.heart.beat()
        assert 4 == take_token(ledger, "t")
    assert ledger.leases.holder("t") is None


def take_token(ledger: Ledger, thread_id: str) -> int:
    """Return the number of the thread's holder."""
    lease = ledger.leases.holder(thread_id)
    assert lease is not None
    return lease.token
