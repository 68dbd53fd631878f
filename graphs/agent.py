"""The ring: observe, reason, guard, act, as one LangGraph state graph.

         ┌─────────────── within limits ─────────────┐
         │                                           ▼
START ──► observe ──── a limit is met ────► guard ◄── reason      a proposal: calls, or a final answer
         ▲                               │ │ ▲
         │                               │ └─┘                ask a person, then judge the answer
         └── act ◄─── allowed: one Send ─┤
                      task a call        └──► END             finished, stopped, refused, cancelled
"""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# LangGraph's own overloads mention types that it leaves without parameters.
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.base import BaseStore
from langgraph.types import StateSnapshot

from loopwright.checkpoints import Checkpoints, Ledger, Saver
from loopwright.models import Native, Price
from loopwright.nodes import AgentSpec, Ledgers, Node, RestoreContext, act, guard, observe, reason, reopen
from loopwright.policy import Check, Compaction, Loops, Reflect, Rule, build_answer_rules
from loopwright.state import AgentInput, AgentState, Budget, Limits, Rate, refuse_unknown
from loopwright.tools import Caps, Retry

from .alone import abegun, alone, begun, config_alone, context_around
from .building import build_spec, change_spec, check_checkpoints
from .calling import (
    check_labels,
    checked_config,
    checked_resume,
    is_resume,
    kept_alive,
    of_own_call,
    own_saver,
    with_context,
    with_room_to_listen,
)
from .candidates import ModelOption
from .routes import Route, Routes


def _durable(options: dict[str, Any]) -> dict[str, Any]:
    # LangGraph's default stores a checkpoint while the next step runs already: a crash would repeat that step.
    return {**options, "durability": "sync"}


DEFAULT_NAME = "agent"
ResponseForm = type[Any] | Mapping[str, Any] | Native
"""What `response_format` takes. `Any`: each agent has a type of its own."""
DEFAULT_COMPACTION = Compaction()


def build_ring(spec: AgentSpec, ledgers: Ledgers) -> StateGraph[AgentState, Any, AgentInput, AgentState]:
    """Assemble the ring: this function is the picture above."""
    routes = Routes(spec.limits, spec.wrap_up, spec.serial_key)
    context = spec.context.schema if spec.context is not None else None
    ring = StateGraph(spec.open_channels.state_schema, context, input_schema=spec.open_channels.input_schema)

    ring.add_node("observe", Node("observe", observe, spec, ledgers, on_branch=reopen))
    ring.add_node("guard", Node("guard", guard, spec, ledgers, on_branch=reopen))
    ring.add_node("reason", Node("reason", reason, spec, ledgers, on_branch=reopen))
    ring.add_node("act", Node("act", act, spec, ledgers))

    ring.add_edge(START, "observe")
    ring.add_conditional_edges("observe", Route(routes.after_observe), ["reason", "guard"])
    ring.add_edge("reason", "guard")
    ring.add_conditional_edges("guard", Route(routes.after_guard), ["guard", "act", "observe", "reason", END])
    ring.add_edge("act", "observe")
    return ring


