"""Branches that wait (C21): a run that had ended goes on elsewhere on its thread, and everybody knows."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from langgraph.types import Command
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.stores import STORES, Store, open_store
from tests.world.till import Till

from loopwright import Checkpoints, RunResult, approve, create_agent, open_checkpoints, reject
from loopwright.testing import ScriptedModel, call, check_transcript

CONFIG: Any = {"configurable": {"thread_id": "t"}}
TASK: Any = {"messages": [("user", "Do it.")]}


@pytest.fixture(name="store", params=STORES)
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store."""
    return open_store(request, tmp_path)


class Told:
    """A run that paid, was approved and has ended; what the model says from then on can be changed."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        """Run it to its end."""
        self.checkpoints, self.till, self.amount = checkpoints, Till(), 5
        turns: list[Any] = [self._say] * 12
        self.agent: Any = create_agent(ScriptedModel(turns), [self.till.pay()], name="shop", checkpoints=checkpoints)
        self.desk = Desk(self.agent, checkpoints)
        self.first = self.desk.answer(self.desk.run("Do it."), approve())
        assert ("succeeded", [("A1", 5)]) == (self.first.status, self.till.paid)
        self.history: list[Any] = [*self.agent.get_state_history(CONFIG)]

    def _say(self, messages: list[AnyMessage]) -> Any:
        last = messages[-1]
        return "Done." if last.type == "tool" else call("pay", order_id="A1", amount=self.amount)

    def before(self, node: str) -> Any:
        """Return the config of the first checkpoint behind which a node came."""
        return next(s.config for s in reversed(self.history) if s.next == (node,) and s.values.get("run"))

    def at_pause(self) -> Any:
        """Return the config of the checkpoint where it waited."""
        return next(s.config for s in self.history if any(task.interrupts for task in s.tasks))

    def row(self) -> Any:
        """Return the run as the ledger has it."""
        return self.checkpoints.ledger.runs.find(self.first.run_id)

    def observed(self, result: RunResult) -> str:
        """Return what the model read last of a tool."""
        check_transcript(result.messages)
        return [message.text for message in result.messages if message.type == "tool"][-1]


@pytest.fixture(name="told")
def make_told(store: Store) -> Generator[Told]:
    """Every super-step is stored, so that each can be gone back to."""
    with open_checkpoints(store.url, write_behind=False) as checkpoints:
        yield Told(checkpoints)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("begun", ["before the question", "at the question", "by hand"])
def test_a_waiting_branch_is_a_waiting_run(told: Told, begun: str, door: DoorName) -> None:
    """It shows as waiting with its own question, is decided and driven by Runs, and no prune touches it."""
    if begun == "by hand":
        changed = told.agent.update_state(
            told.before("reason"), {"messages": [("user", "By hand.")]}, as_node="observe"
        )
        assert changed["configurable"]["checkpoint_id"]
        told.agent.invoke(None, CONFIG)
    else:
        told.agent.invoke(None, told.before("guard") if begun == "before the question" else told.at_pause())
    assert "waiting" == told.row().status
    assert 0 == told.checkpoints.prune(older_than=0).threads
    desk = Desk(told.agent, told.checkpoints, door)
    waiting = desk.wait(told.first.run_id)
    (asked,) = waiting.approvals
    assert ("waiting", told.first.run_id) == (waiting.status, asked.run_id)
    assert asked.id != told.checkpoints.ledger.approvals.of_run(told.first.run_id)[0].id
    ended = desk.answer(waiting, approve())
    assert ("succeeded", "succeeded", [("A1", 5)]) == (ended.status, told.row().status, told.till.paid)
    assert "another branch of this thread: paid 5 for A1" in told.observed(ended)
    assert 1 == told.checkpoints.prune(older_than=0).threads


def test_other_arguments_on_a_branch_are_a_normal_question(told: Told) -> None:
    """Approved, they are another effect under a key of their own; said again on a third branch, the stored result."""
    told.amount = 7
    for branch, said in enumerate(["paid 7 for A1", "already done on"]):
        asked = told.agent.invoke(None, told.before("reason"))["__interrupt__"][0].value
        assert ("tool_approval", 7) == (asked["type"], asked["args"]["amount"]), branch
        ended = told.desk.answer(told.desk.wait(told.first.run_id), approve())
        assert said in told.observed(ended)
        assert [("A1", 5), ("A1", 7)] == told.till.paid
    assert 2 == len(set(told.till.keys))


def test_two_branches_from_one_checkpoint(told: Told) -> None:
    """Each asks for itself: what was decided on one does not count on the other."""
    asked: list[str] = []
    for _ in range(3):
        asked.append(told.agent.invoke(None, told.before("guard"))["__interrupt__"][0].value["approval_id"])
        told.agent.invoke(Command(resume={"type": "reject", "message": "no"}), CONFIG)
    assert (3, [("A1", 5)]) == (len(set(asked)), told.till.paid)


def test_a_branch_of_an_earlier_run_ends_what_waits(told: Told) -> None:
    """The newer run's pause is no longer where the thread stands: its question is withdrawn."""
    newer = told.desk.run("Again.")
    told.agent.invoke(None, told.before("guard"))
    late = told.desk.decide(newer.approvals[0].id, approve())
    assert (False, "cancel", "cancelled") == (late.accepted, late.decision["type"], told.desk.wait(newer.run_id).status)
    assert "waiting" == told.row().status


def test_a_branch_whose_process_died_at_once(told: Told) -> None:
    """The ledger may not have heard of it: whoever waits for the run finds it, and a prune leaves it alone."""
    told.agent.invoke(None, told.before("guard"))
    told.checkpoints.ledger.database.write(
        "set_run_status", id=told.first.run_id, status="succeeded", reason="answered", cost_nano=0, now=1.0
    )
    assert (0, 1) == ((report := told.checkpoints.prune(older_than=0)).threads, report.busy)
    ended = told.desk.answer(told.desk.wait(told.first.run_id), reject("no"))
    assert ("succeeded", [("A1", 5)]) == (ended.status, told.till.paid)
