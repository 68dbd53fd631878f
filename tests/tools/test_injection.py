"""What a tool can reach besides its arguments, and how it tells how far it is."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, StructuredTool
from langchain_core.tools import tool as langchain_tool
from langgraph.prebuilt import InjectedState, InjectedStore, ToolRuntime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned

from loopwright import Checkpoints, Effect, Event, EventKind, Runs, SyncRuns, allow, annotate, create_agent, tool
from loopwright.errors import ConfigurationError
from loopwright.testing import call
from loopwright.tools import Surroundings, contract_of

Messages = Annotated[list[BaseMessage], InjectedState("messages")]


def look(  # noqa: PLR0917 -- all that there is
    code: str,
    messages: Messages,
    state: Annotated[dict[str, Any], InjectedState],
    store: Annotated[BaseStore, InjectedStore()],
    call_id: Annotated[str, InjectedToolCallId],
    runtime: ToolRuntime[None, dict[str, Any]],
) -> str:
    """Look at an order, by its code, and at all there is to see."""
    store.put(("seen",), code, {"by": call_id})
    task = messages[0].text
    messages.clear()  # a copy: nothing comes of it
    state["run"]["status"] = "failed"
    assert runtime.store is store
    return f"{task} {state['run']['task']} {call_id == runtime.tool_call_id}"


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("of", ["ours", "langchain"])
def test_what_is_injected(checkpoints: Checkpoints, of: str, door: DoorName) -> None:
    """State as copies, the store, the call's id and all of LangGraph's runtime; the model sees none of it."""
    built = tool(effect="read")(look) if of == "ours" else annotate(langchain_tool(look), effect="read")
    assert ["code"] == [*contract_of(built).schema.model_fields]
    store = InMemoryStore()
    agent = create_agent(planned([call("look", call_id="c1", code="A1"), "Done."]), [built], store=store)
    result = Desk(agent, checkpoints, door).run("Look.")
    assert ("succeeded", "Look. Look. True") == (result.status, result.trail[0]["observation"])
    found = store.get(("seen",), "A1")
    assert found is not None
    assert {"by": "c1"} == found.value


def test_without_a_store_the_model_is_told(checkpoints: Checkpoints) -> None:
    """And whoever builds the agent reads how to give one."""

    @tool(effect="read")
    def note(store: Annotated[BaseStore, InjectedStore()]) -> str:
        """Note something."""
        return str(store)

    result = Desk(create_agent(planned([call("note"), "Done."]), [note]), checkpoints).run()
    assert "create_agent(…, store=…)" in result.trail[0]["observation"]


def test_what_nobody_would_fill() -> None:
    """A parameter that only LangChain's own caller could give fails when the tool is built."""

    def look(code: str, secret: Annotated[str, InjectedToolArg]) -> str:
        """Look at an order, by its code."""
        return code + secret

    with pytest.raises(ConfigurationError, match="nobody would fill 'secret'"):
        tool(look)
    wrong: Any = "nowhere"
    with pytest.raises(ConfigurationError, match="store is"):
        create_agent("demo", [], store=wrong)


@tool(effect="read")
def count(effect: Effect) -> str:
    """Count to three, which takes long."""
    for number in (1, 2, 3):
        effect.progress(f"{number} of 3")
    return "counted"


@pytest.mark.parametrize("door", DOORS)
def test_progress_is_heard(checkpoints: Checkpoints, door: DoorName) -> None:
    """Whoever follows the run hears each word, before the result; nothing of it is stored."""
    agent = create_agent(planned([call("count", call_id="c1"), "Done."]), [count])

    async def listen() -> list[Event]:
        return [event async for event in Runs(agent, checkpoints).stream("Count.", thread_id="t")]

    events = (
        asyncio.run(listen()) if door == "async" else [*SyncRuns(agent, checkpoints).stream("Count.", thread_id="t")]
    )
    kinds = [event.kind for event in events]
    assert kinds.index(EventKind.PROGRESS) < kinds.index(EventKind.OBSERVED)
    said = [event.progress for event in events if event.progress]
    assert [("count", "c1", f"{number} of 3") for number in (1, 2, 3)] == [(p.tool, p.call_id, p.text) for p in said]
    assert "of 3" not in str(events[-1].result)


def test_nobody_has_to_listen() -> None:
    """A call that was given up may say what it does when the run, and its loop, are long over: its work goes on."""

    def closed(_text: str) -> None:
        raise RuntimeError("Event loop is closed")

    Effect(around=Surroundings(report=closed)).progress("1 of 3")


def test_what_only_a_caller_could_fill(checkpoints: Checkpoints) -> None:
    """Also where a schema lets in what it does not describe, the model cannot fill it."""
    paid: list[str] = []

    def pay(to: str, account: Annotated[str, InjectedToolArg] = "the user's") -> str:
        paid.append(f"{to} from {account}")
        return "paid"

    open_: Any = {"type": "object", "properties": {"to": {"type": "string"}}, "additionalProperties": True}
    plain = StructuredTool.from_function(pay, name="pay", description="Pay somebody.", args_schema=open_)
    turns = [call("pay", to="ana", account="eve's"), call("pay", to="ana"), "Done."]
    agent = create_agent(planned(turns), [annotate(plain, effect="write")], permissions=[allow("pay")])
    result = Desk(agent, checkpoints).run("Pay ana.")
    assert ["ana from the user's"] == paid
    assert "account is for the caller to fill" in result.trail[0]["observation"]
