"""`observe`: takes in a task, or what came of the calls on the table."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.checkpoints import NEWER, PLAIN_INVOKE, Begun, EffectRow, EffectStatus, Ledger
from loopwright.errors import ThreadNotFound
from loopwright.policy import Seen, call_key, next_window, result_key, way_of
from loopwright.state import (
    FORGET,
    AgentState,
    Call,
    CallTools,
    Outcome,
    Question,
    Result,
    RunRecord,
    RunStatus,
    StopReason,
    Verdict,
    add_cost,
    add_run,
    add_seconds,
    current_run,
    current_thread,
    digest,
    excerpt,
    instant_result,
    load_decision,
    new_call,
    new_thread,
    no_usage,
    storable,
    storable_data,
)
from loopwright.tools import show

from .bringing import with_brought
from .claims import claim_of, claim_on_branch, place_of_call
from .context import is_users, unrecorded
from .extending import extensions_to_take, go_on
from .ladder import LOOP_GUARD
from .parking import unparked
from .port import Port
from .questions import LEFT_UNKNOWN, failed
from .telling import outcome_of, text_of, told_of

TASK_CHARACTERS = 200
SUPERSEDED = "not run: superseded by a newer message"
HALFWAY = "not run to its end: superseded by a newer message"
CANCELLED = "not run to its end: cancelled, and then superseded by a newer message"

_OPEN = (Verdict.ALLOW, Verdict.ASK, Verdict.UNKNOWN, Verdict.HELD)
"""Calls with these verdicts would have gone on, had no newer message come in between."""


async def observe(state: AgentState, port: Port) -> dict[str, Any]:
    """Take in the newest user message as a task if it is new, else bring in the results of the turn."""
    if (extensions := await extensions_to_take(state, port)) is not None:
        return go_on(extensions, state, port)
    task = _new_task(state)
    if task is not None:
        return await _take_in(task, state, port)
    if "parked" in state["run"] or _is_broken_off(state):
        return await _take_up(state, port)
    return _bring_in(state, port)


def _is_broken_off(state: AgentState) -> bool:
    """Tell whether calls on the table were to go on, and an input without a new task came in between."""
    back = {result["call_id"] for result in state.get("results") or ()}
    return any(
        call["verdict"] in (Verdict.ALLOW, Verdict.ASK) and not call.get("result") and call["id"] not in back
        for call in state["turn"]
    )


async def _take_up(state: AgentState, port: Port) -> dict[str, Any]:
    """Carry the run on after such an input: what was begun is told as the ledger knows it, the rest does not run."""
    ledger = await port.ledger()
    closed = await _close_turn(state, port, ledger)
    run = unparked(state["run"])
    await port.ask(ledger, ledger.runs.set_status, run["id"], RunStatus.RUNNING)
    return {**closed, "run": run, "turn": [], "usage": add_seconds(state["usage"], port.elapsed())}


def _new_task(state: AgentState) -> HumanMessage | None:
    """Return the message that is a task not yet taken in; None while a turn is on the table.

    Raises:
        ThreadNotFound: If there is nothing to do at all, as after a resume of a thread that never began.
    """
    messages = state.get("messages") or []
    last = messages[-1] if messages else None
    run = current_run(state)
    if isinstance(last, HumanMessage) and is_users(last) and (run is None or run["task_id"] != last.id):
        return last
    if not (state.get("turn") or (run is not None and "parked" in run)):
        text = "there is no task on this thread: the newest message is not a user's; start with a user message"
        raise ThreadNotFound(text)
    return None


async def _take_in(task: HumanMessage, state: AgentState, port: Port) -> dict[str, Any]:
    """Begin a run: close what the thread left open, start the run's counters at zero, keep the thread's totals."""
    thread = current_thread(state) or new_thread()
    ledger = await port.ledger()
    closed = await _close_turn(state, port, ledger)
    before = current_run(state)
    if before is not None and not RunStatus(before["status"]).is_final:
        thread = add_run(thread, state["usage"])
    run: RunRecord = RunRecord(
        id=await _run_id(task, port, ledger),
        task_id=str(task.id),
        task=excerpt(storable(task.text), TASK_CHARACTERS),
        began=ledger.clock(),
        status=RunStatus.RUNNING,
        reason="",
        answer="",
        error="",
    )
    requester = port.place.requester
    if requester:
        run["requester"] = requester
    labels = dict(port.place.labels)
    if labels:
        run["labels"] = labels
    begun = Begun(digest(storable(task.text)), port.spec.binding)
    place = {"thread_id": port.place.thread_id, "agent": PLAIN_INVOKE, "task": run["task"], "requester": requester}
    await port.ask(ledger, ledger.begin_run, run["id"], labels=labels, begun=begun, **place)
    if port.place.branch_from:
        await port.ask(ledger, ledger.reopen, run["id"], port.place.thread_id)
    usage = add_seconds(no_usage(), port.elapsed())
    window: dict[str, Any] = {}
    told: list[AnyMessage] = closed.get("messages", [])
    closed["messages"] = [*told, *_answers_to_strays([*state["messages"], *told])]
    if taint := _taint_on_arrival([*state["messages"], *told], state, port):
        closed["taint"] = [*taint, *closed.get("taint", [])]
    if task.text != storable(task.text):
        cleaned = task.model_copy(update={"content": storable_data(task.content)})
        closed["messages"].append(cleaned)
    return {**closed, "run": run, "usage": usage, "thread": {**thread, "window": window}, "decision": None, "turn": []}


async def _run_id(task: HumanMessage, port: Port, ledger: Ledger) -> str:
    """Name the run by its thread and its message: whoever takes the task in again, on a fork too, finds the same.

    A thread id that is used again after its deletion can bring the same message ids: then the ledger knows a run of
    that name that has ended, and this one is named by its checkpoint besides.
    """
    place = port.place
    if place.run_id:
        return place.run_id
    if not (place.thread_id and place.has_saver):
        return uuid.uuid4().hex
    name = digest("run", place.thread_id, task.id)
    known = await port.ask(ledger, ledger.runs.find, name)
    is_reused = known is not None and known.is_final and not place.is_fork
    return digest(name, place.checkpoint_id) if is_reused else name


def _taint_on_arrival(messages: Sequence[AnyMessage], state: AgentState, port: Port) -> list[Any]:
    """Return what a new task changes of the taint.

    It is forgotten with the transcript: once nothing is left but what users wrote. And it is noted for a history that
    came without a record of it.
    """
    recorded = state.get("taint") or []
    if recorded and all(map(is_users, messages)):
        return [FORGET]
    return unrecorded(messages, recorded, port.spec.tools)


def _answers_to_strays(messages: Sequence[AnyMessage]) -> list[ToolMessage]:
    """Answer calls that came with the caller's own history and have no result; a provider would refuse it as it is."""
    answered = {message.tool_call_id for message in messages if isinstance(message, ToolMessage)}
    return [
        ToolMessage(
            "not run: it came without a result",
            tool_call_id=call["id"],
            name=call["name"],
            status="error",
            additional_kwargs={"executed": False},
        )
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if call["id"] and call["id"] not in answered
    ]


