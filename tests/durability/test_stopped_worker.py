"""A worker is stopped in the middle of its work, taken for dead, and comes back when another has done it."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.world.gates import wait_until
from tests.world.nursery import Child, Nursery
from tests.world.recovery import KINDS, check, finish
from tests.world.refund import PAID, THREAD, Refund, later
from tests.world.stores import Store, open_store

from loopwright import SyncRuns, open_checkpoints
from loopwright.graphs import compile_agent
from loopwright.testing import check_transcript

WRITE: dict[str, Any] = {"effect": "write", "verify": False}
IDEMPOTENT: dict[str, Any] = {"effect": "idempotent", "verify": False}
Stop = tuple[str, dict[str, Any]]
"""Where it is stopped, and the kind of tool."""
STOPS: list[Stop] = [
    ("model:1", WRITE),
    ("model:2", WRITE),
    ("tool:before", IDEMPOTENT),
    *(("tool:after", kind) for kind in KINDS),
]


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store that outlives its process."""
    return open_store(request, tmp_path)


@contextmanager
def stopped(child: Child) -> Generator[None]:
    """Stop a child where it says that it is, and let it go on after the block."""
    assert child.receive() == "here"
    os.kill(child.pid, signal.SIGSTOP)
    wait_until(lambda: state_of(child.pid) == "T")
    yield
    os.kill(child.pid, signal.SIGCONT)
    child.send("go on")


def state_of(pid: int) -> str:
    """Return the kernel's letter for what a process does."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]


def lines(store: Store) -> list[tuple[str, str]]:
    """Return each checkpoint with its parent, in order."""
    return store.execute("select checkpoint_id, parent_checkpoint_id from checkpoints order by checkpoint_id")


def require_one_line(store: Store) -> None:
    """Fail unless each checkpoint follows the one before it."""
    rows = lines(store)
    assert [None, *(name for name, _ in rows)][:-1] == [parent for _, parent in rows]


def effects(store: Store) -> list[tuple[str, str]]:
    """Return how the effects ended."""
    return store.execute("select status, result from lw_effects order by began_at")


@pytest.mark.parametrize("door", ["sync", "async"])
@pytest.mark.parametrize("stop", STOPS)
def test_it_can_neither_fork_the_thread_nor_pay_again(
    nursery: Nursery, store: Store, tmp_path: Path, stop: Stop, door: str
) -> None:
    """It comes back to a run that has ended: nothing of its own is stored, and it returns how the run stands."""
    place, kind = stop
    options = {"folder": str(tmp_path), "url": store.url, **kind}
    child = nursery.start("drive_to_a_stop", die_in=place, door=door, **options)
    refund = Refund(tmp_path, url=store.url, **kind)
    with stopped(child):
        check(refund, finish(refund))
        before = (lines(store), effects(store), refund.bank.payments())
    assert child.result() == "succeeded"
    assert before == (lines(store), effects(store), refund.bank.payments())
    require_one_line(store)
    check(refund, finish(refund))
    assert len(set(refund.bank.keys())) == 1


def test_what_it_did_too_late_stands_in_the_log(nursery: Nursery, store: Store, tmp_path: Path) -> None:
    """Stopped before its payment, which a person then called undone: nothing can stop it, and it is not hushed up."""
    options = {"folder": str(tmp_path), "url": store.url, **WRITE}
    child = nursery.start("drive_to_a_stop", die_in="tool:before", **options)
    refund = Refund(tmp_path, url=store.url, **WRITE)
    with stopped(child):
        check(refund, finish(refund))
    assert child.result() == "succeeded"
    assert [("A100", 250)] == refund.bank.payments()
    with open_checkpoints(store.url) as checkpoints:
        events = [record for record in checkpoints.ledger.log.records("run-1") if record.data.get("effect")]
        assert ["claimed", "unknown", "resolved", "late"] == [record.event for record in events]
        assert ("done", PAID) == (events[-1].data["status"], events[-1].data["result"])
        assert checkpoints.ledger.log.verify().is_whole


@pytest.mark.parametrize("place", ["model:1", "tool:after"])
def test_a_plain_call_ends_with_thread_moved(nursery: Nursery, store: Store, tmp_path: Path, place: str) -> None:
    """Whoever called the graph itself is told; there, too, nothing is forked or paid twice."""
    kind: dict[str, Any] = {"effect": "idempotent", "url": store.url}
    child = nursery.start("drive_to_a_stop", die_in=place, door="plain", folder=str(tmp_path), **kind)
    refund = Refund(tmp_path, **kind)
    with stopped(child):
        end_plainly(refund)
        before = lines(store)
    assert child.result() == "ThreadMoved"
    assert before == lines(store)
    require_one_line(store)
    assert refund.bank.payments() == [("A100", 250)]


def end_plainly(refund: Refund) -> None:
    """Take a run over with plain calls of the graph."""
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        agent: Any = compile_agent(refund.agent.spec, checkpoints)
        config = {"configurable": {"thread_id": THREAD}}
        state = agent.invoke(None, config)
        while "__interrupt__" in state:
            state = agent.invoke(Command(resume={"type": "approve"}), config)
        assert state["run"]["status"] == "succeeded"
        check_transcript(state["messages"])


def test_a_branch_has_one_history_too(nursery: Nursery, store: Store, tmp_path: Path) -> None:
    """Stopped on a branch that it had asked for, and taken over there: the branch does not part again."""
    refund = Refund(tmp_path, url=store.url, effect="idempotent")
    with open_checkpoints(store.url) as checkpoints:
        SyncRuns(refund.agent, checkpoints).run("Refund order A100, please.", thread_id=THREAD, run_id="run-1")
        agent = compile_agent(refund.agent.spec, checkpoints)
        history = [*agent.get_state_history({"configurable": {"thread_id": THREAD}})]
    first = history[-2].config.get("configurable", {})["checkpoint_id"]
    options = {"folder": str(tmp_path), "url": store.url, "effect": "idempotent", "from_checkpoint": first}
    child = nursery.start("drive_to_a_stop", die_in="model:1", door="plain", **options)
    with stopped(child):
        end_plainly(refund)
        before = lines(store)
    assert child.result() == "ThreadMoved"
    assert before == lines(store)
    parents = [parent for _, parent in before]
    assert {parent for parent in parents if parents.count(parent) > 1} <= {first}
