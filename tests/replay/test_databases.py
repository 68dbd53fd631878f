"""Databases that earlier releases wrote: each loads, lists, decides and is carried on by this one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.world.stories import ANSWER, build_shop, finish
from tests.world.till import Till

from loopwright import SyncRuns, approve, open_checkpoints
from loopwright.testing import check_transcript

WRITTEN = sorted(Path(__file__).parent.glob("*.db"))
SECONDS_IN_2026 = 1_767_225_600


@pytest.fixture(name="path", params=WRITTEN, ids=lambda path: path.stem)
def copy_database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of each database that was kept."""
    return Path(shutil.copy(request.param, tmp_path / "runs.db"))


def test_one_is_kept() -> None:
    """Of each release, small enough to be kept for ever."""
    assert ["0.1.0", "0.2.0", "0.3.0"] == [path.stem for path in WRITTEN]
    assert all(path.stat().st_size < 200_000 for path in WRITTEN)


def test_it_is_carried_on(path: Path) -> None:
    """Listed and read as it was; the question is decided and its effect happens once; both threads take a new task."""
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(f"sqlite:///{path}") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        listed = {run.thread_id: run for run in runs.list()}
        assert {"finished": "succeeded", "waiting": "waiting"} == {name: run.status for name, run in listed.items()}
        assert {SECONDS_IN_2026} == {run.created_at for run in listed.values()}
        done = runs.get(listed["finished"].id)
        assert (ANSWER, ["done", "done"]) == (done.answer, [entry["outcome"] for entry in done.trail])
        (asked,) = runs.approvals()
        assert ("pay", {"order_id": "A1", "amount": 5}) == (asked.tool, asked.args)
        runs.decide(asked.id, approve(), by="ana")
        result = runs.wait(asked.run_id)
        assert (ANSWER, [("A1", 5)]) == (result.answer, till.paid)
        check_transcript(result.messages)
        for thread_id, before in (("finished", done), ("waiting", result)):
            again = finish(agent, checkpoints, thread_id, "Once more.")
            assert before.messages == again.messages[: len(before.messages)]
            check_transcript(again.messages)
        assert checkpoints.ledger.log.verify().is_whole
        assert 2 == checkpoints.prune(older_than=0).threads
