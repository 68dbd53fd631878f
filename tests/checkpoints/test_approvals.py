"""Approvals: one decision counts, for ever; the passing of time decides without a timer."""

from __future__ import annotations

import pytest

from loopwright import Checkpoints
from loopwright.checkpoints import ClaimRequest, EffectStatus, NewApproval
from loopwright.errors import ApprovalNotFound
from loopwright.testing import ManualClock

QUESTION = NewApproval("q1", "tool_approval", "pay", {"amount": 5}, {"description": "May it?", "allowed": ["approve"]})
SOON = NewApproval("q2", "tool_approval", "pay", {"amount": 6}, {}, expires_in=60)
YES = {"type": "approve"}
NO = {"type": "reject", "message": "no"}


def payment(number: object) -> ClaimRequest:
    """What claims one of several payments."""
    return ClaimRequest(f"e{number}", f"k{number}", f"d{number}", "pay", "r1", "t", repeatable=False, own_key=False)


@pytest.fixture(name="ledger_of_r1", autouse=True)
def start_run(checkpoints: Checkpoints) -> None:
    """A run that asks."""
    checkpoints.ledger.runs.start("r1", thread_id="t", agent="a", message="m", task="m")


def test_the_first_decision_counts(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """The second is told which one, by whom and when."""
    approvals = checkpoints.ledger.approvals
    approvals.open("r1", "t", [QUESTION])
    first = approvals.decide("q1", YES, "ana")
    at = clock()
    clock.advance(5)
    second = approvals.decide("q1", NO, "ben")
    assert (True, False) == (first.accepted, second.accepted)
    assert (YES, "ana", at) == (second.approval.decision, second.approval.decided_by, second.approval.decided_at)


def test_opening_again_changes_nothing(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """A repeated step asks the same question: neither its expiry nor its decision is touched."""
    approvals = checkpoints.ledger.approvals
    approvals.open("r1", "t", [SOON])
    before = approvals.get("q2")
    clock.advance(30)
    approvals.open("r1", "t", [SOON])
    assert before == approvals.get("q2")
    approvals.decide("q2", NO, "ana")
    approvals.open("r1", "t", [SOON])
    assert approvals.get("q2").decision == NO
    assert ["asked", "decided"] == [record.event for record in checkpoints.ledger.log.records()]


def test_the_run_waits_from_then_on(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """In the same transaction; asking again does not make it wait since later."""
    ledger = checkpoints.ledger
    ledger.approvals.open("r1", "t", [QUESTION])
    since = clock()
    clock.advance(30)
    ledger.approvals.open("r1", "t", [QUESTION, SOON])
    row = ledger.runs.find("r1")
    assert row is not None
    assert ("waiting", since) == (row.status, row.updated_at)


def test_time_decides(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """One second before, it can be decided; from then on, it is: by expiry, once, in the log too."""
    approvals = checkpoints.ledger.approvals
    approvals.open("r1", "t", [SOON])
    clock.advance(59)
    assert approvals.standing(["q2"])["q2"].decision is None
    clock.advance(1)
    late = approvals.decide("q2", YES, "ana")
    assert (False, {"type": "expire"}, "expiry") == (
        late.accepted,
        late.approval.decision,
        late.approval.decided_by,
    )
    assert approvals.standing(["q2"])["q2"] == late.approval
    assert ["asked", "decided"] == [record.event for record in checkpoints.ledger.log.records()]


def test_withdrawing_closes_what_is_open(checkpoints: Checkpoints) -> None:
    """Of one run only; what was decided stays."""
    ledger = checkpoints.ledger
    ledger.runs.start("r2", thread_id="t2", agent="a", message="m", task="m")
    ledger.approvals.open("r1", "t", [QUESTION, SOON])
    ledger.approvals.open("r2", "t2", [NewApproval("q3", "tool_approval", "pay", {}, {})])
    ledger.approvals.decide("q1", YES, "ana")
    ledger.approvals.withdraw("r1", "a newer message")
    assert ["q3"] == [asked.id for asked in ledger.approvals.list_open()]
    assert [YES, {"type": "cancel"}] == [asked.decision for asked in ledger.approvals.of_run("r1")]


def test_what_nobody_asked(checkpoints: Checkpoints) -> None:
    """The error says where to look."""
    with pytest.raises(ApprovalNotFound, match="inbox"):
        checkpoints.ledger.approvals.decide("nope", YES, "ana")


def test_ids_can_be_shortened(checkpoints: Checkpoints) -> None:
    """As a person types them; a percent sign is no wildcard of theirs to use."""
    checkpoints.ledger.approvals.open("r1", "t", [QUESTION, SOON])
    matching = checkpoints.ledger.approvals.matching
    assert [["q1", "q2"], ["q1"], [], []] == [list(matching(prefix)) for prefix in ("q", "q1", "x", "%")]


def test_an_outcome_that_became_known_is_not_asked(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Its worker settled it while the question was on its way, or was open: either way it is answered by that."""
    ledger = checkpoints.ledger
    for number in ("1", "2"):
        request = ClaimRequest(
            f"e{number}", f"k{number}", f"d{number}", "pay", "r1", "t", repeatable=False, own_key=False
        )
        row = ledger.effects.claim(request).effect
        assert row is not None
        clock.advance(11)
        ledger.effects.claim(request)
        asked = NewApproval(f"o{number}", "outcome_unknown", "pay", {}, {}, effect_id=row.id)
        if number == "1":
            ledger.ask("r1", "t", [asked])
            assert ledger.approvals.get("o1").decision is None
        ledger.settle(row, EffectStatus.DONE, "paid")
        if number == "2":
            ledger.ask("r1", "t", [asked])
        told = ledger.decide(f"o{number}", NO, "ben")
        assert (False, {"type": "respond", "message": "paid"}) == (told.accepted, told.approval.decision)
        assert told.approval.decided_by == ledger.owner


def test_deciding_an_outcome_settles_its_effect(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """In one transaction: a response says that it happened, a rejection that it did not."""
    ledger = checkpoints.ledger
    said = [({"type": "respond", "message": "paid"}, "done"), (NO, "failed")]
    for number, (decision, status) in enumerate(said):
        request = ClaimRequest(
            f"e{number}", f"k{number}", f"d{number}", "pay", "r1", "t", repeatable=False, own_key=False
        )
        ledger.effects.claim(request)
        clock.advance(11)
        ledger.effects.claim(request)
        ledger.ask("r1", "t", [NewApproval(f"o{number}", "outcome_unknown", "pay", {}, {}, effect_id=f"e{number}")])
        assert ledger.decide(f"o{number}", decision, "ana").accepted
        assert status == ledger.effects.get(f"e{number}").status
