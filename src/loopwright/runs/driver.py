"""Drives runs: the one implementation behind `Runs` and `SyncRuns`."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, Final, cast

from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from loopwright.checkpoints import Checkpoints, RunRow, check_thread_id
from loopwright.errors import ConfigurationError, RunNotFound
from loopwright.graphs import Agent, compile_agent
from loopwright.nodes import PLAIN_INVOKE, RUN_ID_KEY, WAKE
from loopwright.state import AgentState, RunStatus, StopReason, Verdict, current_run, excerpt

from .doors import Door
from .results import Event, EventKind, RunResult, events_of, result_of

POLL_SECONDS: Final = 0.05
"""How often a waiting caller looks whether the worker that drives a run is done with it."""
TASK_CHARACTERS: Final = 200
_NOTHING: Final = object()
"""There is nothing to drive: the run has ended, or waits for a person."""


class Driver:
    """Takes a thread's lease, finds out from ledger and checkpoint what is to be done, and does it.

    Starting, resuming, expiring, recovering and cancelling are all this one idempotent job: whoever comes second
    finds nothing to do.
    """

    def __init__(self, agent: Agent, checkpoints: Checkpoints, door: Door, reference: str) -> None:
        """Build the graph from the agent's specification, over these checkpoints."""
        self.agent = compile_agent(agent.spec, checkpoints)
        self.ledger = checkpoints.ledger
        self.door = door
        self.reference = reference or agent.spec.name

    async def start(self, message: str, thread_id: object, run_id: str) -> RunRow:
        """Note a run in the ledger; with an id that was used before, return the run that is there."""
        if not message.strip():
            raise ConfigurationError("the message is empty; say what the agent is to do")
        thread = check_thread_id(thread_id)
        new_id = run_id or uuid.uuid4().hex
        await self.door.blocking(
            self.ledger.runs.start,
            new_id,
            thread_id=thread,
            agent=self.reference,
            message=message,
            task=excerpt(message, TASK_CHARACTERS),
        )
        row = await self.row(new_id)
        if (row.thread_id, row.task) != (thread, excerpt(message, TASK_CHARACTERS)):
            text = f"run id {run_id!r} was used before, for another message or thread; an id names one run for ever"
            raise ConfigurationError(text, run_id=run_id)
        return row

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

    def config(self, row: RunRow) -> RunnableConfig:
        """Return the config that drives a run."""
        return {"configurable": {"thread_id": row.thread_id, RUN_ID_KEY: row.id}}

    async def state(self, row: RunRow) -> AgentState:
        """Return the newest state of a run's thread."""
        snapshot = await self.door.snapshot(self.agent, self.config(row))
        return cast("AgentState", snapshot.values)

    async def result(self, run_id: str) -> RunResult:
        """Return how a run stands."""
        row = await self.row(run_id)
        open_ = await self.door.blocking(self.ledger.approvals.list_open, run_id)
        return result_of(row, await self.state(row), open_)

    async def drive(self, run_id: str) -> AsyncGenerator[Event]:
        """Drive a run until it pauses or ends, if nobody else does; yields what happens."""
        row = await self.row(run_id)
        lease = await self.door.blocking(self.ledger.leases.take, row.thread_id)
        if lease is None:
            return
        try:
            with self.ledger.heart.keep(lambda: self.ledger.leases.renew(lease)):
                async with aclosing(self._drive(run_id)) as events:
                    async for event in events:
                        yield event
        finally:
            await self.door.blocking(self.ledger.leases.release, lease)

    async def _drive(self, run_id: str) -> AsyncGenerator[Event]:
        row = await self.row(run_id)
        if row.is_final or (row.agent == PLAIN_INVOKE and row.status == RunStatus.RUNNING):
            return  # the second is driven by its caller, who takes no lease
        given = await self._given(row)
        if given is _NOTHING:
            return
        await self.door.blocking(self.ledger.runs.set_worker, row.id, self.ledger.owner)
        async with aclosing(self.door.updates(self.agent, given, self.config(row))) as updates:
            async for update in updates:
                for event in events_of(row.id, update):
                    yield event
        await self._note_end(row)
        result = await self.result(row.id)
        kind = EventKind.ENDED if result.status.is_final else EventKind.WAITING
        yield Event(kind, row.id, result=result)

    async def _given(self, row: RunRow) -> Any:
        """Find out what the graph is to be given: the task, a resume, nothing new, or whether nothing is to be done."""
        snapshot = await self.door.snapshot(self.agent, self.config(row))
        state = cast("AgentState", snapshot.values)
        taken_in = _run_in(snapshot.values) == row.id
        arrived = any(message.id == _message_id(row) for message in state.get("messages") or ())
        if not taken_in and not arrived and row.input:
            return {"messages": [HumanMessage(row.input, id=_message_id(row))]}
        if not taken_in and not (arrived and snapshot.next):
            # The thread has gone on with a newer task.
            await self._end(row, StopReason.CANCELLED, 0)
            return _NOTHING
        if snapshot.interrupts:
            return await self._resume(snapshot, state)
        if snapshot.next:
            return None
        await self._note_end(row)
        return _NOTHING

    async def _resume(self, snapshot: StateSnapshot, state: AgentState) -> Any:
        """Wake the pause that is open now, by its id, if a question of its turn was decided or has expired."""
        asked = [call["approval"] for call in state["turn"] if call["verdict"] == Verdict.ASK]
        standing = await self.door.blocking(self.ledger.approvals.standing, asked)
        if any(approval.decision for approval in standing.values()) or len(standing) < len(asked):
            return Command(resume={snapshot.interrupts[0].id: WAKE})
        await self.door.blocking(self.ledger.runs.set_status, state["run"]["id"], RunStatus.WAITING)
        return _NOTHING

    async def _note_end(self, row: RunRow) -> None:
        """Carry a run's end from its checkpoint into the ledger."""
        state = await self.state(row)
        if _run_in(state) == row.id and RunStatus(state["run"]["status"]).is_final:
            await self._end(row, StopReason(state["run"]["reason"]), state["usage"]["cost_nano"])

    async def _end(self, row: RunRow, reason: StopReason, cost_nano: int) -> None:
        end = {"thread_id": row.thread_id, "cost_nano": cost_nano}
        await self.door.blocking(self.ledger.end_run, row.id, reason, **cast("Mapping[str, Any]", end))

    async def follow(self, run_id: str) -> AsyncGenerator[Event]:
        """Drive a run, or wait for who does, until it pauses or ends; the last event holds the result."""
        while True:
            last: Event | None = None
            async with aclosing(self.drive(run_id)) as events:
                async for event in events:
                    last = event
                    yield event
            if last is not None and last.result is not None:
                return
            row = await self.row(run_id)
            if await self._rests(row):
                result = await self.result(run_id)
                yield Event(EventKind.ENDED if result.status.is_final else EventKind.WAITING, run_id, result=result)
                return
            await self.door.sleep(POLL_SECONDS)

    async def _rests(self, row: RunRow) -> bool:
        """Tell whether nothing will happen until somebody decides: the run has ended, or waits with nothing decided."""
        if row.is_final:
            return True
        if row.status != RunStatus.WAITING:
            return False
        if await self.door.blocking(self.ledger.leases.holder, row.thread_id) is not None:
            return False
        asked = await self.door.blocking(self.ledger.approvals.list_open, row.id)
        state = await self.state(row)
        pending = {call["approval"] for call in state.get("turn") or () if call["verdict"] == Verdict.ASK}
        return pending <= {approval.id for approval in asked} and bool(pending)

    async def wait(self, run_id: str) -> RunResult:
        """Follow a run to its next rest."""
        async with aclosing(self.follow(run_id)) as events:
            async for event in events:
                if event.result is not None:
                    return event.result
        raise RuntimeError(f"run {run_id} ended without a result")


def _message_id(row: RunRow) -> str:
    """Name a run's message, so that a start that was interrupted finds whether it has arrived."""
    return f"task-{row.id}"


def _run_in(values: Mapping[str, object]) -> str:
    run = current_run(values)
    return run["id"] if run else ""
