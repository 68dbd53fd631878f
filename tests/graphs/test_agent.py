"""The agent as a LangGraph graph: drawn, invoked, awaited, streamed, copied."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from tests.world.plans import planned
from tests.world.ring import EDGES
from tests.world.till import Till

from loopwright import Agent, Checkpoints, Limits, allow, create_agent, tool
from loopwright.errors import ApprovalNotFound, ConfigurationError, InvalidDecision, ThreadNotFound
from loopwright.graphs import compile_agent
from loopwright.testing import ScriptedModel, call, check_transcript

TASK = {"messages": [("user", "Pay.")]}
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
PLAN = [[call("look", order_id="A1"), call("look", order_id="A2")], call("pay", order_id="A1", amount=5), "Done."]


def invoke(agent: Agent, given: Any, config: RunnableConfig | None = None) -> dict[str, Any]:
    """Invoke it; LangGraph's own types leave their parameters open."""
    state: dict[str, Any] = agent.invoke(given, config)  # pyright: ignore[reportUnknownMemberType]
    return state


def ainvoke(agent: Agent, given: Any, config: RunnableConfig | None = None) -> dict[str, Any]:
    """Do the same, awaited."""
    state: dict[str, Any] = asyncio.run(agent.ainvoke(given, config))  # pyright: ignore[reportUnknownMemberType]
    return state


def build(till: Till, **options: Any) -> Agent:
    """Build an agent that looks twice, pays and is done."""
    return create_agent(planned(PLAN), [till.look(), till.pay()], **options)


def test_the_drawing_shows_every_edge() -> None:
    """All that can happen is in the picture, the guard's own loop included, and nothing else."""
    drawn = build(Till()).get_graph()
    assert EDGES == {(edge.source, edge.target) for edge in drawn.edges}
    assert "guard -.-> guard;" in drawn.draw_mermaid()


@pytest.mark.parametrize("door", [invoke, ainvoke])
def test_without_a_saver_nobody_can_be_asked(door: Any) -> None:
    """What would ask is denied, and costs nothing; reads run; the run ends and says why."""
    till = Till()
    state = door(build(till), TASK)
    run = state["run"]
    assert ("stopped", "denied") == (run["status"], run["reason"])
    assert (till.paid, sorted(till.looked), state["usage"]["by_tool"]) == ([], ["A1", "A2"], {"look": 2})
    check_transcript(state["messages"])


@pytest.mark.parametrize("door", [invoke, ainvoke])
def test_without_a_saver_what_is_allowed_runs(door: Any) -> None:
    """Effects are claimed in memory."""
    till = Till()
    state = door(build(till, permissions=[allow("pay")]), TASK)
    assert ("succeeded", "Done.") == (state["run"]["status"], state["run"]["answer"])
    assert till.paid == [("A1", 5)]
    check_transcript(state["messages"])


@pytest.mark.parametrize("door", [invoke, ainvoke])
def test_plain_invoke_pauses_and_resumes(checkpoints: Checkpoints, door: Any) -> None:
    """With `checkpoints=` bound: the payload tells what is asked, and a plain answer decides it, by nobody by name."""
    till = Till()
    agent = build(till, checkpoints=checkpoints)
    state = door(agent, TASK, THREAD)
    payload = state["__interrupt__"][0].value
    assert ("tool_approval", "pay", {"order_id": "A1", "amount": 5}) == (
        payload["type"],
        payload["name"],
        payload["args"],
    )
    assert till.paid == []
    state = door(agent, Command(resume={"type": "approve"}), THREAD)
    assert ("succeeded", [("A1", 5)]) == (state["run"]["status"], till.paid)
    asked = checkpoints.ledger.approvals.get(payload["approval_id"])
    assert (asked.decision, asked.decided_by) == ({"type": "approve"}, "anonymous")
    assert ["succeeded"] == [run.status for run in checkpoints.ledger.runs.list()]
    check_transcript(state["messages"])


def test_both_doors_give_the_same(checkpoints: Checkpoints) -> None:
    """Sync and async: the same transcript, trail and counts, down to the ids that are ours."""
    seen: list[Any] = []
    for door, thread in ((invoke, "a"), (ainvoke, "b")):
        agent = build(Till(), checkpoints=checkpoints, permissions=[allow("pay")])
        state = door(agent, TASK, {"configurable": {"thread_id": thread}})
        messages = [(m.type, m.text, getattr(m, "tool_calls", None)) for m in state["messages"]]
        trail = [(e["step"], e["tool"], e["digest"], e["outcome"], e["observation"]) for e in state["trail"]]
        usage = {name: value for name, value in state["usage"].items() if name != "seconds"}
        seen.append((messages, trail, usage, state["run"]["answer"]))
    assert seen[0] == seen[1]


