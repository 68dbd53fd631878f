"""Limits hold over pauses and processes: nothing resets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.world.nursery import Nursery
from tests.world.refund import Refund

from loopwright import SyncRuns, open_checkpoints
from loopwright.testing import check_transcript


def steps(nursery: Nursery, folder: Path, **limits: int) -> list[Any]:
    """Approve at each step, each time in a new process; returns how the run stood after each."""
    seen: list[Any] = []
    while not seen or seen[-1][0] == "waiting":
        seen.append(nursery.start("one_step", folder=str(folder), limits=limits).result())
    return seen


def test_two_steps(nursery: Nursery, tmp_path: Path) -> None:
    """With an approval and a new process at each step, a limit of two steps stops at two."""
    assert [
        ["waiting", None, 1, 1],
        ["waiting", None, 2, 2],
        ["stopped", "max_steps", 2, 2],
    ] == steps(nursery, tmp_path, max_steps=2)
    assert Refund(tmp_path).bank.payments() == [("A100", 1), ("A100", 2)]


def test_two_tool_calls(nursery: Nursery, tmp_path: Path) -> None:
    """The same for two tool calls: the third is proposed, and neither asked about nor run."""
    assert [
        ["waiting", None, 1, 1],
        ["waiting", None, 2, 2],
        ["stopped", "max_tool_calls", 3, 2],
    ] == steps(nursery, tmp_path, max_tool_calls=2)
    refund = Refund(tmp_path)
    assert refund.bank.payments() == [("A100", 1), ("A100", 2)]
    with open_checkpoints(refund.url) as checkpoints:
        result = SyncRuns(refund.agent, checkpoints).get("run-1")
    assert result.trail[-1]["outcome"] == "not_run"
    check_transcript(result.messages)
