"""Blocking streams in the modes for which LangGraph takes a thread of the tools' own pool."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.world.plans import planned

from loopwright import Checkpoints, Effect, Limits, create_agent, tool
from loopwright.testing import call


@pytest.mark.parametrize("modes", ["custom", "messages", ["updates", "custom"]])
@pytest.mark.parametrize("parallel", [1, 2])
def test_tools_run_while_somebody_listens(checkpoints: Checkpoints, modes: Any, parallel: int) -> None:
    """Never more at once than `max_parallel`, and with one at a time the stream does not stand still."""
    lock, now, most = threading.Lock(), [0], [0]

    @tool(effect="read")
    def look(code: str, effect: Effect) -> str:
        """Look up a code. Use it for codes only, never for names."""
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        effect.progress(f"looking for {code}")
        with lock:
            now[0] -= 1
        return code

    turn = [call("look", code=str(number)) for number in range(6)]
    agent: Any = create_agent(
        planned([turn, "Done."]), [look], limits=Limits(max_parallel=parallel), checkpoints=checkpoints
    )
    config = {"configurable": {"thread_id": "t"}}
    parts = list(agent.stream({"messages": [("user", "Go.")]}, config, stream_mode=modes))
    assert parts
    assert most[0] <= parallel
    assert "succeeded" == agent.get_state(config).values["run"]["status"]


def test_an_agent_within_a_tool_does_not_wait_for_it() -> None:
    """Its calls have places of their own."""

    @tool(effect="read")
    def look(code: str) -> str:
        """Look up a code. Use it for codes only, never for names."""
        return code

    inner: Any = create_agent(planned([call("look", code="A"), "Found A."]), [look])

    @tool(effect="read")
    def delegate(task: str) -> str:
        """Let another agent look. Use it for what needs several steps, not for one code."""
        state = inner.invoke({"messages": [("user", task)]})
        return str(state["messages"][-1].text)

    turns = [call("delegate", task="Find A."), "Done."]
    agent: Any = create_agent(planned(turns), [delegate], limits=Limits(max_parallel=1))
    parts = list(agent.stream({"messages": [("user", "Go.")]}, stream_mode=["custom", "values"]))
    assert ("Found A.", "Done.") == tuple(message.text for message in parts[-1][1]["messages"][-2:])
