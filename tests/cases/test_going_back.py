"""Cases from public bug reports: going back in time (C21), and what comes back from the store (C58)."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.world.nursery import Nursery
from tests.world.plans import planned
from tests.world.refund import THREAD, Refund
from tests.world.stores import STORES, Store, open_store
from tests.world.tasks import shape
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, approve, create_agent, edit, open_checkpoints
from loopwright.graphs import compile_agent
from loopwright.state import Call, TrailEntry
from loopwright.testing import call, check_transcript

PAY = call("pay", order_id="A1", amount=5)
CONFIG: Any = {"configurable": {"thread_id": "t"}}
TASK: Any = {"messages": [("user", "Do it.")]}
YES: Any = Command(resume={"type": "approve"})


@pytest.fixture(name="store", params=STORES)
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store."""
    return open_store(request, tmp_path)


class Told:
    """A payment that was asked about, approved and made; and the thread's history."""

    def __init__(self, checkpoints: Checkpoints) -> None:
        """Run it to its end."""
        self.checkpoints = checkpoints
        self.till = Till()
        plan = planned([call("look", order_id="A1"), PAY, "Done."])
        self.agent: Any = create_agent(plan, [self.till.pay(), self.till.look()], checkpoints=checkpoints)
        self.asked = self.agent.invoke(TASK, CONFIG)["__interrupt__"][0].value
        self.end = self.agent.invoke(YES, CONFIG)
        self.last = self.agent.get_state(CONFIG)
        self.history: list[Any] = [*self.agent.get_state_history(CONFIG)]
        assert (self.end["run"]["answer"], self.till.paid) == ("Done.", [("A1", 5)])

    def fork(self) -> Any:
        """Go back to before the question; returns what is asked there."""
        config = next(s.config for s in self.history if is_proposal(s))
        forked = self.agent.invoke(None, config)
        assert [("A1", 5)] == self.till.paid
        return forked["__interrupt__"][0].value

    def observations(self, state: Any) -> list[str]:
        """Return what the model read of each call."""
        return [message.text for message in state["messages"] if message.type == "tool"]


def is_proposal(snapshot: Any) -> bool:
    """Tell whether the model has proposed a call that nobody has looked at."""
    decision: Mapping[str, Any] = snapshot.values.get("decision") or {}
    return decision.get("kind") == "call_tools"


def is_settled(snapshot: Any) -> bool:
    """Tell whether the question was decided by this checkpoint."""
    turn: list[Call] = snapshot.values.get("turn") or []
    trail: list[TrailEntry] = snapshot.values.get("trail") or []
    is_told = any(entry["tool"] == "pay" for entry in trail)
    is_allowed = any(one["name"] == "pay" and one["verdict"] == "allow" for one in turn)
    return is_told or is_allowed or bool(snapshot.values.get("answers"))


@pytest.fixture(name="told", params=[True, False], ids=["write-behind", "each-step"])
def make_told(request: pytest.FixtureRequest, store: Store) -> Generator[Told]:
    """With checkpoints at barriers only, and at each super-step."""
    with open_checkpoints(store.url, write_behind=request.param) as checkpoints:
        yield Told(checkpoints)


def test_c21_from_before_the_question_it_asks_anew(told: Told) -> None:
    """The old answer does not count on another branch: a question of its own, and nothing runs."""
    asked = told.fork()
    assert asked["approval_id"] != told.asked["approval_id"]
    assert (asked["args"], "branch" in asked["error"]) == (told.asked["args"], True)
    (open_,) = told.checkpoints.ledger.approvals.list_open()
    assert (open_.id, open_.decision) == (asked["approval_id"], None)


