"""Calls that must not run at once: on one order one after the other, on different ones side by side."""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import Gate, wait_until
from tests.world.plans import planned

from loopwright import Checkpoints, Limits, RunResult, Runs, SyncRuns, allow, create_agent, open_checkpoints, tool
from loopwright.state import digest
from loopwright.testing import call
from loopwright.tools import Tool, deadline


class Watch:
    """Counts who is inside at once, of one order and in all."""

    def __init__(self, ideal: int) -> None:
        """Take how many ought to be inside at once."""
        self.order: dict[str, list[int]] = defaultdict(list)
        self.inside: list[str] = []
        self.overlaps = 0
        self.most = 0
        self._lock = threading.Lock()
        self._together = threading.Barrier(ideal)

    def visit(self, order_id: str, number: int) -> None:
        """Go in, meet as many as can be inside, and go out."""
        with self._lock:
            self.overlaps += order_id in self.inside
            self.inside.append(order_id)
            self.order[order_id].append(number)
            self.most = max(self.most, len(self.inside))
        self._together.wait(20)  # each round is as wide as can be, or this breaks
        with self._lock:
            self.inside.remove(order_id)

    def build(self, effect: str) -> Tool:
        """Build a tool that is watched."""

        @tool(effect="read" if effect == "read" else "write", serial="order:{order_id}")
        def ship(order_id: str, number: int) -> str:
            """Ship an order's parcel, by the order's code and the parcel's number."""
            self.visit(order_id, number)
            return f"{order_id}/{number}"

        return ship


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_twenty_calls_on_five_orders(checkpoints: Checkpoints, effect: str, door: DoorName) -> None:
    """Never two on one order, each order's in the turn's order, and always all five orders at once: four rounds."""
    watch = Watch(ideal=5)
    orders = ["A", "A", "A", "A", "B", "B", "B", "B", "C", "D", "E", "C", "D", "E", "C", "D", "E", "C", "D", "E"]
    turn = [call("ship", order_id=order, number=number) for number, order in enumerate(orders)]
    agent = create_agent(planned([turn, "Done."]), [watch.build(effect)], permissions=[allow("ship")])
    result = Desk(agent, checkpoints, door).run()
    assert [f"{order}/{number}" for number, order in enumerate(orders)] == [e["observation"] for e in result.trail]
    assert (0, 5) == (watch.overlaps, watch.most)
    assert all(numbers == sorted(numbers) for numbers in watch.order.values())


def test_whose_turn_does_not_come(checkpoints: Checkpoints) -> None:
    """It waits no longer than the run may go on; nothing of it was begun."""
    gate, done = Gate(), threading.Event()
    begun: list[str] = []

    @tool(effect="write", serial="{code}")
    def work(code: str, who: str) -> str:
        """Work on an order, by its code and by whom."""
        begun.append(f"{who} {code}")
        if who == "first":
            gate.pass_through()
        return who

    def run(who: str, seconds: float) -> str:
        plan = planned([call("work", code="A", who=who), "Done."])
        limits = Limits(max_seconds=seconds)
        agent = create_agent(plan, [work], permissions=[allow("work")], limits=limits)
        return Desk(agent, checkpoints).run(thread_id=who).trail[0]["observation"]

    def first() -> None:
        run("first", 60)
        done.set()

    threading.Thread(target=first, daemon=True).start()
    gate.wait_until_reached()
    assert "ERROR: nothing was done: another call on A still ran" in run("second", 0.2)
    gate.open()
    assert done.wait(20)
    assert ("third", ["first A", "third A"]) == (run("third", 60), begun)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_who_was_given_up_is_inside_until_the_end(checkpoints: Checkpoints, effect: Any, door: DoorName) -> None:
    """A blocking call goes on in its thread beyond its timeout; others on its order wait for so long, and say why."""
    gate = Gate()
    inside: list[str] = []

    @tool(effect=effect, serial="order:{code}", timeout=0.05)
    def work(code: str, who: str) -> str:
        """Work on an order, by its code and by whom."""
        inside.append(who)
        if who == "first":
            gate.pass_through()
            inside.append("out")
        return f"{who} {code}"

    turn = [call("work", code="A", who=who) for who in ("first", "second", "third")]
    turns = [turn, call("work", code="A", who="last"), "Done."]
    desk = Desk(create_agent(planned(turns), [work], permissions=[allow("work")]), checkpoints, door)
    name = f" serial:{digest('order:A')}"
    rested = desk.run()
    if effect == "read":
        said = [entry["observation"] for entry in rested.trail]
        why = "nothing was done: an earlier call on order:A, which was given up, has not ended after 0.05 s more"
        assert ["ERROR: timed out after 0.05 s", *[f"ERROR: {why}"] * 3] == said
    else:
        assert ["outcome_unknown"] == [asked.question for asked in rested.approvals]
    assert ["first"] == inside
    assert checkpoints.ledger.leases.holder(name) is not None
    gate.open()
    wait_until(lambda: checkpoints.ledger.leases.holder(name) is None)
    last = desk.run("Once more.", thread_id="other") if effect == "read" else desk.wait(rested.run_id)
    assert ("last A", ["first", "out"]) == (last.trail[-1]["observation"], inside[:2])


