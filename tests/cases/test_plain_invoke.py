"""Runs that their caller drives by invoking the agent itself: who may end them, and who may decide about them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.nursery import KILLED, Nursery
from tests.world.plans import planned
from tests.world.refund import THREAD, Refund, later
from tests.world.till import Till

from loopwright import Agent, Checkpoints, SyncRuns, allow, approve, ask, create_agent, edit, open_checkpoints, tool
from loopwright.checkpoints import PLAIN_INVOKE
from loopwright.errors import ConfigurationError, RunError
from loopwright.graphs import compile_agent
from loopwright.testing import ManualClock, call

PAY = call("pay", order_id="A1", amount=5)
CONFIG: Any = {"configurable": {"thread_id": "t"}}
TASK: Any = {"messages": [("user", "Do it.")]}


@pytest.mark.parametrize("door", DOORS)
def test_a_cancelled_run_ends_when_its_caller_was_killed(nursery: Nursery, tmp_path: Path, door: DoorName) -> None:
    """At once, since nothing was heard of it for a lease's time; who comes back to it finds it cancelled."""
    child = nursery.start("invoke_plainly", folder=str(tmp_path), die_in="model:1")
    assert KILLED == child.wait()
    refund = Refund(tmp_path)
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        (run,) = checkpoints.ledger.runs.list()
        assert ("running", PLAIN_INVOKE) == (run.status, run.agent)
        desk = Desk(refund.agent, checkpoints, door)
        assert desk.cancel(run.id).accepted
        assert "cancelled" == checkpoints.ledger.runs.list()[0].status
        agent: Any = compile_agent(refund.agent.spec, checkpoints)
        state = agent.invoke(None, {"configurable": {"thread_id": THREAD}})
        assert ("cancelled", []) == (state["run"]["status"], refund.bank.payments())


def test_a_caller_who_is_there_ends_it_himself(tmp_path: Path, clock: ManualClock) -> None:
    """His heartbeat holds the thread's lease: whoever cancels leaves the ending to him."""
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    seen: list[str] = []
    with open_checkpoints(url, clock=clock) as here, open_checkpoints(url, clock=clock) as there:

        @tool(effect="read")
        def look() -> str:
            """Look around, for a long time, until somebody cancels."""
            for _ in range(3):
                clock.advance(8)
                here.ledger.heart.beat()
            (run,) = there.ledger.runs.list()
            assert there.ledger.cancel(run.id, "ana")
            seen.append(there.ledger.runs.list()[0].status)
            return "seen"

        agent: Any = create_agent(planned([call("look"), "Done."]), [look], checkpoints=here)
        assert "cancelled" == agent.invoke(TASK, CONFIG)["run"]["status"]
        assert (["running"], "cancelled") == (seen, there.ledger.runs.list()[0].status)
        assert there.ledger.leases.holder("t") is None


@pytest.mark.parametrize("door", DOORS)
def test_cancelled_first_and_dead_then(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """Recovering ends it once nothing is heard of its caller; not before, and not without a cancellation."""
    for run_id in ("cancelled", "left"):
        checkpoints.ledger.runs.begin(run_id, thread_id=run_id, agent=PLAIN_INVOKE, task="Pay.")
    desk = Desk(create_agent(planned(["Done."]), []), checkpoints, door)
    assert desk.cancel("cancelled").accepted
    desk.recover()
    assert {"running"} == {run.status for run in checkpoints.ledger.runs.list()}
    clock.advance(60)
    desk.recover()
    assert {"cancelled": "cancelled", "left": "running"} == {r.id: r.status for r in checkpoints.ledger.runs.list()}
    assert "cancelled" == desk.wait("cancelled").status


def build(till: Till, cap: int, checkpoints: Checkpoints | None = None) -> Agent:
    """Build an agent that asks above a cap; two of them differ in nothing else."""
    rules = [ask("pay", when=lambda proposed: proposed.args["amount"] > cap), allow("pay")] if cap else [ask("pay")]
    return create_agent(planned([PAY, "Done."]), [till.pay()], permissions=rules, checkpoints=checkpoints)


@pytest.mark.parametrize("door", DOORS)
def test_a_decision_is_taken_by_the_same_agent_only(checkpoints: Checkpoints, door: DoorName) -> None:
    """One with other rules is refused, and the question stays open; it may still cancel."""
    till = Till()
    invoked: Any = build(till, 0, checkpoints)
    asked = invoked.invoke(TASK, CONFIG)["__interrupt__"][0].value
    other = Desk(build(till, 1), checkpoints, door)
    for decision in (approve(), edit(amount=1)):
        with pytest.raises(RunError, match="other rules"):
            other.decide(asked["approval_id"], decision)
    with pytest.raises(RunError, match="other rules"):
        other.wait(asked["run_id"])
    same = Desk(build(till, 0), checkpoints, door)
    assert same.decide(asked["approval_id"], approve()).accepted
    assert ("succeeded", [("A1", 5)]) == (same.wait(asked["run_id"]).status, till.paid)
    again = invoked.invoke(TASK, {"configurable": {"thread_id": "other"}})["__interrupt__"][0].value
    assert other.cancel(again["run_id"]).accepted


def test_what_nobody_bound_is_decided_by_nobody_else(checkpoints: Checkpoints) -> None:
    """A run of 0.1.0 does not say whose it is."""
    checkpoints.ledger.runs.begin("r", thread_id="t", agent=PLAIN_INVOKE, task="Pay.")
    checkpoints.ledger.ask("r", "t", [])
    with pytest.raises(RunError, match="where it was invoked"):
        SyncRuns(build(Till(), 0), checkpoints).wait("r")


@pytest.mark.parametrize("door", DOORS)
def test_what_runs_carried_on_runs_recovers(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """After a decision it is driven by `Runs`; when that worker dies, the next one goes on."""
    till = Till()
    invoked: Any = build(till, 0, checkpoints)
    asked = invoked.invoke(TASK, CONFIG)["__interrupt__"][0].value
    desk = Desk(build(till, 0), checkpoints, door)
    checkpoints.ledger.decide(asked["approval_id"], {"type": "approve"}, "ana")
    checkpoints.ledger.runs.set_worker(asked["run_id"], "dead")
    checkpoints.ledger.database.write(
        "set_run_status", id=asked["run_id"], status="running", reason="", cost_nano=0, now=clock()
    )
    clock.advance(60)
    (result,) = desk.recover()
    assert ("succeeded", [("A1", 5)]) == (result.status, till.paid)


@pytest.mark.parametrize("door", DOORS)
def test_a_run_id_names_one_whole_message(checkpoints: Checkpoints, door: DoorName) -> None:
    """Neither before it is taken in nor after is another one taken for it that begins, and is as long, as it."""
    one, other = "word " * 100 + "yes", "word " * 100 + "no."
    agent = create_agent(planned(["Done."]), [])
    SyncRuns(agent, checkpoints).start(one, thread_id="t", run_id="r")
    desk = Desk(agent, checkpoints, door)
    with pytest.raises(ConfigurationError, match="used before"):
        desk.run(other, run_id="r")
    assert "succeeded" == desk.run(one, run_id="r").status
    for wrong in (other, one + " ", one.replace(" ", "\n", 1)):
        with pytest.raises(ConfigurationError, match="used before"):
            desk.run(wrong, run_id="r")
    assert "succeeded" == desk.run(one, run_id="r").status
