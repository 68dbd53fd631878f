"""What users may write, as the type checkers see it. Never run: mypy and pyright read it, with the rest."""

from __future__ import annotations

import operator
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, assert_type

from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolRuntime
from langgraph.types import Command
from pydantic import BaseModel
from typing_extensions import TypedDict

from loopwright import (
    Agent,
    AgentState,
    Approval,
    Checkpoints,
    Effect,
    Event,
    Limits,
    Loops,
    Native,
    Person,
    Price,
    ProposedAnswer,
    ProposedCall,
    Receipt,
    Reflect,
    Run,
    RunResult,
    Runs,
    RunStatus,
    StopReason,
    SyncRuns,
    Usage,
    allow,
    annotate,
    aopen_checkpoints,
    approve,
    ask,
    check,
    create_agent,
    deny,
    edit,
    happened,
    not_happened,
    open_checkpoints,
    open_model,
    reject,
    respond,
    tool,
)
from loopwright.state import Happened, NotHappened, Objection, TrailEntry


def look_for(effect: Effect, args: Mapping[str, Any]) -> Happened | NotHappened | None:
    """A verify hook."""
    return happened(effect.key) if args else not_happened()


@tool(effect="write", key="refund:{order_id}", timeout=5, verify=look_for, untrusted=True, hands_over=False)
def issue_refund(order_id: str, amount: int, effect: Effect) -> str:
    """Pay money back for an order."""
    return f"{order_id} {amount} {effect.key}"


@tool
async def look_up(order_id: str) -> dict[str, str]:
    """Look up an order by its code."""
    return {"order_id": order_id}


def small(proposed: ProposedCall) -> bool:
    """A predicate."""
    return bool(proposed.args["amount"] <= 50) and proposed.tool == "issue_refund"


def build(other: BaseTool, checkpoints: Checkpoints) -> Agent:
    """Everything that an agent can be built with."""
    agent = create_agent(
        open_model("openai:gpt-5-mini", temperature=0),
        [issue_refund, look_up, annotate(other, effect="read")],
        system_prompt="You support customers of a shop.",
        limits=Limits(max_steps=8, max_cost=Decimal("0.05"), max_calls_per_tool={"issue_refund": 1}),
        permissions=[
            allow("issue_refund", when=small),
            ask("effect:write", expires_in=60, remind_after=30, on_expiry="reject"),
            ask("issue_refund", role="lead", number=2, not_requester=True, decisions=["approve", "reject"]),
            deny("look_up"),
        ],
        loops=Loops(repeats=4, no_news=None, then="ask", allow={"look_up": 20}),
        price=Price(Decimal(1), Decimal(2), cached=Decimal("0.5")),
        checkpoints=checkpoints,
        name="support",
    )
    assert_type(agent, Agent)
    print(check(agent))  # noqa: T201 -- what it is for
    return agent


def use(agent: Agent) -> None:
    """The sync face."""
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        result = runs.run("Refund A100.", thread_id=7)
        assert_type(result, RunResult)
        assert_type(result.status, RunStatus)
        assert_type(result.stop_reason, StopReason | None)
        assert_type(result.usage, Usage)
        assert_type(result.usage.cost, Decimal)
        assert_type(result.trail, tuple[TrailEntry, ...])
        assert_type(result.approvals, tuple[Approval, ...])
        waiting = result.approvals[0]
        for decision in (approve(), edit(amount=40), edit({"amount": 1}, tool="x"), reject("no"), respond("yes")):
            assert_type(runs.decide(waiting.id, decision, by="ana"), Receipt)
        assert_type(runs.decide(waiting.id, {"type": "approve"}, by="ana"), Receipt)
        assert_type(runs.decide(waiting.id, approve(), by=Person("ana", roles=["lead"])).votes, tuple[str, ...])
        assert_type(runs.resolve(waiting.effect_id, not_happened(), by="ana"), Receipt)
        assert_type(runs.cancel(result.run_id, by="ana"), Receipt)
        assert_type(runs.start("Hi.", thread_id="t", run_id="r", requester="customer-7"), Run)
        found: Sequence[Run] = runs.list(status=RunStatus.WAITING)
        recovered: Sequence[RunResult] = [*runs.recover(), *runs.expire()]
        events: Iterator[Event] = runs.stream("Hi.", thread_id="t", tokens=True, labels={"tenant": "acme"})
        assert_type(runs.extend("r", by="ana", steps=2, cost=Decimal(1), key="k"), Receipt)
        runs.start("Hi.", thread_id="t", run_idd="r")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        runs.run("Hi.", thread_id="t", labels="acme")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        runs.extend("r", by="ana", step=2)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
        print(found, recovered, events)  # noqa: T201 -- so that they are used


