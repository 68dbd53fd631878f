"""A summary survives the process that made it, from the checkpoint on in which it stands."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from tests.durability.summaries import NOTES, RUN, TASK, THREAD, build, is_summing_up
from tests.world.nursery import KILLED, Nursery
from tests.world.refund import later

from loopwright import RunResult, StopReason, SyncRuns, open_checkpoints
from loopwright.testing import check_transcript


@cache
def undisturbed() -> tuple[RunResult, int]:
    """Return how the run ends in one process, and which call of the model brings its first summary."""
    agent, model = build()
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run(TASK, thread_id=THREAD, run_id=RUN)
    return result, 1 + [is_summing_up(messages) for messages in model.seen].index(True)


@pytest.mark.parametrize(("point", "behind", "made_again"), [("after_model", 0, True), ("before_model", 1, False)])
def test_killed_between_a_summary_and_its_use(
    nursery: Nursery, tmp_path: Path, point: str, behind: int, *, made_again: bool
) -> None:
    """Paid and in memory only, it is made once more; once stored, it is used, and never asked for again."""
    whole, summary = undisturbed()
    child = nursery.start(
        "tests.durability.summaries:drive", folder=str(tmp_path), crash_at=f"{point}:{summary + behind}"
    )
    assert KILLED == child.wait()
    agent, model = build()
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}", clock=later) as checkpoints:
        (result,) = SyncRuns(agent, checkpoints).recover()
    assert made_again == is_summing_up(model.seen[0])
    assert any(NOTES in message.text for message in model.seen[int(made_again)])
    assert (StopReason.ANSWERED, whole.usage.steps) == (result.stop_reason, result.usage.steps)
    assert whole.usage.model_calls + 1 == result.usage.model_calls
    assert [made["left_out"] for made in whole.compactions] == [made["left_out"] for made in result.compactions]
    check_transcript(result.messages)
