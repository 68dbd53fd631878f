"""The crash points themselves: set by the environment, in a process that is really started, and never else."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from tests.world.nursery import KILLED

from loopwright.crash import CrashPoint, reached

PROGRAM = """
from loopwright.crash import CrashPoint, reached
for number in range(3):
    print(number, flush=True)
    reached(CrashPoint.AFTER_EFFECT)
print("alive")
"""


def start(setting: str) -> tuple[int, list[str]]:
    """Run the program with a setting; returns its exit code and what it printed."""
    environment = {**os.environ, "LOOPWRIGHT_CRASH_AT": setting}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.split()


@pytest.mark.parametrize(
    ("setting", "code", "printed"),
    [
        ("after_effect", KILLED, ["0"]),
        ("after_effect:3", KILLED, ["0", "1", "2"]),
        ("after_effect:4", 0, ["0", "1", "2", "alive"]),
        ("after_claim", 0, ["0", "1", "2", "alive"]),
        ("", 0, ["0", "1", "2", "alive"]),
    ],
)
def test_the_setting_says_where_and_when(setting: str, code: int, printed: list[str]) -> None:
    """The place, and how often it must be reached; another place does not count."""
    assert (code, printed) == start(setting)


def test_nothing_happens_here() -> None:
    """Without the setting a crash point is only a comparison."""
    for point in CrashPoint:
        reached(point)


@pytest.mark.parametrize("setting", ["x:y", "after_efect", "after_effect:", "after_effect:0", "after_effect:y", ":3"])
def test_a_misspelt_setting_ends_the_process_in_one_line(setting: str) -> None:
    """It would kill nothing, and the test that set it would pass."""
    environment = {**os.environ, "LOOPWRIGHT_CRASH_AT": setting}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    (line,) = done.stderr.splitlines()
    assert (1, "") == (done.returncode, done.stdout)
    assert line.startswith(f"LOOPWRIGHT_CRASH_AT is {setting!r}; unset it, or give place or place:count")
