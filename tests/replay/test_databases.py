"""Databases that earlier releases wrote: each loads, lists, decides and is carried on by this one."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.world.stories import ANSWER, build_shop, finish
from tests.world.till import Till

from loopwright import SyncRuns, approve, open_checkpoints
from loopwright.errors import VersionUnsupported
from loopwright.testing import check_transcript

WRITTEN = sorted(Path(__file__).parent.glob("*.db"))
SECONDS_IN_2026 = 1_767_225_600


@pytest.fixture(name="path", params=WRITTEN, ids=lambda path: path.stem)
def copy_database(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of each database that was kept."""
    return Path(shutil.copy(request.param, tmp_path / "runs.db"))


def test_one_is_kept() -> None:
    """Of each release, small enough to be kept for ever."""
    assert ["0.1.0"] == [path.stem for path in WRITTEN]
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
        assert 2 == checkpoints.prune(older_than=-60).threads


def change_state(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrite the newest checkpoint of the thread that waits, as a release that wrote it otherwise would have."""
    serde = JsonPlusSerializer()
    newest = "select rowid, type, checkpoint from checkpoints where thread_id = 'waiting' order by checkpoint_id desc"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        row, kind, blob = connection.execute(newest).fetchone()
        checkpoint = serde.loads_typed((kind, blob))
        change(checkpoint["channel_values"])
        kind, blob = serde.dumps_typed(checkpoint)
        connection.execute("update checkpoints set type = ?, checkpoint = ? where rowid = ?", (kind, blob, row))


def lack_what_is_optional(values: dict[str, Any]) -> None:
    """Written before a field was there."""
    for record in (values["run"], *values["turn"]):
        for name in ("over_limit", "stop", "cancelled_by", "malformed", "expires_in", "proposed", "result"):
            record.pop(name, None)


def lack_a_channel(values: dict[str, Any]) -> None:
    """Written before a channel was there."""
    values.pop("decision", None)
    values.pop("trail", None)


def have_unknown_fields(values: dict[str, Any]) -> None:
    """Written by a release that kept more."""
    for record in (values["run"], values["thread"], *values["turn"]):
        record["from_elsewhere"] = {"x": 1}
    values["unknown_channel"] = [1]


def have_counted_more(values: dict[str, Any]) -> None:
    """Written by a release with another counter."""
    values["usage"]["from_elsewhere"] = 1


def count_in_floats(values: dict[str, Any]) -> None:
    """Written with another type of number."""
    for record in (values["usage"], values["thread"]):
        record.update({name: float(number) for name, number in record.items() if type(number) is int})
    values["thread"]["version"] = int(values["thread"]["version"])


@pytest.mark.parametrize(
    "change",
    [
        lack_what_is_optional,
        lack_a_channel,
        have_unknown_fields,
        count_in_floats,
        have_counted_more,
    ],
)
def test_a_state_of_another_shape(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """With a field or channel less, or more, or a float for an int: the question is decided, the run ends."""
    till = Till()
    agent = build_shop(till)
    change_state(path, change)
    with open_checkpoints(f"sqlite:///{path}") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        (asked,) = runs.approvals()
        runs.decide(asked.id, approve(), by="ana")
        result = runs.wait(asked.run_id)
        assert (ANSWER, [("A1", 5)]) == (result.answer, till.paid)
        check_transcript(result.messages)
        assert "succeeded" == finish(agent, checkpoints, "waiting", "Once more.").status


def come_from_later(values: dict[str, Any]) -> None:
    """Written by a release that knows more than this one."""
    values["thread"]["version"] = 99


def test_a_state_from_later_is_refused(path: Path) -> None:
    """A new task is not taken in; what is stored stays."""
    agent = build_shop(Till())
    change_state(path, come_from_later)
    with open_checkpoints(f"sqlite:///{path}") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        (asked,) = runs.approvals()
        before = runs.get(asked.run_id).messages
        with pytest.raises(VersionUnsupported, match="state version 99"):
            runs.run("Once more.", thread_id="waiting")
        assert before == runs.get(asked.run_id).messages[: len(before)]
