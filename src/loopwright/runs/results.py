"""What a caller gets: runs, results, receipts and events."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Any, cast

from langchain_core.messages import AnyMessage

from loopwright import nodes
from loopwright.checkpoints import Approval, RunRow
from loopwright.state import (
    CANCEL,
    EXPIRE,
    NANO,
    NOT_HAPPENED,
    NUDGE,
    AgentState,
    CompactionRecord,
    FailedAttempt,
    Objection,
    Purpose,
    RunStatus,
    StopReason,
    TrailEntry,
    Usage,
    current_run,
    in_utc,
    no_usage,
    view_usage,
)


@dataclass(frozen=True, slots=True)
class Run:
    """A run, as the ledger lists it."""

    id: str
    thread_id: str
    task: str
    """An excerpt of the user's message."""
    status: RunStatus
    stop_reason: StopReason | None
    """None while it goes on."""
    agent: str
    """Where another process finds the agent, `package.module:name`."""
    worker: str
    """Who drives it now, or did last."""
    cost: Decimal
    """US dollars, known when the run has ended."""
    created_at: float
    updated_at: float
    """Seconds since the epoch."""
    requester: str = ""
    """For whom it runs; empty when nobody said."""
    parked_until: float | None = None
    """When it goes on by itself, in seconds since the epoch, where it waits for a rate; in lists only."""


@dataclass(frozen=True, slots=True)
class Parked:
    """That a run waits for a rate that parks: it holds nothing, and goes on by itself."""

    until: float
    """Seconds since the epoch."""
    name: str
    """Whose rate: `tool:send_mail`, `model:gpt-5-mini`."""
    why: str
    """The rate, in words."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run stands: every ending, and every pause, has this shape.

    Its `repr` leaves out what is long: trail, messages, objections, compactions, failures and state.
    """

    run_id: str
    thread_id: str
    status: RunStatus
    stop_reason: StopReason | None
    """None while it goes on, or waits."""
    answer: str
    """The final answer; of a run that was stopped, the best so far; often empty while it goes on."""
    error: str
    """What failed, for the stop reason `error`; what was wrong with the answer, for `unverified`."""
    over_limit: StopReason | None
    """The limit that the final answer itself went over; the answer is kept all the same."""
    limit: str
    """Which limit ended it, in words: the run's, its thread's or a budget's, and how much; else empty."""
    usage: Usage
    trail: tuple[TrailEntry, ...] = field(repr=False)
    """One record a call of this run."""
    messages: tuple[AnyMessage, ...] = field(repr=False)
    """The thread's transcript; copies."""
    approvals: tuple[Approval, ...]
    """What waits for a person, oldest first."""
    output: Any = None
    """The final answer in the form that was asked for (`response_format`), once the run has succeeded; else None.

    `Any`: each agent has its own type. As plain data where the form has changed since, and it fits no more.
    """
    objections: tuple[Objection, ...] = field(default=(), repr=False)
    """What was wrong with final answers on the way, oldest first: by whom, at which step, and what."""
    compactions: tuple[CompactionRecord, ...] = field(default=(), repr=False)
    """What of the transcript was no longer sent whole, once it had outgrown the context window; oldest first."""
    failures: tuple[FailedAttempt, ...] = field(default=(), repr=False)
    """The newest attempts at a model that failed, whatever came of the run."""
    state: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """The thread's open channels (`state_schema=`) as they stand; copies. Those that hold nothing yet are left out.

    `Any`: they are the user's own.
    """
    parked: Parked | None = None
    """What it waits for besides people; None for nothing."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a decision, an outcome or a cancellation."""

    run_id: str
    accepted: bool
    """Whether this one counts; else the other fields tell the one that does."""
    decision: Mapping[str, Any]
    """What counts, as plain data with a `type`."""
    by: str
    """Who decided it."""
    at: float | None
    """When, in seconds since the epoch."""
    votes: tuple[str, ...] = ()
    """Who has approved, where it takes several."""
    missing: int = 0
    """How many people must still approve; 0: it is decided."""
    told: str = ""
    """All of it in one sentence, for whoever clicked."""


