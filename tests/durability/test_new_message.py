"""A newer message on a thread whose run was killed, or is killed itself while it comes in."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.world.nursery import KILLED, Nursery
from tests.world.refund import ANSWER, TASK, THREAD, Refund, later

from loopwright import SyncRuns, open_checkpoints
from loopwright.testing import check_transcript

MANY = 100


def test_a_newer_message_after_a_kill_anywhere(nursery: Nursery, tmp_path: Path) -> None:
    """Whichever checkpoint was the last: the transcript is valid, the old question is closed, nothing is paid twice."""
    for number in range(1, MANY):
        folder = tmp_path / str(number)
        folder.mkdir()
        child = nursery.start("drive", crash_at=f"after_checkpoint:{number}", folder=str(folder))
        if child.wait() == 0:
            assert number > 5
            return
        refund = Refund(folder, plan=[ANSWER])
        with open_checkpoints(refund.url, clock=later) as checkpoints:
            runs = SyncRuns(refund.agent, checkpoints)
            result = runs.run("Never mind. How are you?", thread_id=THREAD)
            assert ("succeeded", ANSWER) == (result.status, result.answer)
            check_transcript(result.messages)
            runs.recover()
            assert runs.approvals() == []
            assert {run.status for run in runs.list()} <= {"cancelled", "succeeded"}
            assert len(refund.bank.payments()) <= 1
    pytest.fail("no run ever survived")


@pytest.mark.parametrize("number", range(1, 6))
def test_a_kill_while_the_newer_message_comes_in(nursery: Nursery, tmp_path: Path, number: int) -> None:
    """The new run is carried on under its own id, and the one that waited is over."""
    refund = Refund(tmp_path)
    with open_checkpoints(refund.url) as checkpoints:
        waiting = SyncRuns(refund.agent, checkpoints).run(TASK, thread_id=THREAD)
    crash_at = f"after_checkpoint:{number}"
    assert nursery.start("drive", crash_at=crash_at, folder=str(tmp_path), run_id="run-2").wait() == KILLED
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        runs.recover()
        assert runs.get(waiting.run_id).status == "cancelled"
        result = runs.get("run-2")
        assert "waiting" == result.status
        assert ["run-2"] == [asked.run_id for asked in runs.approvals()]
        assert {entry["run"] for entry in result.trail} == {"run-2"}
        check_transcript(result.messages[:-1])
        late = runs.decide(waiting.approvals[0].id, {"type": "approve"}, by="ana")
        assert (False, "cancel") == (late.accepted, late.decision["type"])
