"""What an approval is bound to: change any one of it, and it is another question."""

from __future__ import annotations

from typing import Any

import pytest
from tests.world.doors import Desk
from tests.world.plans import planned

from loopwright import Checkpoints, approve, create_agent, tool
from loopwright.nodes.questions import approval_id
from loopwright.state import Call, Question, new_call
from loopwright.testing import call

PLACE: dict[str, Any] = {"schema": {"amount": "integer"}, "thread_id": "t", "run_id": "r", "step": 1}
CALL: Call = {**new_call("c1", "pay", {"amount": 5}), "question": Question.APPROVAL}


def id_of(changes: dict[str, Any], place: dict[str, Any]) -> str:
    """Return the id with something changed."""
    changed: Any = {**CALL, **changes}
    return approval_id(changed, **{**PLACE, **place})


OTHERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "the tool": ({"name": "wire"}, {}),
    "the arguments": ({"args": {"amount": 6}}, {}),
    "the type of an argument": ({"args": {"amount": "5"}}, {}),
    "one more argument": ({"args": {"amount": 5, "to": "ana"}}, {}),
    "the tool's schema": ({}, {"schema": {"amount": "number"}}),
    "the thread": ({}, {"thread_id": "u"}),
    "the run": ({}, {"run_id": "s"}),
    "the step": ({}, {"step": 2}),
    "its place in the turn": ({"ordinal": 1}, {}),
    "how often it was put on the table": ({"attempt": 1}, {}),
    "the branch": ({"branch": "checkpoint-1"}, {}),
    "the kind of question": ({"question": Question.OUTCOME}, {}),
    "the effect": ({"effect": "e1"}, {}),
    "the edits before": ({"revision": 1}, {}),
}


@pytest.mark.parametrize(("changes", "place"), OTHERS.values(), ids=OTHERS.keys())
def test_each_part_matters(changes: dict[str, Any], place: dict[str, Any]) -> None:
    """So that no decision can be carried over."""
    assert id_of({}, {}) != id_of(changes, place)


@pytest.mark.parametrize("changes", [{"id": "c2"}, {"thought": "x"}, {"error": "x"}, {"why": "x"}, {"votes": ["ana"]}])
def test_what_is_only_told_does_not(changes: dict[str, Any]) -> None:
    """Asked again, it is the same question; also by the ids of releases that knew no revisions."""
    assert id_of({}, {}) == id_of(changes, {}) == id_of({"revision": 0}, {})


def test_an_approval_does_not_outlive_its_schema(checkpoints: Checkpoints) -> None:
    """The tool has changed since it was asked about: what was approved is not what would run, so nothing runs."""
    ran: list[Any] = []

    @tool(effect="write")
    def pay(amount: int) -> str:
        """Pay an amount to the customer, after it was checked."""
        ran.append(amount)
        return "paid"

    @tool(effect="write", name="pay")
    def pay_now(amount: int, to: str = "the customer") -> str:
        """Pay an amount to the customer, after it was checked."""
        ran.append((amount, to))
        return "paid"

    turns = planned([call("pay", amount=5), "Done."])
    waiting = Desk(create_agent(turns, [pay]), checkpoints).run()
    result = Desk(create_agent(turns, [pay_now]), checkpoints).answer(waiting, approve())
    assert ([], "not_run") == (ran, result.trail[0]["outcome"])
    assert "has changed since it was asked about" in result.trail[0]["why"]
