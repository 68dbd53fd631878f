"""The tests' own processes: they are real ones, and they die for real."""

from __future__ import annotations

import os
from pathlib import Path

from tests.world.nursery import KILLED, Nursery


def test_a_task_runs_in_a_process_of_its_own(nursery: Nursery) -> None:
    """A child has a pid of its own, and sends back what it was given."""
    child = nursery.start("echo", word="hello")
    assert child.pid != os.getpid()
    assert {"word": "hello"} == child.result()


def test_a_crash_point_kills(nursery: Nursery, tmp_path: Path) -> None:
    """Where the environment names a place, the process ends there by SIGKILL."""
    child = nursery.start("drive", crash_at="before_model", folder=str(tmp_path))
    assert (None, KILLED) == (child.receive(), child.wait())


def test_without_a_crash_point_a_run_ends_well(nursery: Nursery, tmp_path: Path) -> None:
    """The very same task succeeds where nothing kills it."""
    assert nursery.start("drive", folder=str(tmp_path)).result() == "succeeded"
