"""Cases from public bug reports: resuming (C16, C18)."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.types import Command
from tests.world.doors import Desk
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Checkpoints, Limits, approve, create_agent, reject
from loopwright.errors import ApprovalNotFound, InvalidDecision, ThreadNotFound
from loopwright.testing import call

PAY = call("pay", order_id="A1", amount=5)
YES: Any = Command(resume={"type": "approve"})
TASK: dict[str, Any] = {"messages": [("user", "Do it.")]}


def thread(name: str) -> Any:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": name}}


def test_c16_a_decision_on_a_run_that_is_over(checkpoints: Checkpoints) -> None:
    """A receipt that is not accepted; the tool does not run, and nothing is written."""
    till = Till()
    agent: Any = create_agent(planned([PAY, "Done."]), [till.pay()], checkpoints=checkpoints)
    desk = Desk(agent, checkpoints)
    waiting = desk.run()
    desk.answer(waiting, reject("no"))
    before = len([*agent.get_state_history(thread("t"))])
    receipt = desk.decide(waiting.approvals[0].id, approve(), "ben")
    assert (False, "ana") == (receipt.accepted, receipt.by)
    assert desk.wait(waiting.run_id).answer == "Done."
    with pytest.raises(ApprovalNotFound):
        agent.invoke(YES, thread("t"))
    assert (till.paid, before) == ([], len([*agent.get_state_history(thread("t"))]))


def test_c16_a_thread_that_never_began(checkpoints: Checkpoints) -> None:
    """It is not started by a resume."""
    model = planned(["Done."])
    agent: Any = create_agent(model, [], checkpoints=checkpoints)
    with pytest.raises(ThreadNotFound, match="nope"):
        agent.invoke(YES, thread("nope"))
    assert (model.seen, [*agent.get_state_history(thread("nope"))]) == ([], [])


def test_c16_a_thread_that_a_limit_stopped(checkpoints: Checkpoints) -> None:
    """There is no pause to resume: another error, and no new checkpoint."""
    till = Till()
    agent: Any = create_agent(
        planned([call("look", order_id="A1")]), [till.look()], limits=Limits(max_steps=1), checkpoints=checkpoints
    )
    assert agent.invoke(TASK, thread("t"))["run"]["reason"] == "max_steps"
    before = len([*agent.get_state_history(thread("t"))])
    with pytest.raises(ApprovalNotFound, match="waits for no answer"):
        agent.invoke(YES, thread("t"))
    assert (till.looked, before) == (["A1"], len([*agent.get_state_history(thread("t"))]))


@pytest.mark.parametrize("answer", [None, False, 0, "", {}, []])
def test_c18_falsy_answers(checkpoints: Checkpoints, answer: Any) -> None:
    """Each is a bad decision, neither a yes nor a crash; the run still waits."""
    till = Till()
    desk = Desk(create_agent(planned([PAY, "Done."]), [till.pay()]), checkpoints)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="no decision"):
        desk.decide(waiting.approvals[0].id, answer)
    assert (desk.wait(waiting.run_id).status, till.paid) == ("waiting", [])


@pytest.mark.parametrize("answer", [None, False, 0, "", {}, []])
def test_c18_falsy_answers_to_the_graph(checkpoints: Checkpoints, answer: Any) -> None:
    """Those that LangGraph delivers are asked about again; those it would stumble over, or ignore, are an error."""
    till = Till()
    agent: Any = create_agent(planned([PAY, "Done."]), [till.pay()], checkpoints=checkpoints)
    agent.invoke(TASK, thread("t"))
    if answer is None or answer == {}:
        with pytest.raises(InvalidDecision, match="no decision"):
            agent.invoke(Command(resume=answer), thread("t"))
    else:
        again = agent.invoke(Command(resume=answer), thread("t"))["__interrupt__"][0].value
        assert repr(answer) in again["error"]
    assert till.paid == []
    assert agent.invoke(YES, thread("t"))["run"]["status"] == "succeeded"