def test_c21_from_any_checkpoint_nothing_is_paid_again(told: Told) -> None:
    """Before the decision it asks, and the very same call is not made again; behind it the run just ends.

    From before the run had begun it would be another run, whose calls are its own.
    """
    for snapshot in (one for one in told.history if one.values.get("run")):
        state = told.agent.invoke(None, snapshot.config) if snapshot.next else snapshot.values
        assert ("__interrupt__" in state) == (bool(snapshot.next) and not is_settled(snapshot))
        if "__interrupt__" in state:
            state = told.agent.invoke(YES, CONFIG)
            assert "already done on" in told.observations(state)[-1]
        if snapshot.next:
            check_transcript(state["messages"])
            assert ("succeeded", [("A1", 5)]) == (state["run"]["status"], told.till.paid)


def test_c21_from_just_behind_the_payment(told: Told) -> None:
    """It is not made again: the run ends with the result that is there."""
    behind = next(
        s for s in reversed(told.history) if "paid 5" in str([s.values.get("results"), s.values.get("trail")])
    )
    state = told.agent.invoke(None, behind.config)
    assert (state["run"]["answer"], told.till.paid) == ("Done.", [("A1", 5)])
    assert told.observations(state) == told.observations(told.end)


def test_c21_the_same_call_approved_again(told: Told) -> None:
    """It was done once and is not done again; the model reads that, too."""
    told.fork()
    state = told.agent.invoke(YES, CONFIG)
    assert (state["run"]["status"], told.till.paid) == ("succeeded", [("A1", 5)])
    assert "already done on" in told.observations(state)[-1]
    assert "another branch of this thread: paid 5 for A1" in told.observations(state)[-1]
    check_transcript(state["messages"])


def test_c21_an_edited_call_is_another_effect(told: Told) -> None:
    """A person decided anew, about something else: that is paid, under a key of its own."""
    told.fork()
    args = {"order_id": "A1", "amount": 3}
    state = told.agent.invoke(Command(resume={"type": "edit", "args": args}), CONFIG)
    assert [("A1", 5), ("A1", 3)] == told.till.paid
    assert len(set(told.till.keys)) == 2
    assert "paid 3 for A1" == told.observations(state)[-1]


@pytest.mark.parametrize(("decision", "paid"), [(approve(), [5]), (edit(order_id="A1", amount=3), [5, 3])])
def test_c21_decided_in_the_ledger(told: Told, decision: Any, paid: list[int]) -> None:
    """The same through `decide`; the first decision counts, whatever the resume then says."""
    asked = told.fork()
    runs = SyncRuns(told.agent, told.checkpoints)
    assert runs.decide(asked["approval_id"], decision, by="ben").accepted
    state = told.agent.invoke(Command(resume={"type": "reject"}), CONFIG)
    assert ("succeeded", paid) == (state["run"]["status"], [amount for _, amount in told.till.paid])


def test_c21_the_original_branch_stays_readable(told: Told) -> None:
    """What was is still there under its checkpoint, the same to the last message."""
    told.fork()
    told.agent.invoke(Command(resume={"type": "reject", "message": "no"}), CONFIG)
    assert told.last.values == told.agent.get_state(told.last.config).values
    assert "no" in told.observations(told.agent.get_state(CONFIG).values)[-1]


def test_c58_our_state_comes_back_as_it_was(nursery: Nursery, store: Store, tmp_path: Path) -> None:
    """Paused here, read in a new process, resumed there and read here: equal, and of the same types throughout."""
    if store.kind == "memory":
        return
    refund = Refund(tmp_path, url=store.url)
    with open_checkpoints(store.url) as checkpoints:
        agent: Any = compile_agent(refund.agent.spec, checkpoints)
        config: Any = {"configurable": {"thread_id": THREAD}}
        paused = agent.invoke(TASK, config)
        paused.pop("__interrupt__")
        there = {"folder": str(tmp_path), "url": store.url}
        assert shape(paused) == nursery.start("read_state", **there, resume=False).result()
        resumed = nursery.start("read_state", **there, resume=True).result()
        assert resumed == shape(agent.get_state(config).values)
