"""The loop guard remembers across crashes: how far up the ladder a run is, no dead process takes with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.world.nursery import KILLED, Nursery
from tests.world.refund import Refund, later

from loopwright import StopReason, SyncRuns, open_checkpoints
from loopwright.testing import call, check_transcript

LOOKS = [call("look_up", order_id="A100")] * 9


@pytest.mark.parametrize("turn", [2, 3, 4])
def test_a_crash_on_the_ladder_resets_nothing(nursery: Nursery, tmp_path: Path, turn: int) -> None:
    """Killed before the model is told, after, and after a call was held back: the run ends at the same call."""
    assert nursery.start("drive", folder=str(tmp_path), plan=LOOKS, die_in=f"model:{turn}").wait() == KILLED
    refund = Refund(tmp_path, plan=LOOKS)
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        (result,) = SyncRuns(refund.agent, checkpoints).recover()
    assert (StopReason.LOOP, 5, 6) == (result.stop_reason, result.usage.steps, result.usage.model_calls)
    assert ["done", "done", "done", "not_run", "not_run"] == [entry["outcome"] for entry in result.trail]
    check_transcript(result.messages)