class EventKind(StrEnum):
    """What happened in a run; a stream ends with `WAITING` or `ENDED`."""

    BEGAN = "began"
    DECIDED = "decided"
    """The model replied."""
    PROGRESS = "progress"
    """A tool told how far it is: `progress`. Nothing of it is stored."""
    OBSERVED = "observed"
    """A call is over: `entry` is its trail record."""
    OBJECTED = "objected"
    """A final answer was sent back: `objection` says by whom, and why. The run goes on."""
    TEXT = "text"
    """A piece of the model's text, as it comes: `text`. Only where tokens were asked for."""
    FAILED_ATTEMPT = "failed_attempt"
    """An attempt at the model failed, and another one follows: `failure`. Text that has come of it is void."""
    COMPACTED = "compacted"
    """Less of the transcript is sent from now on: `compaction` says what, with the summary if there is one."""
    WAITING = "waiting"
    """A person is asked: `result.approvals`; or a rate is waited for: `result.parked`."""
    ENDED = "ended"
    """`result` is final."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a tool has come, in its own words."""

    tool: str
    call_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened in a run, as it happens."""

    kind: EventKind
    run_id: str
    decision: Mapping[str, Any] | None = None
    """For `DECIDED`: the model's decision as plain data with a `kind`."""
    entry: TrailEntry | None = None
    objection: Objection | None = None
    compaction: CompactionRecord | None = None
    progress: Progress | None = None
    result: RunResult | None = None
    text: str = ""
    """For `TEXT`: the piece."""
    failure: FailedAttempt | None = None
    """For `FAILED_ATTEMPT`: what failed, and what follows."""


SAID = "__said"
"""Stands in the place of a node for what one says while it works."""
_PAST = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
    "respond": "answered",
    CANCEL: "withdrawn",
    NOT_HAPPENED: "reported as not happened",
}


def receipt_of(approval: Approval, *, accepted: bool) -> Receipt:
    """Build the receipt of a decision from its question as it stands now."""
    decision = approval.decision or {"type": "approve"}
    by = approval.decided_by or ", ".join(approval.votes)
    return Receipt(
        approval.run_id,
        accepted,
        decision,
        by,
        approval.decided_at,
        votes=approval.votes,
        missing=approval.missing,
        told=_told(approval, accepted=accepted),
    )


def _told(approval: Approval, *, accepted: bool) -> str:
    name = f"approval {approval.id}"
    if approval.decision is None:
        counted = f"{len(approval.votes)} of {approval.needs['number']} have approved: {', '.join(approval.votes)}"
        return f"{name}: {counted}" if accepted else f"{name}: you have approved it before; {counted}"
    kind = approval.decision["type"]
    at = "" if approval.decided_at is None else f" on {in_utc(approval.decided_at)}"
    if kind == EXPIRE:
        return f"{name} expired unanswered{at} and counts as rejected; nothing was changed"
    if accepted:
        return f"{name}: {_PAST.get(kind, kind)} by {approval.decided_by}"
    return f"{name} was already {_PAST.get(kind, kind)} by {approval.decided_by}{at}; nothing was changed"


def run_of(row: RunRow) -> Run:
    """Return the public view of a ledger's row."""
    return Run(
        id=row.id,
        thread_id=row.thread_id,
        task=row.task,
        status=row.standing,
        stop_reason=row.stop_reason,
        agent=row.agent,
        worker=row.worker,
        cost=Decimal(row.cost_nano) / NANO,
        created_at=row.created_at,
        updated_at=row.updated_at,
        requester=row.requester,
        parked_until=row.parked_until,
    )


def result_of(
    row: RunRow,
    state: AgentState,
    approvals: Sequence[Approval],
    parked: Sequence[Approval],
    spec: nodes.AgentSpec,
    *,
    error: str = "",
) -> RunResult:
    """Build the result of a run from its thread's state; a thread that went on tells only how the run ended.

    Args:
        row: The run.
        state: Of its thread.
        approvals: What it asks.
        parked: What else it waits for.
        spec: The agent's.
        error: Of a run that its thread does not know.
    """
    newest = current_run(state)
    run = newest if newest and newest["id"] == row.id else None
    status = RunStatus(run["status"]) if run else row.standing
    if status is RunStatus.RUNNING and row.status == RunStatus.WAITING:
        status = RunStatus.WAITING
    reason = run["reason"] if run else row.stop_reason
    over = run.get("over_limit") if run else None
    form = spec.form
    output = run.get("output") if run and status is RunStatus.SUCCEEDED else None
    return RunResult(
        run_id=row.id,
        thread_id=row.thread_id,
        status=status,
        stop_reason=StopReason(reason) if reason else None,
        answer=run["answer"] if run else "",
        error=run["error"] if run else error,
        over_limit=StopReason(over) if over else None,
        limit=run.get("limit", "") if run else "",
        usage=view_usage(state["usage"] if run else no_usage()),
        trail=tuple(entry for entry in state.get("trail") or () if entry["run"] == row.id),
        messages=tuple(message.model_copy(deep=True) for message in state.get("messages") or ()),
        failures=tuple(run.get("failures", ())) if run else (),
        approvals=tuple(approvals) if status is RunStatus.WAITING else (),
        parked=parked_of(parked) if status is RunStatus.WAITING else None,
        output=form.rebuild(output) if form is not None and output is not None else copy.deepcopy(output),
        objections=tuple(copy.deepcopy(run.get("objections", []))) if run else (),
        compactions=tuple(copy.deepcopy(made) for made in state.get("compactions") or () if made["run"] == row.id),
        state=spec.open_channels.of(cast("Mapping[str, Any]", state)),
    )


