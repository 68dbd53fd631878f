"""An agent with channels of its own: a basket that several calls of a turn fill, and what is to be paid for it."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Sequence
from typing import Annotated, Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from loopwright import Agent, AgentState, Limits, Runs, SyncRuns, allow, create_agent, open_checkpoints, tool
from loopwright.testing import call

from .nursery import Channel
from .plans import planned

PRICES = {"pear": 2, "plum": 3, "gold": 900}
TURNS = ([call("put", item="pear"), call("put", item="plum")], call("look"), "Done.")


class CartState(AgentState):
    """The state of a shopping assistant."""

    basket: Annotated[list[str], operator.add]
    total: Annotated[int, operator.add]
    last: str


@tool(effect="write", key="put:{item}")
async def put(item: str, call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Put an item into the basket. Use it for each thing that the customer wants."""
    told = ToolMessage(f"put {item}", tool_call_id=call_id, artifact={"item": item})
    update = {"basket": [item], "total": PRICES[item], "last": item}
    return Command(update={"messages": [told], **update})


@tool(effect="read")
def look(basket: Annotated[list[str], InjectedState("basket")]) -> str:
    """Look into the basket. Use it before you answer."""
    return ", ".join(basket)


def build(turns: Sequence[Any] = TURNS, **options: Any) -> Agent:
    """Build the agent, with a model that follows a plan."""
    given: dict[str, Any] = {"permissions": [allow("put")], "state_schema": CartState, **options}
    return create_agent(planned(turns), [put, look], **given)


def fill(channel: Channel, *, url: str, door: str) -> None:
    """Run it, one call after the other; sends how it ended."""
    agent = build(limits=Limits(max_parallel=1))
    with open_checkpoints(url, clock=time.time) as checkpoints:
        if door == "sync":
            channel.send(SyncRuns(agent, checkpoints).run("Fill it.", thread_id="t", run_id="r").status)
            return

        async def main() -> str:
            async with Runs(agent, checkpoints) as runs:
                return (await runs.run("Fill it.", thread_id="t", run_id="r")).status

        channel.send(asyncio.run(main()))
