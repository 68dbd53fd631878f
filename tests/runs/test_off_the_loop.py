"""The async face never blocks its event loop: no statement reaches SQLite in the loop's own thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.world.plans import planned
from tests.world.sqlite import connection_of
from tests.world.till import Till

from loopwright import Checkpoints, Runs, aopen_checkpoints, approve, create_agent
from loopwright.testing import call

PLAN = [[call("look", order_id="A1"), call("look", order_id="A2")], call("pay", order_id="A1", amount=5), "Done."]
THREAD: Any = {"configurable": {"thread_id": "t"}}


async def by_runs(checkpoints: Checkpoints) -> None:
    """Start, stream, decide, recover, cancel, list."""
    agent = create_agent(planned(PLAN), [Till().look(), Till().pay()])
    async with Runs(agent, checkpoints) as runs:
        result = await runs.run("Pay.", thread_id="t")
        await runs.decide(result.approvals[0].id, approve(), by="ana")
        assert (await runs.wait(result.run_id)).answer == "Done."
        events = [event async for event in runs.stream("Again.", thread_id="t")]
        assert await runs.approvals()
        await runs.cancel(events[-1].run_id, by="ana")
        await runs.recover()
        assert len(await runs.list()) == 2


async def by_invoke(checkpoints: Checkpoints) -> None:
    """The graph alone, paused and resumed."""
    agent: Any = create_agent(planned(PLAN), [Till().look(), Till().pay()], checkpoints=checkpoints)
    await agent.ainvoke({"messages": [("user", "Pay.")]}, THREAD)
    state = await agent.ainvoke(Command(resume={"type": "approve"}), THREAD)
    assert state["run"]["answer"] == "Done."


@pytest.mark.parametrize("use", [by_runs, by_invoke])
def test_no_statement_in_the_loops_thread(tmp_path: Path, use: Callable[[Checkpoints], Awaitable[None]]) -> None:
    """Everything that touches the file is done in another thread."""
    seen: set[int] = set()

    async def main() -> int:
        async with await aopen_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
            connection = connection_of(checkpoints.ledger)
            connection.set_trace_callback(lambda _: seen.add(threading.get_ident()))
            await use(checkpoints)
        return threading.get_ident()

    assert asyncio.run(main()) not in seen
    assert seen
