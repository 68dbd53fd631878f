"""Effects: every state that a claim can meet, as a table of short stories."""

from __future__ import annotations

from dataclasses import replace

import pytest

from loopwright import Checkpoints
from loopwright.checkpoints import (
    Brought,
    Claim,
    ClaimRequest,
    ClaimStatus,
    EffectRow,
    Effects,
    EffectStatus,
    NewApproval,
)
from loopwright.errors import EffectNotFound
from loopwright.state import Question
from loopwright.testing import ManualClock

PLACE = ClaimRequest("e1", "place", "pay 5", "pay", "r1", "t", repeatable=False, own_key=False)
OWN = replace(PLACE, key="order A1", own_key=True)
SAFE = replace(PLACE, repeatable=True)
LATER = 11


@pytest.fixture(name="effects")
def take_effects(checkpoints: Checkpoints) -> Effects:
    """The table alone."""
    return checkpoints.ledger.effects


def mine(claim: Claim) -> EffectRow:
    """Require that the claim was won."""
    assert claim.status is ClaimStatus.MINE
    assert claim.effect is not None
    return claim.effect


def test_a_first_claim_is_mine(effects: Effects) -> None:
    """And a second one, while the first lives, is told to wait."""
    row = mine(effects.claim(PLACE))
    assert (row.status, row.generation, row.key) == ("claimed", 1, "place")
    assert effects.claim(PLACE).status is ClaimStatus.BUSY


@pytest.mark.parametrize("request_", [PLACE, OWN, SAFE])
def test_what_is_done_is_never_done_again(effects: Effects, request_: ClaimRequest) -> None:
    """The stored result is the answer, for every kind, with all that it brought."""
    brought: Brought = {"place": "here", "update": {"total": 5}, "artifact": [None, "half \ufffd"]}
    effects.settle(mine(effects.claim(request_)), EffectStatus.DONE, {"paid": 5}, brought)
    again = effects.claim(request_)
    assert (again.status, again.result) == (ClaimStatus.DONE, {"paid": 5})
    assert again.effect is not None
    assert brought == again.effect.brought


def test_what_failed_in_its_place_has_failed(effects: Effects) -> None:
    """A repeated step finds the same answer; a new try has another place."""
    effects.settle(mine(effects.claim(PLACE)), EffectStatus.FAILED, "no money")
    assert (effects.claim(PLACE).status, effects.claim(PLACE).result) == (ClaimStatus.FAILED, "no money")


def test_what_failed_under_its_own_key_can_be_tried_again(effects: Effects) -> None:
    """The key lives as long as the ledger, so a failure must not use it up; also with other arguments."""
    effects.settle(mine(effects.claim(OWN)), EffectStatus.FAILED, "no money")
    assert mine(effects.claim(OWN)).generation == 2
    effects.settle(effects.get("e1"), EffectStatus.FAILED, "no money")
    assert mine(effects.claim(replace(OWN, digest="pay 6"))).digest == "pay 6"


def test_a_write_whose_owner_is_gone_is_unknown(effects: Effects, clock: ManualClock) -> None:
    """It is never just run again."""
    mine(effects.claim(PLACE))
    clock.advance(LATER)
    assert effects.claim(PLACE).status is ClaimStatus.UNKNOWN
    assert effects.get("e1").status == "unknown"


def test_what_may_be_repeated_is(effects: Effects, clock: ManualClock) -> None:
    """Under the same key, by whoever comes next; the old owner can settle nothing any more."""
    old = mine(effects.claim(SAFE))
    clock.advance(LATER)
    new = mine(effects.claim(SAFE))
    assert (old.key, 2) == (new.key, new.generation)
    assert effects.settle(old, EffectStatus.DONE, "old").status == "claimed"
    assert effects.settle(new, EffectStatus.DONE, "new").result == "new"


def test_other_arguments_under_one_key(effects: Effects, clock: ManualClock) -> None:
    """Never a stored result: a conflict under a tool's own key, a doubt in a place of the run."""
    other = replace(OWN, digest="pay 6")
    effects.settle(mine(effects.claim(OWN)), EffectStatus.DONE, "paid 5")
    assert effects.claim(other).status is ClaimStatus.CONFLICT
    place = replace(PLACE, id="e2", key="place 2")
    mine(effects.claim(place))
    assert effects.claim(replace(place, digest="pay 6")).status is ClaimStatus.BUSY
    clock.advance(LATER)
    assert effects.claim(replace(place, digest="pay 6")).status is ClaimStatus.UNKNOWN


def test_a_pause_gives_the_claim_back(effects: Effects) -> None:
    """As if it had never been made; what is settled stays."""
    effects.release(effects.claim(PLACE))
    assert effects.find("e1") is None
    claim = effects.claim(PLACE)
    effects.settle(mine(claim), EffectStatus.DONE, "x")
    effects.release(claim)
    assert effects.get("e1").status == "done"


def test_a_pause_leaves_a_doubt_as_it_was(effects: Effects, clock: ManualClock) -> None:
    """What another began, and may have done, is unknown after a pause too; what is known to have failed is not."""
    mine(effects.claim(SAFE))
    clock.advance(LATER)
    for _ in range(2):
        effects.release(effects.claim(SAFE))
        assert effects.get("e1").status == "unknown"
    own = replace(OWN, id="e2")
    effects.settle(mine(effects.claim(own)), EffectStatus.FAILED, "no money")
    effects.release(effects.claim(own))
    assert effects.find("e2") is None