def test_another_saver_can_be_bound() -> None:
    """As LangGraph's server does: the graph has none of its own, and takes what it is given."""
    till = Till()
    agent = build(till)
    assert agent.checkpointer is None  # pyright: ignore[reportUnknownMemberType]  # LangGraph's type is open
    with_saver = agent.copy(update={"checkpointer": InMemorySaver()})
    assert isinstance(with_saver, Agent)


def test_copies_keep_the_specification() -> None:
    """LangGraph rebuilds a graph for `copy` and `with_config`: what was built in must survive that."""
    agent = build(Till(), limits=Limits(max_steps=3))
    for copied in (agent.copy(), agent.with_config(tags=["x"]), agent.with_config({"recursion_limit": 5})):
        assert isinstance(copied, Agent)
        assert agent.spec is copied.spec
        assert invoke(copied, TASK)["usage"]["steps"] == 2


def test_the_limits_strike_before_langgraphs_own() -> None:
    """At any size of limit, and whatever recursion limit the caller gives."""
    till = Till()
    plan = [call("look", order_id=str(number)) for number in range(60)]
    agent = create_agent(planned(plan), [till.look()], limits=Limits(max_steps=50, max_tool_calls=None))
    assert invoke(agent, TASK, {"recursion_limit": 2})["run"]["reason"] == "max_steps"
    assert len(till.looked) == 50


@pytest.mark.parametrize("door", [invoke, ainvoke])
def test_no_more_than_so_many_at_once(door: Any) -> None:
    """`max_parallel` bounds the calls of one turn: two by two they meet, and no third one is ever among them."""
    barrier, inside, most = threading.Barrier(2), threading.Semaphore(2), [0]

    @tool(effect="read")
    def meet(number: int) -> int:
        """Meet another call of this tool."""
        most[0] += not inside.acquire(blocking=False)
        barrier.wait(20)
        inside.release()
        return number

    turn = [call("meet", number=number) for number in range(6)]
    state = door(create_agent(planned([turn, "Done."]), [meet], limits=Limits(max_parallel=2)), TASK)
    assert ("Done.", 0) == (state["run"]["answer"], most[0])
    assert [str(number) for number in range(6)] == [m.text for m in state["messages"] if m.type == "tool"]


def test_a_misspelt_option_is_refused_with_the_one_that_was_meant() -> None:
    """An option that is dropped in silence could be the one that bounds the run."""
    misspelt: dict[str, Any] = {"limit": None}
    with pytest.raises(ConfigurationError, match="create_agent has no option limit; did you mean limits"):
        create_agent("demo", [], **misspelt)


def test_a_checkpointer_of_ones_own_is_refused() -> None:
    """Saver and ledger belong together: the message names the option that takes both."""
    with pytest.raises(ConfigurationError, match="checkpoints="):
        create_agent(ScriptedModel([]), [], checkpointer=InMemorySaver())


def test_resuming_what_is_not_there(checkpoints: Checkpoints) -> None:
    """An unknown thread, a finished one, and no answer at all: three errors, and no new checkpoint."""
    till = Till()
    agent = build(till, checkpoints=checkpoints)
    with pytest.raises(ThreadNotFound):
        invoke(agent, Command(resume={"type": "approve"}), THREAD)
    with pytest.raises(ThreadNotFound):
        invoke(agent, None, THREAD)
    invoke(agent, TASK, THREAD)
    nothings: list[Any] = [None, {}]
    for nothing in nothings:
        with pytest.raises(InvalidDecision):
            invoke(agent, Command(resume=nothing), THREAD)
    invoke(agent, Command(resume={"type": "reject", "message": "no"}), THREAD)
    before = len([*agent.get_state_history(THREAD)])
    for door in (invoke, ainvoke):
        with pytest.raises(ApprovalNotFound, match="waits for no answer"):
            door(agent, Command(resume={"type": "approve"}), THREAD)
    assert (till.paid, before) == ([], len([*agent.get_state_history(THREAD)]))


def test_a_thread_can_be_bound_beforehand(checkpoints: Checkpoints) -> None:
    """By `with_config`, as LangGraph allows it; resuming works all the same."""
    till = Till()
    agent = build(till, checkpoints=checkpoints).with_config(configurable={"thread_id": "t"})
    assert isinstance(agent, Agent)
    invoke(agent, TASK)
    assert invoke(agent, Command(resume={"type": "approve"}))["run"]["status"] == "succeeded"


def test_streaming_shows_each_node() -> None:
    """In the order in which they run."""
    agent = compile_agent(build(Till(), permissions=[allow("pay")]).spec, None)
    nodes = [node for update in agent.stream(TASK, stream_mode="updates") for node in update]
    step = ["reason", "guard", "act", "observe"]
    assert ["observe", *step[:3], *step[2:], *step, "reason", "guard"] == nodes
