"""Workers that are killed at random, for a few seconds; `chaos.py` does it for as long as you like."""

from __future__ import annotations

from pathlib import Path

from tests.durability.chaos import unleash
from tests.world.nursery import Nursery


def test_nothing_is_lost_and_nothing_is_done_twice(nursery: Nursery, tmp_path: Path) -> None:
    """Thirty runs, four workers, a kill several times a second, each question clicked twice: each is paid once."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    told: list[str] = []
    report = unleash(nursery, tmp_path, url, runs=30, seconds=5, seed=7, tell=told.append)
    assert (30, True) == (report.runs, report.is_as_promised), (report, told)
    assert report.kills >= 3
