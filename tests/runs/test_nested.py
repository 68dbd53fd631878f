"""Graphs and agents in the body of a tool: they get their answers, and their runs are not taken for the one around."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AnyMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolRuntime
from langgraph.types import interrupt
from pydantic import BaseModel
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from typing_extensions import TypedDict

from loopwright import Agent, Budget, Checkpoints, Effect, SyncRuns, allow, approve, create_agent, respond, tool
from loopwright.testing import ScriptedModel, call
from loopwright.tools import Tool


class Words(TypedDict):
    """The state of a plain graph."""

    said: str


class Survey:
    """A plain LangGraph graph that asks two things, and notes which of its nodes ran."""

    def __init__(self, *, at_once: bool) -> None:
        """Ask one after the other, or both at once."""
        self.ran: list[str] = []
        graph: Any = StateGraph(Words)
        for name in ("first", "second"):
            graph.add_node(name, self._asker(name))
        graph.add_edge(START, "first")
        graph.add_edge(START if at_once else "first", "second")
        graph.add_edge("second", END)
        self.graph: Any = graph.compile()

    def _asker(self, name: str) -> Callable[[Words], dict[str, str]]:
        def ask_(state: Words) -> dict[str, str]:
            self.ran.append(name)
            return {"said": f"{state['said']} {interrupt(f'the {name}?')}"}

        return ask_

    def tool(self) -> Tool:
        """Build the tool that runs it."""

        @tool(effect="write")
        def survey(topic: str) -> str:
            """Ask people about a topic. Use it when nobody knows."""
            return str(self.graph.invoke({"said": topic})["said"])

        return survey


SURVEYED = [call("survey", topic="on:"), "Done."]


@pytest.mark.parametrize("door", DOORS)
def test_a_graph_in_a_tool_gets_its_answers(checkpoints: Checkpoints, door: DoorName) -> None:
    """Each is asked once, in order; the graph begins anew for each, and the tool is one effect."""
    survey = Survey(at_once=False)
    agent = create_agent(planned(SURVEYED), [survey.tool()], permissions=[allow("survey")])
    desk = Desk(agent, checkpoints, door)
    result, asked = desk.run(), list[Any]()
    for answer in ("one", "two"):
        asked.append(result.approvals[0].payload["value"])
        result = desk.answer(result, respond(answer))
    assert (["the first?", "the second?"], "succeeded") == (asked, result.status)
    assert ["on: one two"] == [entry["observation"] for entry in result.trail]
    assert ["first", "first", "second", "first", "second"] == survey.ran
    assert ["done"] == [row.status for row in checkpoints.ledger.effects.of_run(result.run_id)]


@pytest.mark.parametrize("door", DOORS)
def test_a_graph_that_asks_several_things_at_once_asks_nobody(checkpoints: Checkpoints, door: DoorName) -> None:
    """An answer could be taken for the other question's: the model is told, and the run goes on."""
    agent = create_agent(planned(SURVEYED), [Survey(at_once=True).tool()], permissions=[allow("survey")])
    result = Desk(agent, checkpoints, door).run()
    assert ("succeeded", "error") == (result.status, result.trail[0]["outcome"])
    assert "it asks several things at once" in result.trail[0]["observation"]


class Boss(BaseModel):
    """A context that both agents know."""

    name: str


def pay_as_told(messages: list[AnyMessage]) -> Any:
    """Pay the number that is the task, and say what came of it."""
    last = messages[-1]
    return call("pay", number=int(last.text)) if last.type == "human" else f"inner: {last.text}"


class Office:
    """An agent whose tool asks another agent, which pays."""

    def __init__(self, **options: Any) -> None:
        """Take what else the inner agent is built with."""
        self.paid: list[str] = []

        @tool(effect="write")
        def pay(number: int, runtime: ToolRuntime[Boss, Any]) -> str:
            """Pay a bill, by its number. Use it for open bills."""
            self.paid.append(f"{number} for {runtime.context.name}")
            return f"paid {number}"

        model = ScriptedModel([pay_as_told] * 20)
        given: dict[str, Any] = {"permissions": [allow("pay")], **options}
        self.inner = create_agent(model, [pay], name="inner", context_schema=Boss, **given)

    def part(self, *, is_node: bool) -> Any:
        """Return the inner agent: itself, or as a node of a plain graph."""
        if not is_node:
            return self.inner
        graph: Any = StateGraph(MessagesState)
        graph.add_node("inner", self.inner)
        graph.add_edge(START, "inner")
        return graph.compile()

    def outer(self, delegate: Tool, *turns: Any, **options: Any) -> Agent:
        """Build the agent around it."""
        return create_agent(
            planned([*turns, "Done."]), [delegate], permissions=[allow("delegate")], context_schema=Boss, **options
        )


TASKS = [call("delegate", number=number) for number in ("1", "2", "1")]


