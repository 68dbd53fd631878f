"""A question that waits only so long: its time holds without any timer."""

from __future__ import annotations

from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Checkpoints, approve, ask, create_agent
from loopwright.testing import ManualClock, call, check_transcript

PAY = call("pay", order_id="A1", amount=5)


def desk(till: Till, checkpoints: Checkpoints, turns: list[Any], door: DoorName = "sync") -> Desk:
    """Open a desk where payments are asked about for a minute."""
    return Desk(create_agent(planned(turns), [till.pay()], permissions=[ask("pay", expires_in=60)]), checkpoints, door)


@pytest.mark.parametrize("door", DOORS)
def test_too_late_is_a_rejection(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """Nobody has to be there when the time is up: whoever comes next finds it decided."""
    till = Till()
    opened = desk(till, checkpoints, [PAY, PAY, "Done."], door)
    waiting = opened.run()
    assert waiting.approvals[0].expires_at == clock() + 60
    clock.advance(60)
    late = opened.decide(waiting.approvals[0].id, approve())
    assert (False, {"type": "expire"}, "expiry") == (late.accepted, late.decision, late.by)
    result = opened.wait(waiting.run_id)
    assert ("succeeded", [], 0) == (result.status, till.paid, result.usage.tool_calls)
    assert ["rejected", "denied"] == [entry["outcome"] for entry in result.trail]
    assert "in time" in result.trail[0]["observation"]
    check_transcript(result.messages)


@pytest.mark.parametrize("door", DOORS)
def test_recovering_looks_after_it(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """Without any decision: a look now and then ends what has expired, and leaves alone what has not."""
    opened = desk(Till(), checkpoints, [PAY, "Done."], door)
    first = opened.run(thread_id="1")
    clock.advance(30)
    second = opened.run(thread_id="2")
    clock.advance(30)
    assert [(first.run_id, "succeeded")] == [(result.run_id, result.status) for result in opened.recover()]
    assert opened.wait(second.run_id).status == "waiting"


def test_in_time_is_in_time(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """A decision that was made in time counts, even if the run goes on only later."""
    till = Till()
    opened = desk(till, checkpoints, [PAY, "Done."])
    waiting = opened.run()
    clock.advance(59)
    opened.decide(waiting.approvals[0].id, approve())
    clock.advance(3600)
    assert (opened.wait(waiting.run_id).status, till.paid) == ("succeeded", [("A1", 5)])
