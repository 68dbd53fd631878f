"""What is nested without end: told to whoever sent it, and never the end of a run."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.types import Command
from pydantic import BaseModel
from tests.world.plans import planned

from loopwright import SyncRuns, allow, create_agent, edit, open_checkpoints, tool
from loopwright.errors import InvalidDecision
from loopwright.state import is_too_deep
from loopwright.state.plain import MOST_DEPTH
from loopwright.testing import ScriptedModel, call

DEPTHS = [300, 3000]
"""What pydantic gives up at, and what Python does."""


def nested(levels: int) -> Any:
    """Return lists within each other."""
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


class Data(BaseModel):
    """An answer of anything."""

    data: Any


@tool(effect="write")
def keep(data: Any) -> str:
    """Keep some data. Use it for what the customer sends."""
    return f"kept {data!r}"


def test_how_deep_is_too_deep() -> None:
    """Exactly so deep goes; what holds itself, once or twice, does not, and takes no time to find out."""
    endless: list[Any] = []
    endless += [endless, endless]
    assert [False, True, True] == [is_too_deep(one) for one in (nested(MOST_DEPTH), nested(MOST_DEPTH + 1), endless)]
    assert not is_too_deep({"text": "a" * 10_000})


@pytest.mark.parametrize("levels", [120, 300])
def test_arguments(levels: int) -> None:
    """The model reads why its call was not run; so does one that sends them as text, where a list is wanted."""

    @tool(effect="read")
    def count(items: list[Any]) -> int:
        """Count some items. Use it for lists."""
        return len(items)

    calls = [call("keep", data=nested(levels)), call("count", items="[" * 150 + "]" * 150), call("keep", data=2)]
    agent = create_agent(planned([calls, "Done."]), [keep, count], permissions=[allow("keep")])
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Keep it.", thread_id="t")
    said = sorted(entry["observation"].partition(":")[2] or entry["observation"] for entry in result.trail)
    assert [
        " arguments for count are nested too deep",
        " the arguments are nested too deep",
        "kept 2",
    ] == said


@pytest.mark.parametrize("levels", DEPTHS)
@pytest.mark.parametrize("where", ["additional_kwargs", "response_metadata", "content"])
def test_what_a_reply_brings_besides(where: str, levels: int) -> None:
    """It is left out, and the answer counts."""
    deep = {"type": "reasoning", "x": nested(levels)}
    content: Any = [{"type": "text", "text": "Done."}, deep] if where == "content" else "Done."
    reply = AIMessage(content) if where == "content" else AIMessage(content, **{where: deep})
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(create_agent(ScriptedModel([reply]), []), checkpoints).run("Go.", thread_id="t")
    assert ("succeeded", "Done.") == (result.status, result.answer)


@pytest.mark.parametrize("levels", DEPTHS)
def test_an_answer_in_a_form(levels: int) -> None:
    """It is asked for anew."""
    model = ScriptedModel(['{"data": ' + "[" * levels + "]" * levels + "}", '{"data": 1}'])
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(create_agent(model, [], response_format=Data), checkpoints)
        assert Data(data=1) == runs.run("Go.", thread_id="t").output


@pytest.mark.parametrize("levels", DEPTHS)
def test_a_persons_edit(levels: int) -> None:
    """It is refused at once, as an object and over the wire; sent raw, the question stays open and says why."""
    agent = create_agent(planned([call("keep", data=1), "Done."]), [keep])
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        approval = runs.run("Keep it.", thread_id="t").approvals[0].id
        raw: Any = {"type": "edit", "args": {"data": nested(levels)}}
        for decision in (edit(data=nested(levels)), raw):
            with pytest.raises(InvalidDecision, match="nested too deep"):
                runs.decide(approval, decision, by="ana")
        bound: Any = create_agent(planned([call("keep", data=1), "Done."]), [keep], checkpoints=checkpoints)
        config: Any = {"configurable": {"thread_id": "raw"}}
        bound.invoke({"messages": [HumanMessage("Keep it.")]}, config)
        again = bound.invoke(Command(resume=raw), config)
        assert "nested too deep" in str(again["__interrupt__"])
        assert "kept 1" in str(bound.invoke(Command(resume={"type": "approve"}), config)["messages"])
