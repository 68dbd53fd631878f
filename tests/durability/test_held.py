"""A process dies while a call is held: by its failure, or by a question of its tool."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.world.letters import finish_letter, letters
from tests.world.nursery import KILLED, Nursery
from tests.world.refund import later

from loopwright import SyncRuns, open_checkpoints

ENDED = "succeeded: ['sent red'], 1"


@pytest.mark.parametrize("place", ["after_checkpoint", "after_settle"])
def test_a_kill_anywhere_sends_one_letter(nursery: Nursery, tmp_path: Path, place: str) -> None:
    """Whatever was stored last, another process ends the run: asked again where nobody had answered, sent once."""
    for number in range(1, 50):
        folder = tmp_path / str(number)
        folder.mkdir()
        child = nursery.start("drive_held", crash_at=f"{place}:{number}", folder=str(folder))
        told = child.receive()
        if child.wait() != KILLED:
            assert (ENDED, True) == (told, number > 1)
            return
        with open_checkpoints(f"sqlite:///{folder / 'runs.db'}", clock=later) as checkpoints:
            assert ENDED == finish_letter(SyncRuns(letters(folder), checkpoints))
        assert "ana red\n" == (folder / "sent").read_text()
    pytest.fail("no run ever survived")
