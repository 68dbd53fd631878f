"""What a state schema may declare: channels that can be kept, and none that is ours; as a table."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Any, NotRequired, cast

import pytest
from langchain.agents import AgentState as ForeignState
from langchain.agents.middleware.types import OmitFromInput
from langchain_core.messages import AnyMessage
from langchain_core.tools import StructuredTool
from langgraph.channels import EphemeralValue, LastValue
from langgraph.graph.message import add_messages
from langgraph.prebuilt import InjectedState
from pydantic import BaseModel, SecretStr
from typing_extensions import TypedDict

from loopwright import AgentState, Secret, create_agent, tool
from loopwright.errors import ConfigurationError
from loopwright.nodes import open_channels
from loopwright.testing import ScriptedModel


class Alone(TypedDict):
    """Extends nothing."""

    basket: list[str]


class Foreign(ForeignState[Any]):
    """Extends LangChain's."""

    basket: list[str]


class Model(BaseModel):
    """Is no `TypedDict`."""

    basket: list[str]


async def later(before: list[str], update: list[str]) -> list[str]:
    """Add, some time."""
    return [*before, *update]


def one(update: list[str]) -> list[str]:
    """Take one argument."""
    return update


def state(kind: Any, name: str = "basket") -> Any:
    """Return a schema with one channel of this type."""
    build = cast("Callable[..., Any]", TypedDict)
    return build("Mine", {**AgentState.__annotations__, name: kind})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (dict, "give a TypedDict that extends loopwright.AgentState"),
        (Model, "give a TypedDict that extends loopwright.AgentState"),
        (3, "state_schema is 3"),
        (Alone, "lacks messages, run, .*; let it extend loopwright.AgentState: class Alone\\(AgentState\\)"),
        (Foreign, "lacks run, .*class Foreign\\(AgentState\\)"),
        (
            state(Annotated[list[AnyMessage], add_messages], "messages"),
            "declares messages anew",
        ),
        (state(list[str], "guard"), "'guard' has a name that LangGraph needs"),
        (state(list[str], "__start__"), "'__start__' has a name that LangGraph needs"),
        (state(Annotated[list[str], one]), "its reducer one cannot be called as reducer\\(before, update\\)"),
        (state(Annotated[list[str], later]), "its reducer later is async"),
        (state(Annotated[list[str], operator.add, max]), "has 2 reducers"),
        (state(Annotated[list[str], EphemeralValue]), "EphemeralValue is a channel of LangGraph's own"),
        (state(Annotated[list[str], LastValue(list)]), "LastValue is a channel of LangGraph's own"),
        (state(Annotated[set[str], operator.add]), "holds a set, and the state is plain data"),
        (state(NotRequired[Annotated[bytes, operator.add]]), "holds a bytes"),
        (state(Annotated[str, Secret]), "marked as secret"),
        (state(SecretStr), "marked as secret"),
        (state(dict[str, SecretStr]), "marked as secret"),
        (state("Gone"), "the type 'Gone' is not known"),
    ],
)
def test_what_could_not_be_kept_is_refused_when_the_agent_is_built(schema: Any, said: str) -> None:
    """The message says which channel, what is wrong with it, and the way out."""
    with pytest.raises(ConfigurationError, match=said) as refused:
        create_agent(ScriptedModel([]), [], state_schema=schema)
    assert "state_schema" == refused.value.facts["option"]


class Mine(AgentState):
    """Channels of all kinds that are taken."""

    basket: NotRequired[Annotated[list[str], operator.add]]
    best: Annotated[int, max]
    spent: Annotated[int, operator.add, OmitFromInput]
    last: Annotated[str | None, "a note"]
    note: Any


def test_what_a_schema_declares() -> None:
    """With reducers and without; one that callers may not give stands in no input."""
    channels = open_channels(Mine)
    assert ("basket", "best", "spent", "last", "note") == channels.names
    assert ["basket", "best", "spent"] == [name for name, one in channels.by_name.items() if one.reducer]
    agent: Any = create_agent(ScriptedModel(["Fine."]), [], state_schema=Mine)
    shown = agent.get_input_jsonschema()
    assert ["messages", "basket", "best", "last", "note"] == [*shown["properties"]]
    assert {"type": "array", "items": {"type": "string"}} == {
        name: shown["properties"]["basket"][name] for name in ("type", "items")
    }
    assert ["messages"] == shown["required"]
    out = agent.invoke({"messages": [("user", "Hi.")], "spent": 9, "best": 4, "last": "x"})
    assert ([], 4, 0, "x") == (out["basket"], out["best"], out["spent"], out["last"])


def test_a_tool_that_wants_a_channel_which_there_is_not() -> None:
    """Misspelt, it fails when the agent is built; as a tool of ours, and as LangChain's."""

    def look(code: str, basket: Annotated[list[str], InjectedState("baskett")]) -> str:
        """Look for a code in the basket. Use it for codes."""
        return f"{code} {basket}"

    for made in (tool(look), StructuredTool.from_function(look)):
        with pytest.raises(ConfigurationError, match=r"'look' wants the state channel 'baskett'.*trail, basket, best"):
            create_agent(ScriptedModel([]), [made], state_schema=Mine)


def test_without_a_schema_nothing_changes() -> None:
    """The graph is the one that it always was."""
    agent = create_agent(ScriptedModel([]), [])
    assert AgentState is agent.spec.open_channels.state_schema
    assert () == agent.spec.open_channels.names == open_channels(AgentState).names