class Agent(CompiledStateGraph[AgentState, Any, AgentInput, AgentState]):
    """A compiled ring with its frozen specification; a LangGraph graph like any other.

    Attributes:
        spec: What the agent is made of.
        ledger: The one that goes with its checkpointer; None where it has none of ours.
    """

    def __init__(self, *, spec: AgentSpec, ledger: Ledger | None = None, **parts: Any) -> None:
        """Take the parts of a compiled graph; `create_agent` is the way to build one."""
        # A keyword of `__init__`: LangGraph's `copy` rebuilds from `__dict__`, and would lose what was set later.
        super().__init__(**parts)
        self.spec = spec
        self.ledger = ledger

    def get_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Return a thread's state, from the agent's own saver: also within another agent's tool."""
        own = config_alone(config)
        with nullcontext() if own is None else alone():
            return super().get_state(own or config, subgraphs=subgraphs)

    async def aget_state(self, config: RunnableConfig, *, subgraphs: bool = False) -> StateSnapshot:
        """Do the same, awaited."""
        own = config_alone(config)
        with nullcontext() if own is None else alone():
            return await super().aget_state(own or config, subgraphs=subgraphs)

    def __repr__(self) -> str:
        """Name the agent, its model and its tools."""
        tools = ", ".join(tool.name for tool in self.spec.offered)
        return f"<Agent {self.spec.name!r}: {self.spec.model_name}, tools: {tools or 'none'}>"

    def stream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> Iterator[Any]:  # noqa: A002 -- LangGraph's name
        """Stream as LangGraph does, within the agent's limits; each checkpoint is stored before the next step."""
        own = config_alone(config)
        options = options if own is None else context_around(self.spec, options)
        checked = checked_config(self.spec.limits, own or config, self.config)
        checked = with_room_to_listen(self.spec.limits, checked, options, self.stream_mode)
        given, options = self.spec.open_channels.plain_input(input), with_context(self.spec, options)
        if is_resume(input):
            checked = checked_resume(self, input, checked)
        else:
            check_labels(self.spec.budgets, checked)
        saver = own_saver(self)
        if saver is None:
            yield from begun(super().stream(given, checked, **options), is_alone=own is not None)
            return
        checked = of_own_call(checked)
        try:
            with kept_alive(self.ledger, checked):
                yield from begun(super().stream(given, checked, **_durable(options)), is_alone=own is not None)
        finally:
            saver.flush(checked)

    async def astream(self, input: Any, config: RunnableConfig | None = None, **options: Any) -> AsyncIterator[Any]:  # noqa: A002 -- LangGraph's name
        """Do the same, awaited."""
        own = config_alone(config)
        options = options if own is None else context_around(self.spec, options)
        checked = checked_config(self.spec.limits, own or config, self.config)
        given, options = self.spec.open_channels.plain_input(input), with_context(self.spec, options)
        if is_resume(input):
            checked = await asyncio.to_thread(checked_resume, self, input, checked)
        else:
            check_labels(self.spec.budgets, checked)
        saver = own_saver(self)
        if saver is None:
            async for part in abegun(super().astream(given, checked, **options), is_alone=own is not None):
                yield part
            return
        checked = of_own_call(checked)
        try:
            with kept_alive(self.ledger, checked):
                async for part in abegun(
                    super().astream(given, checked, **_durable(options)), is_alone=own is not None
                ):
                    yield part
        finally:
            await saver.aflush(checked)