def parked_of(waits: Sequence[Approval]) -> Parked | None:
    """Return what a run waits for: of several calls of a turn, which go on together, the last one; None for nothing."""
    last = max(waits, key=lambda one: one.expires_at or 0.0, default=None)
    if last is None:
        return None
    name = last.tool if "tool_call_id" not in last.payload else f"tool:{last.tool}"
    return Parked(last.expires_at or 0.0, name, str(last.payload.get("why", "")))


def _failures(run_id: str, written: Mapping[str, Any]) -> list[Event]:
    """Return the attempts of this step that failed before another one."""
    step = written["usage"]["steps"]  # with a reply; without one the step that is on is not counted
    failures: Sequence[FailedAttempt] = written.get("run", {}).get("failures", ())
    told = [failure for failure in failures if failure["step"] >= step and failure["next"]]
    return [Event(EventKind.FAILED_ATTEMPT, run_id, failure=failure) for failure in told]


def _said(run_id: str, said: object) -> list[Event]:
    """Read what a node said while it worked; what a tool wrote to LangGraph's `custom` stream itself is not for us."""
    if not isinstance(said, Mapping):
        return []
    given = cast("Mapping[str, Any]", said)
    match given.get("type"):
        case nodes.PROGRESS:
            return [
                Event(EventKind.PROGRESS, run_id, progress=Progress(given["tool"], given["call_id"], given["text"]))
            ]
        case nodes.MODEL_TEXT:
            return [Event(EventKind.TEXT, run_id, text=given["text"])]
        case nodes.FAILED_ATTEMPT:
            failure = {name: value for name, value in given.items() if name != "type"}
            return [Event(EventKind.FAILED_ATTEMPT, run_id, failure=cast("FailedAttempt", failure))]
        case _:
            return []


def events_of(run_id: str, update: Mapping[str, Any]) -> list[Event]:
    """Return the events that one update of LangGraph's stream means.

    Args:
        run_id: Of the run.
        update: What nodes wrote, by their names; under `SAID` what one says while it works.
    """
    events: list[Event] = []
    for node, wrote in update.items():
        if node == SAID:
            events += _said(run_id, wrote)
            continue
        if not isinstance(wrote, Mapping):  # an interrupt
            continue
        written = cast("Mapping[str, Any]", wrote)
        if node == "observe" and "task_id" in written.get("run", {}) and written.get("trail") is None:
            events.append(Event(EventKind.BEGAN, run_id))
        if node == "reason":
            events.extend(_failures(run_id, written))
        events.extend(Event(EventKind.COMPACTED, run_id, compaction=made) for made in written.get("compactions") or ())
        if node == "reason" and written.get("decision") and not _is_summary(written):
            events.append(Event(EventKind.DECIDED, run_id, decision=written["decision"]))
        if node == "guard" and (objection := _sent_back(written)):
            events.append(Event(EventKind.OBJECTED, run_id, objection=objection))
        events.extend(Event(EventKind.OBSERVED, run_id, entry=entry) for entry in written.get("trail") or ())
    return events


def _is_summary(written: Mapping[str, Any]) -> bool:
    """Tell whether what the model said was a summary, which decides nothing."""
    return bool(written.get("run", {}).get("purpose") == Purpose.SUMMARISE)


def _sent_back(written: Mapping[str, Any]) -> Objection | None:
    """Return the objection by which the guard has just sent an answer back; None where it did something else."""
    objections: list[Objection] = written.get("run", {}).get("objections") or []
    is_told = any(str(message.id).startswith(NUDGE) for message in written.get("messages") or ())
    is_new = bool(objections) and objections[-1]["step"] == written.get("usage", {}).get("steps")
    return objections[-1] if is_told and is_new else None
