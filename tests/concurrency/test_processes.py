"""Several processes at once, over one database: one of them does it, and the others are told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.world.nursery import Child, Nursery
from tests.world.refund import ANSWER, TASK, Refund
from tests.world.sqlite import connection_of

from loopwright import SyncRuns, open_checkpoints
from loopwright.testing import check_transcript

PEOPLE = ("ana", "ben", "carl", "dora")
RUNS = 30


def release(children: list[Child], message: Any) -> list[Any]:
    """Send all of them one message, as close together as can be, and collect what each sends back."""
    for child in children:
        child.send(message)
    return [child.receive() for child in children]


def end(children: list[Child]) -> None:
    """Close the pipes, and require that each process ends well."""
    for child in children:
        child.hang_up()
    assert [child.wait() for child in children] == [0] * len(children)


@pytest.mark.parametrize("door", ["sync", "async"])
def test_four_processes_decide_and_resume_one_run(nursery: Nursery, tmp_path: Path, door: str) -> None:
    """Thirty runs, each approved by four at once: one payment each, one receipt that counts, one line of history."""
    refund = Refund(tmp_path)
    folder = str(tmp_path)
    children = [nursery.start("decide_in_turn", folder=folder, name=name, door=door) for name in PEOPLE]
    assert ["ready"] * 4 == [child.receive() for child in children]
    with open_checkpoints(refund.url) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        for number in range(RUNS):
            thread = f"customer-{number}"
            waiting = runs.run(TASK, thread_id=thread)
            told = release(children, waiting.approvals[0].id)
            accepted = [by for won, by, *_ in told if won]
            assert len(accepted) == 1
            assert [[*accepted, {"type": "approve"}, "succeeded", ANSWER]] * 4 == [rest for _, *rest in told]
            result = runs.get(waiting.run_id)
            check_transcript(result.messages)
            assert ["done", "done"] == [entry["outcome"] for entry in result.trail]
            assert len(refund.bank.payments()) == number + 1
            assert has_one_line(connection_of(checkpoints.ledger), thread)
    end(children)


def has_one_line(connection: Any, thread: str) -> bool:
    """Tell whether each checkpoint of a thread has at most one child, and only the first has no parent."""
    rows = connection.execute("select parent_checkpoint_id from checkpoints where thread_id = ?", (thread,)).fetchall()
    return len(rows) == len(set(rows)) and len(rows) > 5


def test_one_run_id_is_one_run(nursery: Nursery, tmp_path: Path) -> None:
    """Two processes start under one id at the same time: one run, one question, and both get it."""
    children = [nursery.start("start_in_turn", folder=str(tmp_path), name=name) for name in PEOPLE[:2]]
    assert [*PEOPLE[:2]] == [child.receive() for child in children]
    for number in range(10):
        run_id = f"request-{number}"
        first, second = release(children, run_id)
        assert first == second
        assert ([run_id, "waiting"], 1) == (first[:2], len(first[2]))
    end(children)
    refund = Refund(tmp_path)
    with open_checkpoints(refund.url) as checkpoints:
        assert len(SyncRuns(refund.agent, checkpoints).list()) == 10
        assert len({json.dumps(asked.args) + asked.id for asked in checkpoints.ledger.approvals.list_open()}) == 10


def test_eight_processes_set_up_an_empty_file(nursery: Nursery, tmp_path: Path) -> None:
    """Whoever is first makes the tables; nobody meets a lock, or half of a schema."""
    for number in range(5):
        folder = tmp_path / str(number)
        folder.mkdir()
        children = [nursery.start("set_up", folder=str(folder)) for _ in range(8)]
        assert ["ready"] * 8 == [child.receive() for child in children]
        assert [0] * 8 == release(children, "go")
        end(children)
