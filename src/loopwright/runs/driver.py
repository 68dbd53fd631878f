"""Drives runs: the one implementation behind `Runs` and `SyncRuns`."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START
from langgraph.types import Command, StateSnapshot

from loopwright.checkpoints import (
    ALL,
    PLAIN_INVOKE,
    Checkpoints,
    RunRow,
    check_thread_id,
    extensions_of,
    labels_of,
)
from loopwright.errors import ConfigurationError, RunError, RunNotFound, StorageCorrupt, ThreadMoved
from loopwright.graphs import DEFAULT_NAME, Agent, compile_agent, room_for_steps
from loopwright.nodes import LABELS_KEY, REQUESTER_KEY, RUN_ID_KEY, TOKENS_KEY, WAKE, Own, extension_message
from loopwright.state import (
    AgentState,
    FailedAttempt,
    RunStatus,
    StopReason,
    Verdict,
    check_label,
    checked_labels,
    current_run,
    digest,
    excerpt,
    refuse_unknown,
    storable,
)

from .contexts import Contexts
from .doors import Door
from .options import DrivingOptions, RunOptions
from .results import Event, EventKind, RunResult, events_of, result_of

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 0.05
"""How often a waiting caller looks whether the worker that drives a run is done with it."""
TASK_CHARACTERS: Final = 200
_NOTHING: Final = object()
"""There is nothing to drive: the run has ended, or waits."""


def _unheard(_result: RunResult) -> None:
    """Nobody wants to know."""


def _check_parts(agent: object, checkpoints: object) -> None:
    """Refuse what is none, without its value: a URL may hold a password."""
    if not isinstance(agent, Agent):
        text = f"agent is a {type(agent).__name__}; give what create_agent returned: Runs(agent, checkpoints)"
        raise ConfigurationError(text, option="agent")
    if not isinstance(checkpoints, Checkpoints):
        text = f"checkpoints is a {type(checkpoints).__name__}; give what open_checkpoints('sqlite:///runs.db') returns"
        raise ConfigurationError(text, option="checkpoints")


class Driver:
    """Takes a thread's lease, finds out from ledger and checkpoint what is to be done, and does it.

    Starting, resuming, expiring, recovering and cancelling are all this one idempotent job: whoever comes second
    finds nothing to do.
    """

    def __init__(
        self,
        agent: Agent,
        checkpoints: Checkpoints,
        door: Door,
        options: DrivingOptions,
        on_rest: Callable[[RunResult], None] = _unheard,
    ) -> None:
        """Build the graph from the agent's specification, over these checkpoints.

        What `on_rest` hears is how each run stands that comes to rest here.

        Raises:
            ConfigurationError: If agent or checkpoints are none, an option is unknown, or the reference is no text, or
                one that no store can keep.
        """
        _check_parts(agent, checkpoints)
        refuse_unknown("Runs", options, DrivingOptions.__annotations__)
        reference = options.get("reference", "")
        _check_name("reference", reference)
        self.agent = compile_agent(agent.spec, checkpoints)
        self.ledger = checkpoints.ledger
        self.door = door
        self.reference = reference or _default_reference(agent)
        self.on_reminder = options.get("on_reminder")
        self._on_rest = on_rest
        self._contexts = Contexts(
            agent.spec.context, door, options.get("restore_context") or agent.spec.restore_context
        )

    @property
    def told(self) -> str:
        """What is driven, and where it is kept, for whoever prints it."""
        return f"{self.reference!r} in {self.ledger.database.name!r}"

    async def start(self, message: str, thread_id: object, options: RunOptions) -> RunRow:
        """Note a run in the ledger; with an id that was used before, return the run that is there."""
        refuse_unknown("a run", options, RunOptions.__annotations__)
        run_id, requester = options.get("run_id", ""), options.get("requester", "")
        message = _checked_message(message)
        context = self._contexts.taken(options.get("context"))
        self._check_requester(requester)
        thread = check_thread_id(thread_id)
        _check_name("run_id", run_id)
        checked = checked_labels(options.get("labels"))
        for budget in self.agent.spec.budgets:
            check_label(budget, checked)
        given = await self._given_state(thread, options.get("state"))
        new_id = run_id or uuid.uuid4().hex
        await self.door.blocking(
            self.ledger.runs.start,
            new_id,
            thread_id=thread,
            agent=self.reference,
            message=message,
            task=excerpt(message, TASK_CHARACTERS),
            requester=requester,
            labels=checked,
            context=self._contexts.kept(context),
            state=json.dumps(given) if given else "",
        )
        row = await self.row(new_id)
        asked = (thread, requester, checked)
        if (row.thread_id, row.requester, labels_of(row)) != asked or not await self._is_about(row, message):
            text = f"run id {run_id!r} was used before, for another message, thread, requester or labels; "
            raise ConfigurationError(text + "an id names one run for ever", run_id=run_id)
        if not row.is_final:
            self._contexts.remember(row.id, context)
        return row

    async def _given_state(self, thread_id: str, state: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return what is given for open channels; their reducers are asked before anything is stored."""
        channels = self.agent.spec.open_channels
        if not state:
            return channels.taken(state, {})
        snapshot = await self.door.snapshot(self.agent, {"configurable": {"thread_id": thread_id}})
        return channels.taken(state, cast("Mapping[str, Any]", snapshot.values))

    def _check_requester(self, requester: object) -> None:
        """Refuse what names nobody, and a run of which a rule would need to know for whom it is.

        Raises:
            ConfigurationError: Before anything runs.
        """
        if not isinstance(requester, str) or requester != storable(requester):
            raise ConfigurationError(f"requester is {requester!r}; give a name", option="requester")
        rule = next((rule for rule in self.agent.spec.rules if rule.not_requester), None)
        if rule is not None and not requester.strip():
            text = f"{rule.label} wants somebody else than the requester to decide, and nobody said who that is; "
            raise ConfigurationError(text + "start the run with requester='…'", option="requester")

    async def _is_about(self, row: RunRow, message: str) -> bool:
        """Tell whether a run was started with this very message."""
        if row.input or row.task != excerpt(message, TASK_CHARACTERS):
            return row.input == message
        begun = await self.door.blocking(self.ledger.runs.begun, row.id)
        return begun is None or begun.message in ("", digest(message))

    async def row(self, run_id: str) -> RunRow:
        """Return a run's row.

        Raises:
            RunNotFound: If there is none.
        """
        row = await self.door.blocking(self.ledger.runs.find, run_id)
        if row is None:
            text = f"no run {run_id!r}; list the runs with Runs.list() or `loopwright show`"
            raise RunNotFound(text, run_id=run_id)
        return row

    async def own_row(self, run_id: str) -> RunRow:
        """Return the row of a run that this agent may decide about and drive.

        Raises:
            RunNotFound: If there is none.
            RunError: If it is another agent's: its calls would be judged by these rules, and run by these tools. A run
                that its caller drives belongs to the agent with the same name, tools and rules.
        """
        row = await self.row(run_id)
        if row.is_plain and not await self._is_bound(row):
            text = (
                f"run {run_id} was begun by an invoke of an agent with another name, other tools or other rules; let "
            )
            text += "Runs of that agent decide, or answer where it was invoked: agent.invoke(Command(resume=…))"
            raise RunError(text, run_id=run_id, agent=row.agent)
        if row.agent not in (self.reference, PLAIN_INVOKE):
            text = f"run {run_id} belongs to the agent {row.agent!r}, and this is {self.reference!r}; use that one, or "
            raise RunError(text + "give both the same reference=", run_id=run_id, agent=row.agent)
        return row

    async def context_of(self, row: RunRow) -> Any:
        """Return the context of a run for the rules that judge an edit; None where no rule looks at one.

        Raises:
            RunError: If it cannot be brought back here.
        """
        looks = any(rule.when is not None for rule in self.agent.spec.rules)
        return await self._contexts.of(row) if looks else None

    async def _is_bound(self, row: RunRow) -> bool:
        begun = await self.door.blocking(self.ledger.runs.begun, row.id)
        return begun is not None and begun.binding == self.agent.spec.binding

    def config(self, row: RunRow) -> RunnableConfig:
        """Return the config that drives a run."""
        place = {"thread_id": row.thread_id, RUN_ID_KEY: Own(row.id), REQUESTER_KEY: Own(row.requester)}
        config: RunnableConfig = {"configurable": {**place, LABELS_KEY: labels_of(row)}}
        if added := sum(one.get("steps", 0) for one in extensions_of(row)):
            config["recursion_limit"] = room_for_steps(self.agent.spec.limits, added)
        return config

    async def state(self, row: RunRow) -> AgentState:
        """Return the newest state of a run's thread."""
        snapshot = await self.door.snapshot(self.agent, self.config(row))
        return cast("AgentState", snapshot.values)

    async def result(self, run_id: str) -> RunResult:
        """Return how a run stands."""
        row = await self.row(run_id)
        open_ = await self.door.blocking(self.ledger.approvals.list_open, run_id, ALL)
        parked = await self.door.blocking(self.ledger.approvals.list_parked, run_id, ALL)
        state = await self.state(row)
        is_lone = row.stop_reason is StopReason.ERROR and _run_in(state) != row.id
        error = await self.door.blocking(self.ledger.runs.error_of, run_id) if is_lone else ""
        return result_of(row, state, open_, parked, self.agent.spec, error=error)

    async def drive(self, run_id: str, *, tokens: bool = False) -> AsyncGenerator[Event]:
        """Drive a run to its next rest; yields what happens, the result last.

        The last event has no result where another drives it, or has carried it on meanwhile: look again later.
        """
        row = await self.row(run_id)
        if await self.door.blocking(self.ledger.end_abandoned, row):
            row = await self.row(run_id)
        if row.is_plain and row.status == RunStatus.RUNNING and not await self._is_left_by_runs(row):
            text = f"run {run_id} is driven by whoever called the agent itself, and can be waited for only there"
            raise RunError(text, run_id=run_id, thread_id=row.thread_id)
        if not (row.is_plain and row.is_final):
            row = await self.own_row(run_id)
        if row.is_final and not await self._is_reopened(row):
            yield await self._rest(row.id)
            return
        rest: Event | None = None
        lease = await self.door.blocking(self.ledger.leases.take, row.thread_id)
        if lease is None:
            return
        try:
            with self.ledger.heart.keep(lease):
                async with aclosing(self._drive(run_id, tokens=tokens)) as events:
                    async for event in events:
                        if event.result is None:
                            yield event
                        rest = event
        except ThreadMoved:  # whoever was faster has the run's state
            extra = {"action": "thread_moved", "run_id": run_id}
            logger.warning("run %s was carried on by another worker", run_id, extra=extra)
        finally:
            await self.door.blocking(self.ledger.leases.release, lease)
        if rest is not None and rest.result is not None:
            yield rest  # only now: who reads it may carry the run on at once, and needs the lease

    async def _drive(self, run_id: str, *, tokens: bool) -> AsyncGenerator[Event]:
        """Drive until nothing is left to do: what is decided while a pause is being reached is taken up at once."""
        row = await self.row(run_id)
        before = ""
        failures: list[FailedAttempt] = []  # told when they happened; their step tells them again
        while not row.is_final:
            snapshot = await self.door.snapshot(self.agent, self.config(row))
            given = await self._given(row, snapshot)
            if given is _NOTHING:
                break
            context = await self._contexts.of(row)
            before = _moved(row, snapshot, before) if given is None else ""
            await self.door.blocking(self.ledger.runs.set_worker, row.id, self.ledger.owner)
            config = self.config(row)
            config["configurable"] = {**config.get("configurable", {}), TOKENS_KEY: tokens}
            async with aclosing(self.door.updates(self.agent, given, config, context, tokens=tokens)) as updates:
                async for update in updates:
                    for event in events_of(row.id, update):
                        if event.failure is None or event.failure not in failures:
                            yield event
                        failures += [event.failure] if event.failure is not None else []
        yield await self._rest(run_id)

    async def _is_left_by_runs(self, row: RunRow) -> bool:
        """Tell whether `Runs` carried it on last, after a decision, and died: then it is for `Runs` to go on."""
        return bool(row.worker) and await self.door.blocking(self.ledger.is_abandoned, row)

    async def _is_reopened(self, row: RunRow) -> bool:
        """Tell whether a run waits although it has ended: on a branch, whose process died before it could say so."""
        if row.cancel_by:
            return False
        snapshot = await self.door.snapshot(self.agent, self.config(row))
        if not snapshot.interrupts or _run_in(snapshot.values) != row.id:
            return False
        await self.door.blocking(self.ledger.reopen, row.id, row.thread_id)
        return True

    async def _rest(self, run_id: str) -> Event:
        result = await self.result(run_id)
        self._contexts.rest(run_id, is_final=result.status.is_final)
        self._on_rest(result)
        return Event(EventKind.ENDED if result.status.is_final else EventKind.WAITING, run_id, result=result)

    async def _given(self, row: RunRow, snapshot: StateSnapshot) -> Any:
        """Find out what the graph is to be given: the task, a resume, nothing new, or whether nothing is to be done."""
        state = cast("AgentState", snapshot.values)
        if _run_in(snapshot.values) != row.id:
            return await self._given_first(row, snapshot, state)
        number = len(extensions_of(row))
        if number > state["run"].get("extensions", 0) and RunStatus(state["run"]["status"]).is_final:
            message = extension_message(row.id, number)
            is_on_its_way = any(known.id == message.id for known in state["messages"])
            return None if is_on_its_way else {"messages": [message]}
        if _has_untaken_task(snapshot, state):
            await self._end(row, StopReason.CANCELLED, 0)
            return _NOTHING
        if snapshot.interrupts:
            return await self._resume(snapshot, state)
        if RunStatus(state["run"]["status"]).is_final:
            await self._end(row, StopReason(state["run"]["reason"]), state["usage"]["cost_nano"])
            return _NOTHING
        return None

    async def _given_first(self, row: RunRow, snapshot: StateSnapshot, state: AgentState) -> Any:
        """Find out what to give for a run that is not taken in: its task, nothing new if that is on its way."""
        mine = _message_id(row)
        arrived = [message.id for message in state.get("messages") or ()]
        if mine not in arrived and row.input:
            try:
                given = self._still_taken(row, snapshot)
            except ConfigurationError as error:
                await self._end(row, StopReason.ERROR, 0, error.message)
                return _NOTHING
            return {**given, "messages": [HumanMessage(row.input, id=mine)]}
        if arrived and arrived[-1] == mine and _has_untaken_task(snapshot, state):
            return None
        if current_run(state) is None and not _has_untaken_task(snapshot, state):
            text = f"the stored state of thread {row.thread_id!r} does not say which run it belongs to; "
            raise StorageCorrupt(text + "restore the database from a backup", run_id=row.id, thread_id=row.thread_id)
        # The thread has gone on with a newer task.
        await self._end(row, StopReason.CANCELLED, 0)
        return _NOTHING

    def _still_taken(self, row: RunRow, snapshot: StateSnapshot) -> dict[str, Any]:
        """Return what a run was given for open channels, once more: the thread and the agent may have gone on since.

        Raises:
            ConfigurationError: If a channel does not take it any more; LangGraph would raise that for ever.
        """
        given = json.loads(row.state) if row.state else None
        return self.agent.spec.open_channels.taken(given, cast("Mapping[str, Any]", snapshot.values))

    async def _resume(self, snapshot: StateSnapshot, state: AgentState) -> Any:
        """Wake the pause that is open now, by its id, if a question of its turn was decided or has expired."""
        asked = [call["approval"] for call in state["turn"] if call["verdict"] == Verdict.ASK]
        if parked := state["run"].get("parked"):
            asked.append(parked["approval"])
        standing = await self.door.blocking(self.ledger.approvals.standing, asked)
        is_known = asked and len(standing) == len(asked)
        if not is_known or any(approval.decision for approval in standing.values()):
            return Command(resume={snapshot.interrupts[0].id: WAKE})
        await self.door.blocking(self.ledger.runs.set_status, state["run"]["id"], RunStatus.WAITING)
        return _NOTHING

    async def _end(self, row: RunRow, reason: StopReason, cost_nano: int, error: str = "") -> None:
        end = {"thread_id": row.thread_id, "cost_nano": cost_nano, "error": error}
        await self.door.blocking(self.ledger.end_run, row.id, reason, **cast("Mapping[str, Any]", end))

    async def follow(self, run_id: str, *, tokens: bool = False) -> AsyncGenerator[Event]:
        """Drive a run, or wait for who does, until it pauses or ends; the last event holds the result."""
        while True:
            last: Event | None = None
            async with aclosing(self.drive(run_id, tokens=tokens)) as events:
                async for event in events:
                    last = event
                    yield event
            if last is not None and last.result is not None:
                return
            await self.door.sleep(POLL_SECONDS)

    async def wait(self, run_id: str) -> RunResult:
        """Follow a run to its next rest."""
        async with aclosing(self.follow(run_id)) as events:
            async for event in events:
                if event.result is not None:
                    return event.result
        raise RuntimeError(f"run {run_id} ended without a result")

    async def carry_on(self, run_id: str) -> RunResult | None:
        """Drive a run to its next rest; None where another drives it already."""
        result: RunResult | None = None
        async with aclosing(self.drive(run_id)) as events:
            async for event in events:
                result = event.result
        return result

    async def is_mine(self, row: RunRow) -> bool:
        """Tell whether a run that is left is this agent's to carry on."""
        if not row.is_plain:
            return row.agent == self.reference
        is_free = row.status != RunStatus.RUNNING or await self._is_left_by_runs(row)
        return is_free and await self._is_bound(row)


