"""Retries of a final answer are counted over crashes: no dead process gives any back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.durability.answers import build
from tests.world.nursery import KILLED, Nursery
from tests.world.refund import later

from loopwright import StopReason, SyncRuns, open_checkpoints
from loopwright.testing import check_transcript


@pytest.mark.parametrize(("die_in", "calls"), [("model:2", 4), ("check:2", 3), ("check:3", 3)])
def test_a_crash_gives_no_retry_back(nursery: Nursery, tmp_path: Path, die_in: str, calls: int) -> None:
    """Killed while the model tries again, or while its answer is checked: three answers, and it is over.

    An answer that was paid for is checked again after the crash, and not asked for again.
    """
    child = nursery.start("tests.durability.answers:drive", folder=str(tmp_path), die_in=die_in)
    assert KILLED == child.wait()
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}", clock=later) as checkpoints:
        (result,) = SyncRuns(build(), checkpoints).recover()
    assert (StopReason.UNVERIFIED, '{"n": 3}') == (result.stop_reason, result.answer)
    assert (3, calls) == (result.usage.steps, result.usage.model_calls)
    assert [1, 2, 3] == [objection["step"] for objection in result.objections]
    check_transcript(result.messages)


def test_a_crash_in_a_look_back(nursery: Nursery, tmp_path: Path) -> None:
    """The call is spent, the answer is not asked for again, and the model looks back once."""
    child = nursery.start("tests.durability.answers:drive", folder=str(tmp_path), die_in="reflect", least=1)
    assert KILLED == child.wait()
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}", clock=later) as checkpoints:
        (result,) = SyncRuns(build(least=1), checkpoints).recover()
    assert (StopReason.ANSWERED, {"n": 1}, ()) == (result.stop_reason, result.output, result.objections)
    assert (2, 3) == (result.usage.steps, result.usage.model_calls)
    check_transcript(result.messages)
