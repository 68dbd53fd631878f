"""A process dies while a run is parked, or on its way there: another one carries it on when its time has come."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.world.mail import deliver
from tests.world.nursery import KILLED, Nursery

from loopwright.testing import ManualClock

ENDED = "succeeded: ['sent to ana', 'sent to ben', 'sent to cid'], 3"


@pytest.mark.parametrize("place", ["after_checkpoint:4", "after_checkpoint:5", "before_claim:3"])
def test_a_kill_loses_no_letter(nursery: Nursery, tmp_path: Path, place: str) -> None:
    """On the way there, while it waits, and when it was woken: each letter is sent, and sent once."""
    child = nursery.start("tests.world.mail:deliver_in_a_process", crash_at=place, folder=str(tmp_path))
    assert (None, KILLED) == (child.receive(), child.wait())
    assert ENDED == deliver(tmp_path, ManualClock(ManualClock()() + 7200))
    assert ["ana", "ben", "cid"] == sorted((tmp_path / "sent").read_text().split())