class AsModel(BaseModel):
    """A form of answers."""

    order_id: str


class AsDict(TypedDict):
    """Another one."""

    order_id: str


@dataclass
class AsData:
    """And another."""

    order_id: str


def is_known(answer: ProposedAnswer) -> str | None:
    """A check."""
    return None if answer.trail else f"nothing was looked up for {answer.task}"


async def is_short(answer: ProposedAnswer) -> bool:
    """An async one."""
    return len(answer.text) < 100


def ask_for_forms() -> None:
    """All that a final answer can be asked to be."""
    for form in (AsModel, AsDict, AsData, {"type": "object"}, Native(AsModel, strict=True)):
        agent = create_agent("demo", [], response_format=form, verify=[is_known, is_short], reflect=Reflect(times=2))
        with open_checkpoints("memory:") as checkpoints:
            result = SyncRuns(agent, checkpoints).run("Refund A100.", thread_id="t")
            assert_type(result.objections, tuple[Objection, ...])
    create_agent("demo", [], verify=is_known, answer_retries=3, verify_seconds=5)


async def use_async(agent: Agent) -> None:
    """The async face."""
    async with await aopen_checkpoints("sqlite:///runs.db") as checkpoints, Runs(agent, checkpoints) as runs:
        result = await runs.run("Refund A100.", thread_id="t")
        assert_type(result, RunResult)
        assert_type(await runs.decide(result.approvals[0].id, approve(), by="ana"), Receipt)
        assert_type(await runs.wait(result.run_id), RunResult)
        events: AsyncIterator[Event] = runs.stream("Hi.", thread_id="t")
        async for event in events:
            assert_type(event, Event)
        await runs.drain()


async def remind(asked: Approval) -> None:
    """A hook that is awaited."""
    print(asked.needs["roles"], asked.votes, asked.missing)  # noqa: T201 -- so that they are used


def remind_all(agent: Agent, checkpoints: Checkpoints) -> tuple[Runs, SyncRuns]:
    """Runs that tell somebody of what waits for long."""
    return Runs(agent, checkpoints, on_reminder=remind), SyncRuns(agent, checkpoints, on_reminder=print)


class Shopping(AgentState):
    """A state with channels of its own."""

    basket: Annotated[list[str], operator.add]


class Clerk(BaseModel):
    """A context."""

    tier: int


@tool(effect="write")
def put(item: str, runtime: ToolRuntime[Clerk, Shopping]) -> Command[Any]:
    """Put an item into the basket."""
    assert_type(runtime.state["basket"], list[str])
    return Command(update={"basket": [item] * runtime.context.tier})


def is_senior(proposed: ProposedCall) -> bool:
    """A predicate over context and channels."""
    return bool(proposed.context.tier > len(proposed.state["basket"]))


def bring_back(stored: Mapping[str, Any], run: Run) -> Mapping[str, Any]:
    """A hook of the agent's own."""
    return {**stored, "tier": len(run.requester)}


def keep_shopping(checkpoints: Checkpoints) -> None:
    """Channels and contexts."""
    agent = create_agent(
        "demo",
        [put],
        permissions=[allow("put", when=is_senior)],
        state_schema=Shopping,
        context_schema=Clerk,
        restore_context=bring_back,
    )
    result = SyncRuns(agent, checkpoints).run("Hi.", thread_id="t", state={"basket": ["fig"]}, context=Clerk(tier=1))
    assert_type(result.state, Mapping[str, Any])
