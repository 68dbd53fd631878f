"""Cancelling a run, in each of its phases."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import Gate
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, allow, approve, create_agent, open_checkpoints, tool
from loopwright.errors import InvalidDecision, RunNotFound
from loopwright.testing import call, check_transcript

PAY = call("pay", order_id="A1", amount=5)


def test_before_it_is_taken_in(checkpoints: Checkpoints) -> None:
    """No model is called at all."""
    model = planned(["Done."])
    runs = SyncRuns(create_agent(model, []), checkpoints)
    run = runs.start("Do it.", thread_id="t")
    assert runs.cancel(run.id, by="ana").accepted
    result = runs.wait(run.id)
    assert ("cancelled", "cancelled", []) == (result.status, result.stop_reason, model.seen)
    check_transcript(result.messages)


@pytest.mark.parametrize("door", DOORS)
def test_while_it_waits(checkpoints: Checkpoints, door: DoorName) -> None:
    """Its question is withdrawn; the call is answered as not run, and costs nothing."""
    till = Till()
    opened = Desk(create_agent(planned([PAY, "Done."]), [till.pay()]), checkpoints, door)
    waiting = opened.run()
    receipt = opened.cancel(waiting.run_id)
    assert (True, {"type": "cancel"}, "ana") == (receipt.accepted, receipt.decision, receipt.by)
    result = opened.wait(waiting.run_id)
    assert ("cancelled", [], 0) == (result.status, till.paid, result.usage.tool_calls)
    assert "not run: cancelled by ana" == result.messages[-1].text
    check_transcript(result.messages)
    late = opened.decide(waiting.approvals[0].id, approve())
    assert (False, {"type": "cancel"}, "ana") == (late.accepted, late.decision, late.by)


def test_what_was_allowed_beside_it_does_not_run(checkpoints: Checkpoints) -> None:
    """A turn that waits for one answer is cancelled as a whole: reads, and what was approved already, included."""
    till = Till()
    turn = [PAY, call("pay", order_id="B1", amount=1), call("look", order_id="A1")]
    opened = Desk(create_agent(planned([turn, "Done."]), [till.look(), till.pay()]), checkpoints)
    waiting = opened.run()
    opened.decide(waiting.approvals[0].id, approve())
    assert opened.wait(waiting.run_id).status == "waiting"
    opened.cancel(waiting.run_id)
    result = opened.wait(waiting.run_id)
    assert ("cancelled", [], [], 0) == (result.status, till.paid, till.looked, result.usage.tool_calls)
    assert ["not_run"] * 3 == [entry["outcome"] for entry in result.trail]
    check_transcript(result.messages)


def test_after_its_end(checkpoints: Checkpoints) -> None:
    """The receipt tells how it ended; nothing changes."""
    opened = Desk(create_agent(planned(["Done."]), []), checkpoints)
    result = opened.run()
    receipt = opened.cancel(result.run_id)
    assert (False, {"type": "succeeded"}) == (receipt.accepted, receipt.decision)
    assert opened.wait(result.run_id).answer == "Done."


def test_twice(checkpoints: Checkpoints) -> None:
    """The first one counts."""
    opened = Desk(create_agent(planned([PAY, "Done."]), [Till().pay()]), checkpoints)
    waiting = opened.run()
    opened.cancel(waiting.run_id)
    receipt = opened.cancel(waiting.run_id, "ben")
    assert (False, "ana") == (receipt.accepted, receipt.by)


def test_what_is_no_run(checkpoints: Checkpoints) -> None:
    """An unknown id, or nobody's name."""
    opened = Desk(create_agent(planned(["Done."]), []), checkpoints)
    with pytest.raises(RunNotFound, match="nope"):
        opened.cancel("nope")
    with pytest.raises(InvalidDecision, match="name"):
        opened.cancel(opened.run().run_id, "")


@pytest.mark.parametrize("where", ["in the tool", "in the model"])
def test_while_it_is_driven(tmp_path: Path, where: str) -> None:
    """From another process's view: what has begun is finished and kept, nothing more is begun."""
    gate, till = Gate(), Till()

    @tool(effect="write")
    def slow(code: str) -> str:
        """Do something that takes its time, for an order."""
        if where == "in the tool":
            gate.pass_through()
        return f"did {code}"

    def think(_messages: Any) -> Any:
        if where == "in the model":
            gate.pass_through()
        return call("slow", code="A1")

    agent = create_agent(planned([think, PAY, "Done."]), [slow, till.pay()], permissions=[allow("slow"), allow("pay")])
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with open_checkpoints(url) as mine, open_checkpoints(url) as other, ThreadPoolExecutor(1) as threads:
        runs = SyncRuns(agent, mine)
        run = runs.start("Do it.", thread_id="t")
        driven = threads.submit(runs.wait, run.id)
        gate.wait_until_reached()
        assert SyncRuns(agent, other).cancel(run.id, by="ana").accepted
        gate.open()
        result = driven.result()
    assert ("cancelled", [], 1) == (result.status, till.paid, result.usage.steps)
    expected = "did A1" if where == "in the tool" else "not run: the run was cancelled"
    assert expected == result.messages[-1].text
    check_transcript(result.messages)


def test_the_thread_can_be_used_afterwards(checkpoints: Checkpoints) -> None:
    """A new task finds a valid transcript."""
    opened = Desk(create_agent(planned([PAY, "Done."]), [Till().pay()]), checkpoints)
    waiting = opened.run()
    opened.cancel(waiting.run_id)
    opened.wait(waiting.run_id)
    result = opened.answer(opened.run("Once more."), approve())
    assert "succeeded" == result.status
    check_transcript(result.messages)
