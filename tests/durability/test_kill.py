"""A process is killed at every place where it can hurt; another one carries the run on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.world.nursery import KILLED, Nursery
from tests.world.recovery import KINDS, check, finish
from tests.world.refund import Refund

from loopwright.crash import CrashPoint

PLACES = [point.value for point in CrashPoint]
IN_THE_MODEL = ["model:0", "model:1", "model:2"]
AROUND_THE_ROW = ["tool:before", "tool:after"]


def kill(nursery: Nursery, folder: Path, **options: Any) -> None:
    """Start a run in another process, which does not live to its end."""
    child = nursery.start("drive", folder=str(folder), **options)
    assert (None, KILLED) == (child.receive(), child.wait())


@pytest.mark.parametrize("door", ["sync", "async"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_a_kill_at_any_crash_point_costs_no_second_payment(
    nursery: Nursery, tmp_path: Path, place: str, kind: dict[str, Any], door: str
) -> None:
    """Another process ends the run; it is paid at most once, and the model is told the truth."""
    kill(nursery, tmp_path, crash_at=place, door=door, **kind)
    refund = Refund(tmp_path, **kind)
    check(refund, finish(refund))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("die_in", IN_THE_MODEL + AROUND_THE_ROW)
def test_a_kill_in_a_model_or_tool_costs_no_second_payment(
    nursery: Nursery, tmp_path: Path, die_in: str, kind: dict[str, Any]
) -> None:
    """The same where user code dies with the process: in a model call, before and after the payment's row."""
    kill(nursery, tmp_path, die_in=die_in, **kind)
    refund = Refund(tmp_path, **kind)
    check(refund, finish(refund))


@pytest.mark.parametrize("door", ["sync", "async"])
def test_a_kill_after_any_checkpoint_costs_nothing(nursery: Nursery, tmp_path: Path, door: str) -> None:
    """Whichever checkpoint of a whole run is the last one that is stored: the run goes on from it."""
    for number in range(1, 100):
        folder = tmp_path / str(number)
        folder.mkdir()
        child = nursery.start("drive", crash_at=f"after_checkpoint:{number}", folder=str(folder), door=door)
        survived = child.receive() is not None
        assert child.wait() == (0 if survived else KILLED)
        if survived:
            assert number > 5
            return
        refund = Refund(folder)
        check(refund, finish(refund))
        assert refund.bank.payments() == [("A100", 250)]
    pytest.fail("no run ever survived")
