"""A service that keeps looking for what others have left: one block, which nothing ends but its own end."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, DoorName
from tests.world.plans import planned
from tests.world.stores import Store

from loopwright import Agent, Checkpoints, Runs, SyncRuns, create_agent, open_checkpoints
from loopwright.errors import ConfigurationError
from loopwright.testing import ManualClock, call
from loopwright.tools import tool

SECONDS = 20
"""How long a test waits before it fails."""


def telling(called: threading.Event) -> Agent:
    """Make an agent whose one tool tells that it was called."""

    @tool(effect="read")
    def tell() -> str:
        """Tell. Use it once."""
        called.set()
        return "told"

    return create_agent(planned([call("tell"), "Done."]), [tell])


def within(
    door: DoorName, agent: Agent, checkpoints: Checkpoints, body: Callable[[], None], every: float = 0.01
) -> None:
    """Do something in a block that recovers, by this door."""
    if door == "sync":
        with SyncRuns(agent, checkpoints).recovering(every=every):
            body()
        return

    async def main() -> None:
        async with Runs(agent, checkpoints) as runs, runs.recovering(every=every):
            await asyncio.to_thread(body)

    asyncio.run(main())


@pytest.mark.parametrize("door", DOORS)
def test_what_is_left_later_is_found_too(checkpoints: Checkpoints, door: DoorName) -> None:
    """A run that a dead process left after the first look is carried on by a later one, without anybody's call."""
    called = threading.Event()
    agent = telling(called)
    other = SyncRuns(agent, checkpoints)

    def body() -> None:
        for name in ("first", "second"):
            left = other.start("Tell it.", thread_id=name)
            assert called.wait(SECONDS)
            called.clear()
            assert "succeeded" == other.wait(left.id).status

    within(door, agent, checkpoints, body)


@pytest.mark.parametrize("door", DOORS)
def test_a_run_of_a_process_that_has_just_died(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """While its lease lasts it is left alone, and nobody waits for it; afterwards it is carried on."""
    called = threading.Event()
    agent = telling(called)
    other = SyncRuns(agent, checkpoints)
    left = other.start("Tell it.", thread_id="left")
    assert checkpoints.ledger.leases.take("left") is not None

    def body() -> None:
        other.start("Tell it.", thread_id="free")
        assert called.wait(SECONDS)
        assert other.get(left.id).usage.steps == 0
        called.clear()
        clock.advance(11)
        assert called.wait(SECONDS)
        assert "succeeded" == other.wait(left.id).status

    within(door, agent, checkpoints, body)


@pytest.mark.parametrize("door", DOORS)
def test_a_look_that_fails_ends_nothing(tmp_path: Path, door: DoorName) -> None:
    """It is logged, and when the database is there again the next look finds what is left."""
    called = threading.Event()
    agent, store = telling(called), Store("sqlite", f"sqlite:///{tmp_path / 'runs.db'}", path=tmp_path / "runs.db")
    failed = threading.Event()

    class Watch(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if vars(record).get("action") == "recovery_failed":
                failed.set()

    watch = Watch()

    def body() -> None:
        assert failed.wait(SECONDS)
        store.execute("alter table away rename to lw_runs")
        assert called.wait(SECONDS)

    logging.getLogger("loopwright").addHandler(watch)
    try:
        with open_checkpoints(store.url) as checkpoints:
            SyncRuns(agent, checkpoints).start("Tell it.", thread_id="t")
            store.execute("alter table lw_runs rename to away")
            within(door, agent, checkpoints, body)
            assert not checkpoints.ledger.runs.unfinished()
    finally:
        logging.getLogger("loopwright").removeHandler(watch)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("every", [0, -1, "30", float("nan"), True])
def test_no_time_between_two_looks(checkpoints: Checkpoints, door: DoorName, every: Any) -> None:
    """It is refused at once, not in a loop that never rests."""
    agent = telling(threading.Event())
    with pytest.raises(ConfigurationError, match="give seconds above 0, as a number"):
        within(door, agent, checkpoints, lambda: None, every=every)


def test_leaving_begins_nothing_more(checkpoints: Checkpoints) -> None:
    """A worker that is stopped finishes the run that it drives, and leaves the others to the next one."""
    called = threading.Event()
    agent = telling(called)
    other = SyncRuns(agent, checkpoints)
    ids = [other.start("Tell it.", thread_id=name, run_id=name).id for name in "abc"]
    is_driven, may_go_on = threading.Event(), threading.Event()

    @tool(effect="read")
    def tell() -> str:
        """Tell. Use it once."""
        is_driven.set()
        assert may_go_on.wait(SECONDS)
        return "told"

    slow = SyncRuns(create_agent(planned([call("tell"), "Done."]), [tell]), checkpoints)
    is_over = threading.Event()

    def work() -> None:
        with slow.recovering(every=0.01):
            assert is_driven.wait(SECONDS)
        is_over.set()

    worker = threading.Thread(target=work)
    worker.start()
    assert is_driven.wait(SECONDS)
    assert not is_over.wait(0.05)
    may_go_on.set()
    worker.join(SECONDS)
    assert [2, 0, 0] == [other.get(run_id).usage.steps for run_id in ids]
