"""A reader in another process, while a run is between two barriers: at most one step behind, and never wrong."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.doors import DOORS
from tests.world.nursery import Nursery
from tests.world.refund import TASK, THREAD
from tests.world.stores import Store, open_store
from tests.world.tasks import READS, shape

from loopwright import create_agent, open_checkpoints
from loopwright.graphs import compile_agent
from loopwright.testing import ScriptedModel, check_transcript

CONFIG: Any = {"configurable": {"thread_id": THREAD}}


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store that two processes can share."""
    return open_store(request, tmp_path)


def check_seen(values: dict[str, Any], steps: int) -> None:
    """Require a state that the run went through, with these steps or one less: whole, valid, and still running."""
    assert values["run"]["status"] == "running"
    assert values["usage"]["steps"] in (steps - 1, steps)
    assert values["usage"]["steps"] == values["usage"]["model_calls"]
    messages = [*values["messages"]]
    said = [message for message in messages if isinstance(message, AIMessage)]
    assert [one.tool_calls[0]["args"]["number"] for one in said] == [*range(1, values["usage"]["steps"] + 1)]
    if said and messages[-1] is said[-1]:  # asked for, and not yet answered
        messages.pop()
    check_transcript(messages)
    seen = [message.text for message in messages if message.type == "tool"]
    assert seen == [f"seen {number}" for number in range(1, len(seen) + 1)]
    assert seen == [entry["observation"] for entry in values["trail"]]
    assert len(seen) in (len(said), len(said) - 1)


@pytest.mark.parametrize("door", DOORS)
def test_a_reader_is_at_most_one_step_behind(nursery: Nursery, store: Store, door: str) -> None:
    """Read in each call of the model and of a tool, where nothing newer than the last barrier is stored."""
    child = nursery.start("read_in_steps", url=store.url, door=door)
    places: list[str] = []
    with open_checkpoints(store.url) as checkpoints:
        reader: Any = compile_agent(create_agent(ScriptedModel([]), []).spec, checkpoints)
        while (message := child.receive())[0] != "end":
            where, number = message
            places.append(f"{where} {number}")
            values = reader.get_state(CONFIG).values
            if where == "model" and number == 1:  # the task may be on its way
                assert [TASK] == [message.text for message in values["messages"]]
            else:
                check_seen(values, number if where == "tool" else number - 1)
            child.send("go on")
        assert 2 * READS + 1 == len(places)
        assert message[1] == shape(reader.get_state(CONFIG).values)
    child.send("end")
    assert 0 == child.wait()
