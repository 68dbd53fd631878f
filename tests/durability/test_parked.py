"""A process dies while a run is parked, or on its way there: another one carries it on when its time has come."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.world.mail import RUN, deliver, mail
from tests.world.nursery import KILLED, Nursery

from loopwright import SyncRuns, open_checkpoints
from loopwright.testing import ManualClock

ENDED = "succeeded: ['sent to ana', 'sent to ben', 'sent to cid'], 3"


@pytest.mark.parametrize("place", ["after_checkpoint:4", "after_checkpoint:5", "before_claim:3"])
def test_a_kill_loses_no_letter(nursery: Nursery, tmp_path: Path, place: str) -> None:
    """On the way there, while it waits, and when it was woken: each letter is sent, and sent once."""
    child = nursery.start("tests.world.mail:deliver_in_a_process", crash_at=place, folder=str(tmp_path))
    assert (None, KILLED) == (child.receive(), child.wait())
    assert ENDED == deliver(tmp_path, ManualClock(ManualClock()() + 7200))
    assert ["ana", "ben", "cid"] == sorted((tmp_path / "sent").read_text().split())


@pytest.mark.parametrize(("place", "told"), [("after_settle", "['sent to ana'"), ("after_effect", "waiting: []")])
def test_what_was_done_is_not_told_as_refused(nursery: Nursery, tmp_path: Path, place: str, told: str) -> None:
    """A worker that comes back while the rate is full tells what became of the call: nobody makes it once more."""
    options = {"folder": str(tmp_path), "when_exceeded": "refuse"}
    child = nursery.start("tests.world.mail:deliver_in_a_process", crash_at=place, **options)
    assert (None, KILLED) == (child.receive(), child.wait())
    assert told in deliver(tmp_path, ManualClock(ManualClock()() + 20), "refuse")
    assert ["ana"] == (tmp_path / "sent").read_text().split()


def test_what_was_begun_before_it_was_parked(nursery: Nursery, tmp_path: Path) -> None:
    """A call that may have happened, and is parked before its next try, is not told as one that never ran."""
    options = {"folder": str(tmp_path), "effect": "idempotent"}
    child = nursery.start("tests.world.mail:deliver_in_a_process", crash_at="after_effect", **options)
    assert (None, KILLED) == (child.receive(), child.wait())
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}", clock=ManualClock(ManualClock()() + 20)) as checkpoints:
        runs = SyncRuns(mail(tmp_path, effect="idempotent"), checkpoints)
        assert runs.wait(RUN).parked is not None
        runs.run("Something else.", thread_id="t")
        assert ["unknown"] == [entry["outcome"] for entry in runs.get(RUN).trail]
