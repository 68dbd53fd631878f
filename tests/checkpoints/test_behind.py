"""What write-behind makes of the writes between two barriers."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint

from loopwright.checkpoints.behind import Behind, Skipped
from loopwright.checkpoints.store import TaskWrites

RESET = {"__overwrite__": ["new"]}
"""LangGraph's word, as JSON, for "this instead of all before"."""


def put(checkpoint_id: str) -> Skipped:
    """Make a checkpoint with this id."""
    return Skipped({}, {**empty_checkpoint(), "id": checkpoint_id}, {})


Writes = list[tuple[str, Any]]
CASES: list[tuple[list[Writes], Writes]] = [
    ([], []),
    ([[("run", {})], [("turn", [])]], []),
    ([[("messages", ["a"])]], [("messages", ["a"])]),
    ([[("messages", ["a"])], [("messages", ["b", "c"])]], [("messages", ["a", "b", "c"])]),
    (
        [[("messages", ["a"]), ("trail", ["x"])], [("run", {})], [("messages", ["b"])], [("trail", ["y"])]],
        [("messages", ["a", "b"]), ("trail", ["x", "y"])],
    ),
    ([[("messages", ["a"])], [("messages", "b")]], [("messages", ["a"]), ("messages", "b")]),
    (
        [[("messages", ["a"])], [("messages", RESET)], [("trail", ["x"])], [("messages", ["b"])]],
        [("messages", ["a"]), ("messages", RESET), ("trail", ["x"]), ("messages", ["b"])],
    ),
    (
        [[("messages", RESET)], [("messages", ["a"])], [("messages", ["b"])]],
        [("messages", RESET), ("messages", ["a", "b"])],
    ),
]


@pytest.mark.parametrize(("steps", "stored"), CASES)
def test_lists_that_follow_each_other_in_a_channel_become_one(steps: list[Writes], stored: Writes) -> None:
    """In order, channel by channel; nothing moves past what is no list, and what is no long channel is left out."""
    line = Behind()
    for number, writes in enumerate(steps):
        line.keep(f"{number}", TaskWrites(f"task-{number}", "", writes))
    for number in range(len(steps)):
        line.advance(f"{number}", put(f"{number + 1}"), {})
    assert stored == [write for task in line.writes for write in task.writes]
    assert all(task.task_id.startswith("~") and task.task_path.startswith("~") for task in line.writes)


def test_what_a_task_wrote_stays_as_it_was() -> None:
    """LangGraph goes on with the very lists that it hands over."""
    first, second = ["a"], ["b"]
    line = Behind()
    line.keep("0", TaskWrites("t", "", [("messages", first)]))
    line.keep("1", TaskWrites("u", "", [("messages", second)]))
    for parent, own in (("0", "1"), ("1", "2")):
        line.advance(parent, put(own), {})
    assert (["a"], ["b"]) == (first, second)