@pytest.mark.parametrize(("turns", "door"), [(TASKS, "sync"), ([TASKS], "async")], ids=["in turn", "at once"])
@pytest.mark.parametrize("how", ["called", "handed on", "node"])
def test_an_agent_in_a_tool_has_runs_of_its_own(  # noqa: PLR0917 -- a table and its fixtures
    checkpoints: Checkpoints,
    door: DoorName,
    turns: list[Any],
    how: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each call of the tool is another run: none is answered with what an earlier one did. They share the context."""
    monkeypatch.chdir(tmp_path)
    office = Office()

    @tool(effect="write")
    async def delegate(number: str, runtime: ToolRuntime[Boss, Any]) -> str:
        """Have a bill paid, by its number. Use it for open bills."""
        config: RunnableConfig | None = runtime.config if how == "handed on" else None
        state = await office.part(is_node=how == "node").ainvoke({"messages": [("user", number)]}, config)
        return str(state["messages"][-1].text)

    result = Desk(office.outer(delegate, *turns), checkpoints, door).run(context={"name": "Ana"})
    assert ["1 for Ana", "1 for Ana", "2 for Ana"] == sorted(office.paid)
    assert ["inner: paid 1", "inner: paid 2", "inner: paid 1"] == [entry["observation"] for entry in result.trail]
    assert [result.run_id] == [row.id for row in checkpoints.ledger.runs.list()]
    assert [] == [*tmp_path.iterdir()]


@pytest.mark.parametrize("is_node", [False, True])
def test_an_agent_in_a_tool_has_nobody_to_ask(checkpoints: Checkpoints, *, is_node: bool) -> None:
    """The saver around it is not its own; its labels are those of the run around it.

    A graph around it, within the tool, begins anew for each answer: one that was given about a call would be taken for
    whatever the inner model asks for then.
    """
    budget = Budget(name="office", by="tenant", max_tokens=1_000_000)
    office = Office(permissions=[], budgets=[budget])

    @tool(effect="write")
    def delegate(number: str) -> str:
        """Have a bill paid, by its number. Use it for open bills."""
        state = office.part(is_node=is_node).invoke({"messages": [("user", number)]})
        return str(state["messages"][-1].text)

    agent = office.outer(delegate, TASKS[0])
    result = Desk(agent, checkpoints).run(context={"name": "Ana"}, labels={"tenant": "acme"})
    assert ("succeeded", ()) == (result.status, result.approvals)
    assert result.trail[0]["observation"].endswith("a run without a checkpointer has nobody to ask")
    assert [] == office.paid


def test_an_agent_with_a_saver_of_its_own_keeps_its_thread(checkpoints: Checkpoints) -> None:
    """What was said to it in one call of a tool is there in the next one, and none of it in the thread around.

    By LangGraph's rule a graph that is called in a node gets the saver around it, and a place there.
    """
    office = Office(checkpoints=checkpoints)
    place: RunnableConfig = {"configurable": {"thread_id": "the payer's"}}

    @tool(effect="write")
    def delegate(number: str) -> str:
        """Have a bill paid, by its number. Use it for open bills."""
        inner: Any = office.inner
        inner.invoke({"messages": [("user", number)]}, place)
        return str(len(inner.get_state(place).values["messages"]))

    result = Desk(office.outer(delegate, *TASKS[:2]), checkpoints).run(context={"name": "Ana"})
    assert ["4", "8"] == [entry["observation"] for entry in result.trail]
    assert ["1 for Ana", "2 for Ana"] == office.paid
    assert {"t", "the payer's"} == {row.thread_id for row in checkpoints.ledger.runs.list()}


@pytest.mark.parametrize("door", DOORS)
def test_runs_in_a_tool_are_durable(checkpoints: Checkpoints, door: DoorName) -> None:
    """Under the call's key an inner run is found again: it waits in the same inbox, and pays once."""
    office = Office(permissions=[])
    inner = SyncRuns(office.inner, checkpoints, reference="inner")

    @tool(effect="idempotent")
    def delegate(number: str, effect: Effect) -> str:
        """Have a bill paid, by its number. Use it for open bills."""
        result = inner.run(number, thread_id=effect.key, run_id=effect.key, context={"name": "Bo"})
        while result.approvals:
            interrupt(f"waits for approval {result.approvals[0].id}")
            result = inner.wait(result.run_id)
        return result.answer

    desk = Desk(office.outer(delegate, *TASKS[:2]), checkpoints, door)
    result = desk.run(context={"name": "Ana"})
    for paid in (["1 for Bo"], ["1 for Bo", "2 for Bo"]):
        (waiting,) = [asked for asked in inner.approvals() if asked.tool == "pay"]
        assert result.approvals[0].payload["value"].endswith(waiting.id)
        inner.decide(waiting.id, approve(), by="ana")
        result = desk.answer(result, respond("decided"))
        assert paid == office.paid
    assert ["inner: paid 1", "inner: paid 2"] == [entry["observation"] for entry in result.trail]
    assert "succeeded" == result.status