def _default_reference(agent: Agent) -> str:
    """Name an agent that nobody gave a reference; one without a name of its own by its tools as well."""
    name = agent.spec.name
    return name if name != DEFAULT_NAME else f"{name}({', '.join(sorted(tool.name for tool in agent.spec.offered))})"


def _checked_message(message: object) -> str:
    """Return the task's text; half a surrogate pair, which fits in no database and no request, becomes a `?`.

    Raises:
        ConfigurationError: If it is no text, or an empty one.
    """
    if not isinstance(message, str):
        text = f"the message is a {type(message).__name__}; give a text that says what the agent is to do"
        raise ConfigurationError(text, option="message")
    if not message.strip():
        raise ConfigurationError("the message is empty; say what the agent is to do", option="message")
    return storable(message)


def _check_name(option: str, name: object) -> None:
    """Refuse what would be stored as another name than it is.

    Raises:
        ConfigurationError: Naming the option.
    """
    if not isinstance(name, str) or name != storable(name):
        text = f"{option} is {name!r}; give a text without NUL characters and halves of surrogate pairs"
        raise ConfigurationError(text, option=option)


def _message_id(row: RunRow) -> str:
    """Name a run's message, so that a start that was interrupted finds whether it has arrived."""
    return f"task-{row.id}"


def _moved(row: RunRow, snapshot: StateSnapshot, before: str) -> str:
    """Return the checkpoint that the run is carried on from.

    Raises:
        RunError: If it was carried on from there before: then it would be for ever.
    """
    here = str(snapshot.config.get("configurable", {}).get("checkpoint_id", ""))
    if here and here == before:
        text = f"run {row.id!r} does not move on from its checkpoint; was it made by an agent with other nodes?"
        raise RunError(text, run_id=row.id, thread_id=row.thread_id, checkpoint_id=here)
    return here


def _run_in(values: Mapping[str, object]) -> str:
    run = current_run(values)
    return run["id"] if run else ""


def _has_untaken_task(snapshot: StateSnapshot, state: AgentState) -> bool:
    """Tell whether a message is on its way that no run has taken in; who drives on does so in that run's name.

    Looks at all tasks of the super-step, not at `next`: that one leaves out what has run and is not yet a checkpoint.
    """
    tasks = {task.name for task in snapshot.tasks}
    messages = state.get("messages") or []
    newest = messages[-1] if messages else None
    run = current_run(snapshot.values)
    is_new = isinstance(newest, HumanMessage) and newest.id != (run["task_id"] if run else "")
    return START in tasks or ("observe" in tasks and is_new)
