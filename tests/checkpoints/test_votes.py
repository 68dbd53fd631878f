"""Votes and reminders in the ledger: counted once a person, by whichever worker, on every kind of store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from tests.world.stores import Store

from loopwright import open_checkpoints
from loopwright.checkpoints import Checkpoints, Decided, NewApproval
from loopwright.state import DECISIONS, Requirement
from loopwright.testing import ManualClock

YES = {"type": "approve"}
BY_THREE = Requirement(roles=["lead"], number=3, not_by="customer-7", decisions=[*DECISIONS])


def test_many_clicks_at_once(kept: Store, clock: ManualClock) -> None:
    """Each of three people clicks in four processes: three votes count, the last decides, and the log is whole."""
    people = ["ana", "ben", "cara"]
    stores = [open_checkpoints(kept.url, clock=clock) for _ in range(4)]
    ledger = stores[0].ledger
    ledger.runs.start("r", thread_id="t", agent="a", message="m", task="m", requester="customer-7")
    asked = NewApproval("q", "tool_approval", "pay", {"amount": 5}, {}, needs=BY_THREE, remind_after=60)
    ledger.ask("r", "t", [asked])

    def click(place: tuple[Checkpoints, str]) -> Decided:
        store, name = place
        return store.ledger.decide("q", YES, name, ["lead"])

    with ThreadPoolExecutor(4) as pool:
        clicked = [*pool.map(click, [(store, name) for name in people for store in stores])]
    assert 3 == sum(decided.accepted for decided in clicked)
    approval = ledger.approvals.get("q")
    assert (BY_THREE, YES, set(people)) == (approval.needs, approval.decision, set(approval.votes))
    assert ", ".join(approval.votes) == approval.decided_by
    run = ledger.runs.find("r")
    assert run is not None
    assert "customer-7" == run.requester
    events = [record.event for record in ledger.log.records()]
    assert ["asked", "voted", "voted", "voted", "decided"] == events
    assert ledger.log.verify().is_whole
    for store in stores:
        store.close()


def test_no_vote_counts_after_the_end(kept: Store, clock: ManualClock) -> None:
    """Not on a question that has expired, and not on one that was rejected; and no reminder is due of them."""
    with open_checkpoints(kept.url, clock=clock) as store:
        ledger = store.ledger
        ledger.runs.start("r", thread_id="t", agent="a", message="m", task="m")
        needs = Requirement(roles=[], number=2, not_by=None, decisions=[*DECISIONS])
        for name in ("late", "no"):
            ledger.ask(
                "r",
                "t",
                [NewApproval(name, "tool_approval", "pay", {}, {}, needs=needs, expires_in=60, remind_after=30)],
            )
            assert ledger.decide(name, YES, "ana").accepted
        ledger.decide("no", {"type": "reject", "message": ""}, "ben")
        clock.advance(30)
        assert ["late"] == [approval.id for approval in ledger.approvals.due_reminders("a")]
        assert [] == ledger.approvals.due_reminders("b")
        assert [True, False] == [ledger.approvals.claim_reminder("late") for _ in range(2)]
        assert not ledger.approvals.claim_reminder("no")
        clock.advance(30)
        assert ["expire", "reject"] == [
            (ledger.decide(name, YES, "cara").approval.decision or {})["type"] for name in ("late", "no")
        ]
        assert [("ana",), ("ana",)] == [ledger.approvals.get(name).votes for name in ("late", "no")]
