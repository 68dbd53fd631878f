"""A newer message on a thread that waits: what was asked is over."""

from __future__ import annotations

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Checkpoints, approve, create_agent
from loopwright.testing import ScriptedModel, call, check_transcript

TURN = [call("pay", order_id="A1", amount=5), call("look", order_id="A1"), call("pey", order_id="A1")]


@pytest.mark.parametrize("door", DOORS)
def test_what_was_asked_is_closed(checkpoints: Checkpoints, door: DoorName) -> None:
    """The calls are answered as superseded, the question is withdrawn, and a late click is told so."""
    till = Till()
    model = ScriptedModel([TURN, "Fine, nothing was paid."])
    opened = Desk(create_agent(model, [till.look(), till.pay()]), checkpoints, door)
    waiting = opened.run("Pay.")
    result = opened.run("Stop, please.")
    assert ("succeeded", "Fine, nothing was paid.") == (result.status, result.answer)
    assert ["human", "ai", "tool", "tool", "tool", "human", "ai"] == [message.type for message in result.messages]
    assert ["not run: superseded by a newer message"] * 2 == [m.text for m in result.messages[2:4]]
    assert "no tool 'pey'" in result.messages[4].text
    check_transcript(result.messages)
    old = opened.wait(waiting.run_id)
    assert ("cancelled", "cancelled", 3) == (old.status, old.stop_reason, len(old.trail))
    late = opened.decide(waiting.approvals[0].id, approve())
    assert (False, {"type": "cancel"}, "a newer message") == (late.accepted, late.decision, late.by)
    assert (till.paid, till.looked) == ([], [])
    model.assert_done()


def test_the_thread_keeps_its_totals(checkpoints: Checkpoints) -> None:
    """What the superseded run used is not forgotten; the new run's own counters begin at zero."""
    agent = create_agent(planned([TURN[0], "Done."]), [Till().pay()], checkpoints=checkpoints)
    opened = Desk(agent, checkpoints)
    first = opened.run()
    second = opened.run("Again.")
    opened.answer(second, approve())
    third = opened.wait(second.run_id)
    state = agent.get_state({"configurable": {"thread_id": "t"}}).values
    assert (2, 3) == (state["thread"]["runs"], state["thread"]["steps"])
    assert (1, 2) == (first.usage.steps, third.usage.steps)
    assert state["thread"]["tokens"] == first.usage.tokens + third.usage.tokens


def test_of_two_equal_calls_each_is_told_as_it_was(checkpoints: Checkpoints) -> None:
    """An earlier payment of the run does not make its unanswered twin a payment."""
    till = Till()
    pay = call("pay", order_id="A1", amount=5)
    model = ScriptedModel([pay, [pay, pay], "Once, then."])
    opened = Desk(create_agent(model, [till.pay()]), checkpoints)
    opened.answer(opened.run(), approve())
    result = opened.run("Stop.")
    told = [message.text for message in result.messages if message.type == "tool"]
    assert ["paid 5 for A1", *["not run: superseded by a newer message"] * 2] == told
    assert till.paid == [("A1", 5)]
    check_transcript(result.messages)


def test_a_queued_run_comes_after(checkpoints: Checkpoints) -> None:
    """Two messages that came at once: both are runs, the second supersedes what the first asks."""
    from loopwright import SyncRuns

    till = Till()
    runs = SyncRuns(create_agent(planned([TURN[0], "Done."]), [till.pay()]), checkpoints)
    first = runs.start("Pay.", thread_id="t")
    second = runs.start("Pay more.", thread_id="t")
    assert runs.wait(first.id).status == "waiting"
    assert runs.wait(second.id).status == "waiting"
    assert runs.get(first.id).status == "cancelled"
    assert [second.id] == [asked.run_id for asked in runs.approvals()]
    check_transcript(runs.get(second.id).messages[:-1])


def test_on_a_thread_that_was_deleted(checkpoints: Checkpoints) -> None:
    """Its new state knows nothing of the run that waits: that one ends, and a late click changes nothing."""
    till = Till()
    opened = Desk(create_agent(planned([TURN[0], "Done."]), [till.pay()]), checkpoints)
    waiting = opened.run("Pay.")
    checkpoints.saver.delete_thread("t")
    second = opened.run("Pay more.")
    assert [second.run_id] == [asked.run_id for asked in checkpoints.ledger.approvals.list_open()]
    late = opened.decide(waiting.approvals[0].id, approve())
    assert (False, {"type": "cancel"}, "a newer message") == (late.accepted, late.decision, late.by)
    assert "succeeded" == opened.answer(second, approve()).status
    assert [("A1", 5)] == till.paid