def test_the_owner_may_come_back(effects: Effects, clock: ManualClock) -> None:
    """Taken for dead, yet not taken over: what it says counts, unless somebody resolved it before."""
    row = mine(effects.claim(PLACE))
    clock.advance(LATER)
    effects.claim(PLACE)
    assert effects.settle(row, EffectStatus.DONE, "paid").status == "done"
    other = replace(PLACE, id="e2", key="p2", digest="pay 7")
    row = mine(effects.claim(other))
    clock.advance(LATER)
    effects.claim(other)
    assert effects.resolve("e2", EffectStatus.FAILED, "no", "ana")[0]
    assert effects.settle(row, EffectStatus.DONE, "paid").status == "failed"


def test_resolving(effects: Effects, clock: ManualClock) -> None:
    """Only what is unknown, once; a claim that has run out counts as unknown, a living one does not."""
    mine(effects.claim(PLACE))
    won, row = effects.resolve("e1", EffectStatus.DONE, "paid", "ana")
    assert (won, row.status) == (False, "claimed")
    clock.advance(LATER)
    won, row = effects.resolve("e1", EffectStatus.DONE, "paid", "ana")
    assert (won, row.status, row.result) == (True, "done", "paid")
    won, row = effects.resolve("e1", EffectStatus.FAILED, "no", "ben")
    assert (won, row.status) == (False, "done")
    with pytest.raises(EffectNotFound, match="nope"):
        effects.resolve("nope", EffectStatus.DONE, "", "ana")


def test_retaking_after_a_look(effects: Effects, clock: ManualClock) -> None:
    """A hook that found nothing lets its caller try again, under the same key, once."""
    mine(effects.claim(PLACE))
    clock.advance(LATER)
    effects.claim(PLACE)
    assert mine(effects.retake(PLACE)).generation == 2
    assert effects.retake(PLACE).status is ClaimStatus.BUSY


def test_the_same_call_elsewhere_in_the_thread(effects: Effects, clock: ManualClock) -> None:
    """While one of them is in doubt, the same call is not just run; another call, or thread, is not concerned."""
    mine(effects.claim(PLACE))
    clock.advance(LATER)
    again = replace(PLACE, id="e2", key="p2", run_id="r2")
    claim = effects.claim(again)
    assert claim.status is ClaimStatus.UNKNOWN
    assert claim.effect is not None
    assert claim.effect.id == "e1"
    mine(effects.claim(replace(again, id="e3", key="p3", digest="pay 6")))
    mine(effects.claim(replace(again, id="e4", key="p4", thread_id="other")))
    effects.resolve("e1", EffectStatus.FAILED, "no", "ana")
    mine(effects.claim(again))


def test_a_repetition_of_what_may_be_repeated_has_its_key(effects: Effects, clock: ManualClock) -> None:
    """The model tries an idempotent call again: the service behind it sees the same key."""
    effects.settle(mine(effects.claim(SAFE)), EffectStatus.UNKNOWN, None)
    again = mine(effects.claim(replace(SAFE, id="e2", key="p2")))
    assert (again.id, again.key) == ("e1", "place")
    effects.settle(again, EffectStatus.DONE, "x")
    assert mine(effects.claim(replace(SAFE, id="e3", key="p3"))).id == "e3"
    assert clock() == effects.get("e1").ended_at


def test_runs_without_a_thread_do_not_meet(effects: Effects) -> None:
    """Two runs that share no thread share no doubt either."""
    nowhere = replace(PLACE, thread_id="")
    effects.settle(mine(effects.claim(nowhere)), EffectStatus.UNKNOWN, None)
    mine(effects.claim(replace(nowhere, id="e2", key="p2", run_id="r2")))


def test_a_cancelled_run_claims_nothing(checkpoints: Checkpoints) -> None:
    """The cancellation is looked up in the transaction of the claim; what is settled is still told."""
    ledger = checkpoints.ledger
    ledger.runs.start("r1", thread_id="t", agent="a", message="m", task="m")
    ledger.effects.settle(mine(ledger.effects.claim(PLACE)), EffectStatus.DONE, "paid")
    assert ledger.cancel("r1", "ana")
    assert ledger.effects.claim(replace(PLACE, id="e2", key="p2")).status is ClaimStatus.CANCELLED
    assert ledger.effects.find("e2") is None
    assert ledger.effects.claim(PLACE).result == "paid"


def test_nobody_says_what_came_of_what_is_run_again(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """A hook let another worker try again while a person was asked: what that one does is the answer."""
    ledger = checkpoints.ledger
    mine(ledger.effects.claim(PLACE))
    clock.advance(LATER)
    assert ledger.effects.claim(PLACE).status is ClaimStatus.UNKNOWN
    ledger.ask("r1", "t", [NewApproval("q1", Question.OUTCOME, "pay", {}, {}, effect_id="e1")])
    again = mine(ledger.effects.retake(PLACE))
    for said in ("respond", "reject"):
        decided = ledger.decide("q1", {"type": said, "message": "so it is"}, "ana")
        assert (False, None) == (decided.accepted, decided.approval.decision)
    ledger.settle(again, EffectStatus.DONE, "paid")
    answered = ledger.approvals.get("q1")
    assert ({"type": "respond", "message": "paid"}, again.owner) == (answered.decision, answered.decided_by)
