"""A write that was begun, and nobody knows whether it happened: its own kind of question, never a second payment."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.world.nursery import KILLED, Nursery
from tests.world.refund import ANSWER, PAID, THREAD, Refund, later

from loopwright import Approval, SyncRuns, approve, edit, happened, not_happened, open_checkpoints, reject, respond
from loopwright.errors import EffectNotFound, InvalidDecision
from loopwright.testing import check_transcript


class Case:
    """A refund whose process was killed, taken over by this one."""

    def __init__(self, refund: Refund, runs: SyncRuns) -> None:
        """Recover it."""
        self.refund = refund
        self.runs = runs
        runs.recover()

    @property
    def asked(self) -> Approval:
        """The one question that is open."""
        (asked,) = self.runs.approvals()
        return asked


@pytest.fixture(name="paid")
def kill_after_the_payment(nursery: Nursery, tmp_path: Path) -> Generator[Case]:
    """The payment's row is there, nothing else is."""
    yield from _killed(nursery, tmp_path, die_in="tool:after")


@pytest.fixture(name="unpaid")
def kill_before_the_payment(nursery: Nursery, tmp_path: Path) -> Generator[Case]:
    """The effect is claimed, and the bank knows nothing of it."""
    yield from _killed(nursery, tmp_path, die_in="tool:before")


def _killed(nursery: Nursery, folder: Path, die_in: str) -> Generator[Case]:
    assert nursery.start("drive", folder=str(folder), die_in=die_in).wait() == KILLED
    refund = Refund(folder)
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        yield Case(refund, SyncRuns(refund.agent, checkpoints))


def test_it_is_a_question_of_its_own_kind(paid: Case) -> None:
    """What is asked is whether it happened, and only that can be answered."""
    asked = paid.asked
    assert asked.question == "outcome_unknown"
    assert asked.payload["type"] == "outcome_unknown"
    assert asked.allowed == ("respond", "reject")
    assert asked.args == {"order_id": "A100", "amount": 250}
    assert asked.effect_id == asked.payload["effect_id"]


@pytest.mark.parametrize("decision", [approve(), edit(amount=1), {"type": "accept"}, {"type": "edit", "args": {}}])
def test_nobody_can_approve_it(paid: Case, decision: object) -> None:
    """An approval would pay again: it is refused, and the question stays open."""
    with pytest.raises(InvalidDecision, match="respond, reject"):
        paid.runs.decide(paid.asked.id, decision, by="ben")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # also what no type allows
    assert paid.asked.decision is None
    assert len(paid.refund.bank.payments()) == 1


def test_recovering_again_asks_nothing_new(paid: Case) -> None:
    """The question is asked once, however often its run is looked after."""
    before = paid.asked
    paid.runs.recover()
    assert before == paid.asked


def test_it_happened(paid: Case) -> None:
    """The person's text stands in the result's place; nothing is paid again."""
    receipt = paid.runs.decide(paid.asked.id, respond(PAID), by="ben")
    result = paid.runs.wait(receipt.run_id)
    assert (result.answer, paid.refund.bank.payments()) == (ANSWER, [("A100", 250)])
    assert [("pay", "done", PAID)] == [(e["tool"], e["outcome"], e["observation"]) for e in result.trail[1:]]
    check_transcript(result.messages)


def test_it_did_not_happen_and_shall_not(unpaid: Case) -> None:
    """A rejection settles it: nothing is paid, and the model is told so."""
    receipt = unpaid.runs.decide(unpaid.asked.id, reject("the bank says no"), by="ben")
    result = unpaid.runs.wait(receipt.run_id)
    assert ("rejected", []) == (result.trail[-1]["outcome"], unpaid.refund.bank.payments())
    assert "the bank says no" in result.trail[-1]["observation"]


def test_resolve_happened(paid: Case) -> None:
    """In code, `happened` says the same as a response."""
    receipt = paid.runs.resolve(paid.asked.effect_id, happened(PAID), by="the reconciler")
    assert receipt.accepted
    result = paid.runs.wait(receipt.run_id)
    assert (result.trail[-1]["outcome"], result.trail[-1]["observation"]) == ("done", PAID)
    assert paid.refund.bank.payments() == [("A100", 250)]


def test_resolve_not_happened_asks_anew(unpaid: Case) -> None:
    """The call is screened and asked again; approved, it pays once, under a new claim."""
    effect_id = unpaid.asked.effect_id
    receipt = unpaid.runs.resolve(effect_id, not_happened(), by="the reconciler")
    result = unpaid.runs.wait(receipt.run_id)
    (asked,) = result.approvals
    assert (asked.question, asked.args) == ("tool_approval", {"order_id": "A100", "amount": 250})
    assert unpaid.refund.bank.payments() == []
    unpaid.runs.decide(asked.id, approve(), by="ben")
    result = unpaid.runs.wait(receipt.run_id)
    assert (result.answer, unpaid.refund.bank.payments()) == (ANSWER, [("A100", 250)])
    with open_checkpoints(unpaid.refund.url) as checkpoints:
        rows = {row.id: row.status for row in checkpoints.ledger.effects.of_run(receipt.run_id)}
    assert rows.pop(effect_id) == "failed"
    assert [*rows.values()] == ["done"]


def test_the_first_outcome_counts(paid: Case) -> None:
    """A second one is told what was said before, and by whom it was not."""
    effect_id = paid.asked.effect_id
    paid.runs.resolve(effect_id, happened(PAID), by="ben")
    late = paid.runs.resolve(effect_id, not_happened(), by="carl")
    assert (False, "happened") == (late.accepted, late.decision["type"])
    paid.runs.recover()
    assert paid.refund.bank.payments() == [("A100", 250)]


def test_an_unknown_id_is_an_error(paid: Case) -> None:
    """An effect that nobody has heard of is no effect."""
    with pytest.raises(EffectNotFound, match="nope"):
        paid.runs.resolve("nope", happened(), by="ben")


def test_a_cancellation_does_not_call_it_undone(paid: Case) -> None:
    """Cancelled while it is unknown, the call is told as unknown: "not run" would be a lie."""
    (run,) = paid.runs.list()
    paid.runs.cancel(run.id, by="ben")
    result = paid.runs.wait(run.id)
    assert ("cancelled", "unknown") == (result.status, result.trail[-1]["outcome"])
    assert "nobody knows" in result.messages[-1].text
    check_transcript(result.messages)


def test_the_same_call_in_a_new_run_is_asked_about_first(paid: Case) -> None:
    """After a newer message the question is gone, yet the doubt is not: the same call is not just run."""
    result = paid.runs.run("Please do refund A100.", thread_id=THREAD)
    (asked,) = result.approvals
    assert asked.question == "tool_approval"
    paid.runs.decide(asked.id, approve(), by="ben")
    result = paid.runs.wait(result.run_id)
    (asked,) = result.approvals
    assert asked.question == "outcome_unknown"
    paid.runs.decide(asked.id, respond(PAID), by="ben")
    result = paid.runs.wait(result.run_id)
    assert (result.answer, paid.refund.bank.payments()) == (ANSWER, [("A100", 250)])
    check_transcript(result.messages)