def create_agent(
    model: ModelOption,
    tools: Sequence[BaseTool],
    *,
    system_prompt: str = "",
    limits: Limits | None = None,
    loops: Loops | None = None,
    permissions: Sequence[Rule] = (),
    price: Price | Mapping[str, Price] | None = None,
    retry: Retry | None = None,
    model_timeout: float | None = None,
    budgets: Sequence[Budget] = (),
    rate: Rate | None = None,
    wrap_up: bool = False,
    verify: Check | Sequence[Check] = (),
    response_format: ResponseForm | None = None,
    reflect: Reflect | None = None,
    answer_retries: int = 2,
    verify_seconds: float = 30.0,
    compaction: Compaction | None = DEFAULT_COMPACTION,
    checkpoints: Checkpoints | None = None,
    store: BaseStore | None = None,
    context_schema: type[Any] | None = None,
    restore_context: RestoreContext | None = None,
    state_schema: type[Any] | None = None,
    name: str = DEFAULT_NAME,
    max_result_characters: int = 20_000,
    max_turn_characters: int = 100_000,
    **unknown: Any,
) -> Agent:
    """Build an agent.

    Args:
        model: `"openai:gpt-5-mini"`, `"demo"`, or any LangChain chat model that can bind tools. Of several, the first
            is asked; the others, in this order, where it cannot reply and another may. Each attempt is within the
            limits, and is charged.
        tools: Made by `@tool` or `annotate`; a plain LangChain tool counts as a `write`.
        system_prompt: Sent before the transcript at each model call; never stored.
        limits: The bounds of each run; finite by default.
        loops: When a model that goes round in circles is told, held back and stopped; on by default.
        permissions: Rules built with `allow`, `ask` and `deny`. Without a matching rule a `read` is allowed, and all
            else asks a person.
        price: Of the model, where `genai-prices` does not list it, or another price was agreed; of several models, a
            mapping by their names.
        retry: How often a model is asked in one step where the same request can succeed a moment later: connections
            that fail, time-outs, rate limits, servers in trouble. By default 3 times, the second after 1 s.
        model_timeout: Seconds that one attempt at a model may take; None: all that are left of `max_seconds`.
        budgets: What its runs may spend together with others over one ledger, such as those of a tenant a day.
        rate: How often its model may be called, over all that call it by this name over one ledger.
        wrap_up: A run that meets a limit says in one last call, without tools, what it found. That call is within the
            limits: a step, and the tokens, money and time for it are kept from the start.
        verify: Checks of the final answer, sync or async: each is called with a `ProposedAnswer`, a copy, and returns
            None or True where nothing is wrong, or a text that says what is. One that raises, or takes too long, has
            not passed. A check may be called again for the same answer, after a crash.
        response_format: The form of the final answer: a pydantic model, a TypedDict, a dataclass, or a JSON schema of
            an object. The model is told, and its text is read; `Native(…)` has the provider enforce it besides.
            `RunResult.output` is the typed value.
        reflect: Lets the model look back at an answer that passed, without tools; what it finds missing goes back to
            it as work to do. Each look is a step.
        answer_retries: How often a wrong answer goes back to the model with what was wrong, before the run ends
            `unverified`. Each is a step, within all limits.
        verify_seconds: The longest that one check may take; never longer than what is left of `max_seconds`.
        compaction: When a transcript that outgrows the model's context window is compacted, and to what; on by default.
            None sends every transcript whole, and leaves it to the provider to refuse one that is too long.
        checkpoints: Binds saver and ledger for plain `invoke`. `Runs` brings its own, and LangGraph's server too: an
            agent exported for Studio has none.
        store: LangGraph's store, which tools reach by `ToolRuntime` and `InjectedStore`; it is yours to set up and
            close, and what is in it outlives threads.
        context_schema: The type of what a caller gives a run besides its message, as `context=`: who the user is, and
            what tools need on their behalf. A pydantic model, a dataclass or a `TypedDict`. Tools reach it by
            `ToolRuntime.context`; the model never sees it, and fields that are secret (`SecretStr`, or
            `Annotated[…, Secret]`) are never stored.
        restore_context: Called as `restore_context(stored, run)` before a run is carried on by a process that was not
            given its context, such as the command line: returns the fields that were not stored, or a whole context.
            A hook that `Runs` is given takes its place. One that is async cannot be called by `SyncRuns` and the
            command line.
        state_schema: A `TypedDict` that extends `loopwright.AgentState` by channels of your own, which tools update by
            LangGraph's `Command(update={…})`, with reducers as LangGraph takes them: `Annotated[list[str],
            operator.add]`. They hold plain data, as long as the thread lasts; rules see them in `proposed.state`, and
            `RunResult.state` gives them back.
        name: Shown in Studio and in traces.
        max_result_characters: How much of one tool result the model is shown. The rest is kept with the message, and
            the model can read on in it by the built-in `read_result`, which it is offered from then on.
        max_turn_characters: The same for all results of one turn together; the long ones share it evenly.
        **unknown: Refused.

    Raises:
        ConfigurationError: Naming what was set up wrongly, and the way out; nothing is left to fail at run time.
    """
    check_checkpoints(checkpoints)
    if "checkpointer" not in unknown:  # that has an answer of its own
        refuse_unknown("create_agent", unknown, tuple(create_agent.__kwdefaults__ or ()))
    spec = build_spec(
        model=model,
        tools=tools,
        system_prompt=system_prompt,
        limits=Limits() if limits is None else limits,
        loops=Loops() if loops is None else loops,
        permissions=permissions,
        price=price,
        retry=Retry() if retry is None else retry,
        model_timeout=model_timeout,
        budgets=budgets,
        rate=rate,
        wrap_up=wrap_up,
        compaction=compaction,
        name=name,
        unknown=unknown,
        store=store,
        context_schema=context_schema,
        restore_context=restore_context,
        state_schema=state_schema,
        caps=Caps(max_result_characters, max_turn_characters),
        answers=build_answer_rules(verify, answer_retries, verify_seconds, reflect),
        response_format=response_format,
    )
    return compile_agent(spec, checkpoints)


def change_agent(
    agent: Agent, *, model: ModelOption | None = None, limits: Limits | None = None, price: Price | None = None
) -> Agent:
    """Build the agent anew with another model or several, limits or price; its tools and permissions stay.

    A price that was agreed for an old model is not taken over for a new one. No fallback of the old model is kept.

    Raises:
        ConfigurationError: As `create_agent` does.
    """
    return compile_agent(
        change_spec(agent.spec, model=model, limits=agent.spec.limits if limits is None else limits, price=price),
        None,
    )


def compile_agent(spec: AgentSpec, checkpoints: Checkpoints | None) -> Agent:
    """Compile the ring of a specification over saver and ledger, or over neither."""
    ring = build_ring(spec, Ledgers(checkpoints.ledger if checkpoints is not None else None))
    saver: Saver | None = checkpoints.saver if checkpoints is not None else None
    compiled = ring.compile(checkpointer=saver, store=spec.store, name=spec.name)
    return Agent(spec=spec, ledger=checkpoints.ledger if checkpoints is not None else None, **vars(compiled))
