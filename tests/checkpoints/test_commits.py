"""What storage does no more often than it must: commits, and whole copies of long channels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name
from langgraph.types import Command

from loopwright import Checkpoints, create_agent, open_checkpoints, tool
from loopwright.checkpoints.sqlite import SqliteDatabase
from loopwright.testing import ScriptedModel, call

PLACE: Any = {"configurable": {"thread_id": "t"}}
STEPS = 20


@tool(effect="read")
def count(number: int) -> str:
    """Count up to a number. Use it for one number at a time."""
    return f"up to {number}"


@tool(effect="write")
def pay(amount: int) -> str:
    """Pay an amount. Use it once."""
    return f"paid {amount}"


def statements_of(checkpoints: Checkpoints) -> list[str]:
    """Return a list that fills with the statements that the database is given."""
    seen: list[str] = []
    database = checkpoints.ledger.database
    assert isinstance(database, SqliteDatabase)
    database.connection.set_trace_callback(seen.append)
    return seen


def test_from_an_approval_to_the_end_there_are_eight_commits(tmp_path: Path) -> None:
    """The answer; the decision, with its use and the run's status; the verdict; claim; result; attempt; end; answer."""
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        agent: Any = create_agent(ScriptedModel([call("pay", amount=5), "Paid."]), [pay], checkpoints=checkpoints)
        agent.invoke({"messages": [("user", "Pay 5.")]}, PLACE)
        seen = statements_of(checkpoints)
        state = agent.invoke(Command(resume={"type": "approve"}), PLACE)
    assert state["run"]["answer"] == "Paid."
    assert sum(statement.casefold() == "commit" for statement in seen) == 8


def test_a_step_of_reading_is_three_rows(tmp_path: Path) -> None:
    """The checkpoint, what was added to the transcript, and to the trail: a reader pays for each row."""
    turns: list[Any] = [*(call("count", number=number) for number in range(STEPS)), "Counted."]
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        agent: Any = create_agent(ScriptedModel(turns), [count], checkpoints=checkpoints)
        agent.invoke({"messages": [("user", "Count.")]}, PLACE)
        stored = [*checkpoints.saver.list(PLACE)]
        written = [write for found in stored for write in found.pending_writes or ()]
    assert (STEPS + 3, 2 * STEPS + 2) == (len(stored), len(written))


@pytest.mark.parametrize(("far", "copies"), [(10, False), (10_000, True)])
def test_a_long_thread_is_not_stored_whole_again_and_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, far: int, *, copies: bool
) -> None:
    """LangGraph's bound is met here after 30 super-steps; what is read is the same with its copies and without."""
    monkeypatch.setattr("langgraph.pregel._checkpoint.DELTA_MAX_SUPERSTEPS_SINCE_SNAPSHOT", 30)
    monkeypatch.setattr("loopwright.checkpoints.metadata.FAR", far)
    turns: list[Any] = [*(call("count", number=number) for number in range(STEPS)), "Counted."]
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        agent: Any = create_agent(ScriptedModel(turns), [count], checkpoints=checkpoints)
        state = agent.invoke({"messages": [("user", "Count.")]}, PLACE)
        stored = [found.checkpoint["channel_values"].values() for found in checkpoints.saver.list(PLACE)]
        read = agent.get_state(PLACE).values
    assert any(isinstance(value, _DeltaSnapshot) for values in stored for value in values) is copies
    assert len(read["messages"]) == 2 * STEPS + 2
    assert (read["messages"], read["trail"]) == (state["messages"], state["trail"])
