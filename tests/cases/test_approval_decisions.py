"""Cases from public bug reports: decisions about calls (C06, C08)."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command
from tests.world.doors import Desk
from tests.world.till import Till

from loopwright import Checkpoints, approve, create_agent, open_checkpoints, reject
from loopwright.errors import ApprovalNotFound, InvalidDecision
from loopwright.testing import ScriptedModel, call, check_transcript

A = call("pay", call_id="a", order_id="a", amount=1)
B = call("look", call_id="b", order_id="b")
D = call("pay", call_id="d", order_id="d", amount=1)
SHAPES: list[Any] = [
    {"decisions": [{"type": "approve"}, {"type": "approve"}]},
    {"decisions": []},
    [{"type": "approve"}, {"type": "approve"}],
    [],
    "approve",
    {"type": "aprove"},
    {"type": "edit"},
    {"a": {"type": "approve"}},
]


def test_c06_rejecting_one_call_leaves_its_neighbours() -> None:
    """The rejected one never runs, the approved and the free one run once; three results, in order, with the reason."""
    till = Till()
    model = ScriptedModel([[A, B, D], "Done."])
    with open_checkpoints("memory:") as checkpoints:
        desk = Desk(create_agent(model, [till.look(), till.pay()]), checkpoints)
        waiting = desk.run()
        asked = {approval.args["order_id"]: approval.id for approval in waiting.approvals}
        desk.decide(asked["a"], reject("not that one"))
        desk.decide(asked["d"], approve())
        result = desk.wait(waiting.run_id)
    assert (till.paid, till.looked) == ([("d", 1)], ["b"])
    answers = [message for message in model.seen[1] if message.type == "tool"]
    assert ["a", "b", "d"] == [answer.tool_call_id for answer in answers]
    assert ["error", "success", "success"] == [answer.status for answer in answers]
    assert "not that one" in answers[0].text
    check_transcript(result.messages)


@pytest.mark.parametrize("answer", SHAPES)
def test_c08_a_decision_of_the_wrong_shape(checkpoints: Checkpoints, answer: Any) -> None:
    """It is refused naming the question, nothing runs, and the same question can still be answered."""
    till = Till()
    model = ScriptedModel([[D, B], "Done."])
    desk = Desk(create_agent(model, [till.look(), till.pay()]), checkpoints)
    waiting = desk.run()
    (asked,) = waiting.approvals
    with pytest.raises(InvalidDecision, match=asked.id):
        desk.decide(asked.id, answer)
    with pytest.raises(ApprovalNotFound, match="elsewhere"):
        desk.decide("elsewhere", approve())
    assert (desk.wait(waiting.run_id).approvals, till.paid, till.looked) == ((asked,), [], [])
    assert desk.answer(waiting, approve()).status == "succeeded"
    assert till.paid == [("d", 1)]


@pytest.mark.parametrize("answer", SHAPES)
def test_c08_the_same_for_a_plain_resume(checkpoints: Checkpoints, answer: Any) -> None:
    """The graph asks the same again, with the reason beside it."""
    till = Till()
    agent: Any = create_agent(ScriptedModel([[D, B], "Done."]), [till.look(), till.pay()], checkpoints=checkpoints)
    config = {"configurable": {"thread_id": "t"}}
    first = agent.invoke({"messages": [("user", "Do it.")]}, config)["__interrupt__"][0].value
    again = agent.invoke(Command(resume=answer), config)["__interrupt__"][0].value
    assert "is no decision" in again["error"]
    assert first == {name: value for name, value in again.items() if name != "error"}
    assert till.paid == []
    assert agent.invoke(Command(resume={"type": "approve"}), config)["run"]["status"] == "succeeded"
    assert till.paid == [("d", 1)]


def test_a_double_click_meets_another_question(checkpoints: Checkpoints) -> None:
    """LangGraph hands it to the next one; an answer that names its question is not taken for that."""
    till = Till()
    second = call("pay", order_id="e", amount=2)
    agent: Any = create_agent(ScriptedModel([[D, second], "Done."]), [till.pay()], checkpoints=checkpoints)
    config = {"configurable": {"thread_id": "t"}}
    first = agent.invoke({"messages": [("user", "Do it.")]}, config)["__interrupt__"][0].value
    yes = {"type": "approve", "approval_id": first["approval_id"]}
    agent.invoke(Command(resume=yes), config)
    for again in (yes, [yes]):
        asked = agent.invoke(Command(resume=again), config)["__interrupt__"][0].value
        assert "answers the question" in asked["error"]
    agent.invoke(Command(resume={"type": "reject", "approval_id": asked["approval_id"]}), config)
    assert [("d", 1)] == till.paid