async def _close_turn(state: AgentState, port: Port, ledger: Ledger) -> dict[str, Any]:
    """Answer the calls that an earlier run left on the table: nothing of it may run any more.

    What had been begun is told as the ledger knows it; its questions are withdrawn.
    """
    turn, run = state.get("turn") or _unscreened(state), current_run(state)
    if run is not None and (turn or "parked" in run):
        await port.ask(ledger, ledger.approvals.withdraw, run["id"], NEWER)
    if not turn:
        return {}
    rows = await port.ask(ledger, ledger.effects.of_run, state["run"]["id"])
    begun = {row.id: row for row in rows}
    waits = any(call["verdict"] == Verdict.ASK for call in turn)  # then none of the others was begun
    closed = [
        _closed(call, begun.get(_effect_id(call, rows, state, port)), _place(call, state, port), waits=waits)
        for call in turn
    ]
    return told_of(closed, state, port)


def _unscreened(state: AgentState) -> list[Call]:
    """Return the calls that the model had asked for, and that the guard has not seen yet."""
    decision = state.get("decision")
    asked = load_decision(decision) if decision else None
    if not isinstance(asked, CallTools):
        return []
    calls = [
        new_call(call.id, call.name, call.args, ordinal=ordinal, thought=asked.thought)
        for ordinal, call in enumerate(asked.calls)
    ]
    return [{**call, "verdict": Verdict.NOT_RUN, "why": SUPERSEDED} for call in calls]


def _effect_id(call: Call, begun: Sequence[EffectRow], state: AgentState, port: Port) -> str:
    """Name the effect that the call may have begun; empty where it can have none."""
    contract = port.spec.tools.get(call["name"])
    may_be_begun = call["verdict"] == Verdict.ALLOW or call["question"] == Question.PARKED
    if call.get("effect") or contract is None or contract.is_read or not may_be_begun:
        return call.get("effect", "")
    place = port.place
    step = state["usage"]["steps"]
    request = claim_of(contract, call, thread_id=place.thread_id, run_id=state["run"]["id"], step=step)
    branch = state["run"].get("branch") or call["branch"]
    return claim_on_branch(request, branch, begun).id if branch else request.id


