"""Decisions about calls: what was approved is what runs, and what was not never does."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Checkpoints, Limits, approve, ask, create_agent, deny, edit, open_checkpoints, reject, respond
from loopwright.errors import ApprovalNotFound, InvalidDecision
from loopwright.state import PersonDecision
from loopwright.testing import ManualClock, ScriptedModel, call, check_transcript

PAY = call("pay", order_id="A1", amount=5)
ONE = [PAY, "Done."]


def desk(till: Till, checkpoints: Checkpoints, turns: list[Any], door: DoorName = "sync", **options: Any) -> Desk:
    """Open a desk for an agent that looks and pays."""
    return Desk(create_agent(planned(turns), [till.look(), till.pay()], **options), checkpoints, door)


DECISIONS: dict[str, tuple[Any, list[tuple[str, int]], str, str]] = {
    "approve": (approve(), [("A1", 5)], "done", "paid 5 for A1"),
    "edit one": (edit(amount=3), [("A1", 3)], "done", "paid 3 for A1"),
    "edit all": (edit({"order_id": "B1", "amount": 1}), [("B1", 1)], "done", "paid 1 for B1"),
    "edit as a person types it": (edit(amount="3"), [("A1", 3)], "done", "paid 3 for A1"),
    "edit with a decimal": (edit(amount=Decimal(3)), [("A1", 3)], "done", "paid 3 for A1"),
    "edit the tool": (edit({"order_id": "B1"}, tool="look"), [], "done", "DELIVERED"),
    "reject": (reject("too much"), [], "rejected", "ERROR: rejected by ana: too much"),
    "reject without a reason": (reject(), [], "rejected", "ERROR: rejected by ana"),
    "respond": (respond("Paid by hand."), [], "answered", "Paid by hand."),
    "as JSON": ({"type": "approve"}, [("A1", 5)], "done", "paid 5 for A1"),
    "as LangChain's clients": ({"decisions": [{"type": "approve"}]}, [("A1", 5)], "done", "paid 5 for A1"),
    "as Agent Inbox": (
        [{"type": "edit", "args": {"action": "pay", "args": {"order_id": "C", "amount": 1}}}],
        [("C", 1)],
        "done",
        "paid 1 for C",
    ),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("decision", "paid", "outcome", "observation"), DECISIONS.values(), ids=DECISIONS.keys())
def test_each_decision_does_what_it_says(
    tmp_path: Path, *, decision: Any, paid: Any, outcome: str, observation: str, door: DoorName
) -> None:
    """What runs, what is recorded, and what the model reads."""
    till = Till()
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        opened = desk(till, checkpoints, ONE, door)
        waiting = opened.run()
        assert ("waiting", None, 1) == (waiting.status, waiting.stop_reason, len(waiting.approvals))
        result = opened.answer(waiting, decision)
    assert ("succeeded", paid) == (result.status, till.paid)
    (entry,) = result.trail
    assert (outcome, observation, "ana") == (entry["outcome"], entry["observation"], entry["by"])
    assert result.usage.tool_calls == (1 if outcome == "done" else 0)
    check_transcript(result.messages)


def test_the_trail_shows_what_was_proposed_and_what_ran(checkpoints: Checkpoints) -> None:
    """After an edit, both."""
    till = Till()
    opened = desk(till, checkpoints, ONE)
    (entry,) = opened.answer(opened.run(), edit(amount=3)).trail
    assert {"order_id": "A1", "amount": 3} == entry["args"]
    assert {"order_id": "A1", "amount": 5} == entry.get("proposed")


WRONG: dict[str, tuple[Any, str]] = {
    "no decision": (None, "is no decision"),
    "a word": ("approve", "is no decision"),
    "a misspelt type": ({"type": "aprove"}, "is no decision"),
    "two for one": ({"decisions": [{"type": "approve"}, {"type": "approve"}]}, "is no decision"),
    "none for one": ({"decisions": []}, "is no decision"),
    "an edit without arguments": ({"type": "edit"}, "is no decision"),
    "a response without a text": (PersonDecision("respond"), "needs a text"),
    "a bad value": (edit(amount="abc"), "amount"),
    "an extra key": (edit(ammount=3), "ammount"),
    "nothing left": (edit({}), "order_id"),
    "nested too deep": (edit(order_id=json.loads("[" * 300 + "]" * 300)), "nested too deep"),
    "the same as data": ({"type": "edit", "args": {"amount": json.loads("[" * 300 + "]" * 300)}}, "nested too deep"),
    "an unknown tool": (edit(tool="pey"), "no tool 'pey'"),
    "what a rule denies": (edit(amount=1000), "not so much"),
}


@pytest.mark.parametrize(("decision", "match"), WRONG.values(), ids=WRONG.keys())
def test_what_cannot_be_taken_leaves_the_question_open(checkpoints: Checkpoints, decision: Any, match: str) -> None:
    """Nothing runs, the same question stands, and a right answer still works."""
    till = Till()
    rule = deny("pay", when=lambda proposed: proposed.args["amount"] > 500, reason="not so much")
    opened = desk(till, checkpoints, ONE, permissions=[rule])
    waiting = opened.run()
    with pytest.raises(InvalidDecision, match=match) as caught:
        opened.decide(waiting.approvals[0].id, decision)
    assert waiting.approvals[0].id in str(caught.value)
    assert [*waiting.approvals] == checkpoints.ledger.approvals.list_open()
    assert till.paid == []
    assert opened.answer(waiting, approve()).status == "succeeded"


@pytest.mark.parametrize("by", ["", "  ", None])
def test_a_decision_has_a_name(checkpoints: Checkpoints, by: Any) -> None:
    """Nobody decides anonymously in code."""
    opened = desk(Till(), checkpoints, ONE)
    waiting = opened.run()
    with pytest.raises(InvalidDecision, match="by='ana'"):
        opened.decide(waiting.approvals[0].id, approve(), by)


def test_a_late_decision_is_a_receipt(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """It tells what counts, by whom and since when; it changes nothing, whatever it says, also after the end."""
    till = Till()
    opened = desk(till, checkpoints, ONE)
    waiting = opened.run()
    at = clock()
    opened.answer(waiting, reject("no"))
    clock.advance(60)
    for late in (approve(), edit(amount=1), respond("yes")):
        receipt = opened.decide(waiting.approvals[0].id, late, "ben")
        assert (waiting.run_id, False, {"type": "reject", "message": "no"}, "ana", at) == (
            receipt.run_id,
            receipt.accepted,
            receipt.decision,
            receipt.by,
            receipt.at,
        )
    assert till.paid == []


def test_nothing_is_asked_under_that_id(checkpoints: Checkpoints) -> None:
    """An error, not a receipt."""
    with pytest.raises(ApprovalNotFound, match="nope"):
        desk(Till(), checkpoints, ONE).decide("nope", approve())


def test_a_rejected_call_never_runs_by_asking_again(checkpoints: Checkpoints) -> None:
    """The very same again is answered with the earlier rejection; another one is asked; a new task may ask anew."""
    till = Till()
    other = call("pay", order_id="A1", amount=4)
    opened = desk(till, checkpoints, [PAY, {**PAY, "args": {"amount": 5.0, "order_id": "A1"}}, other, "Done."])
    second = opened.answer(opened.run(), reject("no"))
    assert {"order_id": "A1", "amount": 4} == second.approvals[0].args
    result = opened.answer(second, reject("no"))
    assert ["rejected", "denied", "rejected"] == [entry["outcome"] for entry in result.trail]
    assert "refused before" in result.trail[1]["observation"]
    assert result.usage.tool_calls == 0
    anew = opened.run("Please, once more.")
    assert {"order_id": "A1", "amount": 5} == anew.approvals[0].args
    assert till.paid == []


def test_an_edit_is_counted_under_the_tool_that_runs(checkpoints: Checkpoints) -> None:
    """And cannot lead around the limit of that tool."""
    till = Till()
    turn = [call("look", order_id="A1"), PAY]
    opened = desk(till, checkpoints, [turn, "Done."], limits=Limits(max_calls_per_tool={"look": 1}))
    result = opened.answer(opened.run(), edit({"order_id": "B1"}, tool="look"))
    assert {"look": 1} == result.usage.by_tool
    assert ["done", "not_run"] == [entry["outcome"] for entry in result.trail]
    assert till.looked == ["A1"]


def test_questions_of_one_turn_in_any_order(checkpoints: Checkpoints) -> None:
    """All can be seen at once; each answer reaches its own call; the turn waits for all, and then runs once."""
    till = Till()
    turn = [call("pay", order_id=name, amount=1) for name in "ABCD"]
    opened = desk(till, checkpoints, [[*turn, call("look", order_id="Z")], "Done."])
    waiting = opened.run()
    asked = {approval.args["order_id"]: approval.id for approval in waiting.approvals}
    assert {*"ABCD"} == set(asked)
    for name, decision in (("C", approve()), ("A", reject("no")), ("D", respond("ok"))):
        opened.decide(asked[name], decision)
        assert (opened.wait(waiting.run_id).status, till.paid, till.looked) == ("waiting", [], [])
    opened.decide(asked["B"], approve())
    result = opened.wait(waiting.run_id)
    assert [("A", "rejected"), ("B", "done"), ("C", "done"), ("D", "answered"), ("Z", "done")] == [
        (entry["args"]["order_id"], entry["outcome"]) for entry in result.trail
    ]
    assert [("B", 1), ("C", 1)] == sorted(till.paid)
    check_transcript(result.messages)


def test_the_verdict_that_was_shown_counts(checkpoints: Checkpoints) -> None:
    """A predicate is never asked again when the run resumes: once for the verdict, and once for each edit."""
    seen: list[int] = []

    def looks(proposed: Any) -> bool:
        seen.append(proposed.args["amount"])
        return True

    opened = desk(Till(), checkpoints, ONE, permissions=[ask("pay", when=looks)])
    opened.answer(opened.run(), approve())
    assert seen == [5]


def test_many_questions_in_one_turn(checkpoints: Checkpoints) -> None:
    """More than a page of them: the run waits for all, and whoever waits for it is not kept."""
    turn = [call("pay", order_id=str(number), amount=1) for number in range(60)]
    opened = Desk(
        create_agent(ScriptedModel([turn, "Done."]), [Till().pay()], limits=Limits(max_tool_calls=100)), checkpoints
    )
    waiting = opened.run()
    assert len(waiting.approvals) == 60
    assert opened.wait(waiting.run_id).status == "waiting"