def test_a_coroutine_that_will_not_end_is_inside_too(checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that swallows its cancellation keeps its place, and settles its effect when it ends after all."""
    monkeypatch.setattr(deadline, "GRACE_SECONDS", 0.01)
    ended: list[str] = []

    async def main() -> RunResult:
        gate = asyncio.Event()

        @tool(effect="write", serial="order:{code}", timeout=0.05)
        async def pay(code: str) -> str:
            """Pay for an order, by its code."""
            while not gate.is_set():
                with suppress(asyncio.CancelledError):
                    await gate.wait()
            ended.append(code)
            return f"paid {code}"

        agent = create_agent(planned([[call("pay", code="A")] * 2, "Done."]), [pay], permissions=[allow("pay")])
        async with Runs(agent, checkpoints) as runs:
            waiting = await runs.run("Pay.", thread_id="t")
            assert ["outcome_unknown"] == [asked.question for asked in waiting.approvals]
            gate.set()
            await asyncio.to_thread(wait_until, lambda: not checkpoints.ledger.approvals.list_open(waiting.run_id, 5))
            return await runs.wait(waiting.run_id)

    result = asyncio.run(main())
    first, second = [entry["observation"] for entry in result.trail]
    assert ("paid A", ["A"]) == (first, ended)
    assert "nothing was done: an earlier call on order:A, which was given up, has not ended" in second


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_two_processes_and_one_order(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Two openings of one database are as two processes: the second waits for the first one's lease."""
    url = f"sqlite:///{tmp_path / 'runs.db'}" if kind == "sqlite" else request.getfixturevalue("postgres").url
    gate, watched = Gate(), threading.Lock()
    overlaps: list[bool] = []

    @tool(effect="read", serial="order:{code}")
    def work(code: str, who: str) -> str:
        """Work on an order, by its code and by whom."""
        is_free = watched.acquire(blocking=False)
        overlaps.append(not is_free)
        if who == "a":
            gate.pass_through()
        if is_free:
            watched.release()
        return code

    def run(who: str) -> None:
        plan = planned([call("work", code="A", who=who), "Done."])
        with open_checkpoints(url) as checkpoints:
            assert "succeeded" == SyncRuns(create_agent(plan, [work]), checkpoints).run("Go.", thread_id=who).status

    first, second = (threading.Thread(target=run, args=(who,), daemon=True) for who in "ab")
    first.start()
    gate.wait_until_reached()
    second.start()
    second.join(0.3)
    assert second.is_alive()
    gate.open()
    for thread in (first, second):
        thread.join(20)
    assert [False, False] == overlaps