def _place(call: Call, state: AgentState, port: Port) -> str:
    where = {"thread_id": port.place.thread_id, "run_id": state["run"]["id"]}
    return place_of_call(call, step=state["usage"]["steps"], **where)


def _closed(call: Call, row: EffectRow | None, place: str, *, waits: bool) -> Call:
    """Return the call with what became of it."""
    if call.get("result"):
        return call
    if row is None:
        # A call that only reads leaves no row: it may have been begun, and cancelled.
        if call["verdict"] not in _OPEN:
            return call
        if call["question"] == Question.FAILURE and "held" in call:
            return failed(call)
        return {**call, "why": SUPERSEDED if waits and call["verdict"] == Verdict.ALLOW else _left(call)}
    if row.status == EffectStatus.DONE:
        done = instant_result(call["id"], Outcome.DONE, str(row.result))
        return {**call, "result": with_brought(done, row, place)}
    if row.status == EffectStatus.FAILED:
        return {**call, "result": instant_result(call["id"], Outcome.ERROR, f"ERROR: {row.result}")}
    return {**call, "result": instant_result(call["id"], Outcome.UNKNOWN, LEFT_UNKNOWN)}


def _left(call: Call) -> str:
    if call["verdict"] == Verdict.ALLOW and not call["changes"]:
        return CANCELLED
    return HALFWAY if call["question"] == Question.PAUSE else SUPERSEDED


def _bring_in(state: AgentState, port: Port) -> dict[str, Any]:
    """Put each result behind its call; a turn with an unknown outcome stays on the table until somebody knows."""
    results = {result["call_id"]: result for result in state.get("results") or ()}
    turn = [_with_result(call, results.get(call["id"])) for call in state["turn"]]
    usage = add_seconds(state["usage"], port.elapsed() + max((r["seconds"] for r in results.values()), default=0.0))
    usage = add_cost(usage, sum(result.get("cost_nano", 0) for result in results.values()))
    if any(call["verdict"] in (Verdict.UNKNOWN, Verdict.HELD) for call in turn):
        return {"turn": turn, "usage": usage}
    seen = [_seen(call, port) for call in turn]
    window, loops = next_window(state["thread"]["window"], seen, port.spec.loops)
    told = told_of([{**call, "loop": loops[n]} if n in loops else call for n, call in enumerate(turn)], state, port)
    update: dict[str, Any] = {**told, "turn": [], "usage": usage, "thread": {**state["thread"], "window": window}}
    if failed := _failure(turn):
        return {**update, "run": {**state["run"], "stop": StopReason.ERROR, "error": failed}}
    over = _handed_over(turn, port)
    return {**update, "run": {**state["run"], "stop": StopReason.ESCALATED, "answer": over}} if over else update


def _seen(call: Call, port: Port) -> Seen:
    """Return what the loop guard sees of the call: as the model proposed it, whatever a person made of it."""
    args, text, outcome = call.get("proposed", call["args"]), text_of(call), outcome_of(call)
    failed = outcome not in (Outcome.DONE, Outcome.ANSWERED) or text.casefold().startswith("error")
    return Seen(
        tool=call["name"] if call["name"] in port.spec.tools else "",
        call=call_key(call["name"], args),
        result=result_key(text),
        way=way_of(text, args) if failed else "",
        refused=call["verdict"] == Verdict.NOT_RUN and call["by"] == LOOP_GUARD,
        rejected=outcome == Outcome.REJECTED,
    )


def _with_result(call: Call, result: Result | None) -> Call:
    if result is None:
        return call
    if result["outcome"] == Outcome.UNKNOWN:
        return {**call, "verdict": Verdict.UNKNOWN, "why": result["text"], "effect": result.get("effect", "")}
    if result.get("asks") == Question.PARKED:  # its verdict, and whose it is, holds when it goes on
        return {**call, "verdict": Verdict.HELD, "question": Question.PARKED, "held": result}
    if question := result.get("asks"):
        why = excerpt(result["text"], 500)
        return {**call, "verdict": Verdict.HELD, "why": why, "question": question, "held": result}
    return {**call, "result": result}


def _failure(turn: Iterable[Call]) -> str:
    """Say which failure ends the run; empty when none does."""
    for call in turn:
        result = call.get("result")
        if result and result.get("stops"):
            return f"{call['name']} failed: {excerpt(result['text'].removeprefix('ERROR: '), 500)}"
    return ""


def _handed_over(turn: Iterable[Call], port: Port) -> str:
    """Return what a tool said that handed the matter over to a person; empty when none did."""
    for call in turn:
        contract = port.spec.tools.get(call["name"])
        if contract and contract.hands_over and outcome_of(call) == Outcome.DONE:
            return show(text_of(call), port.spec.caps.result, "").text
    return ""
