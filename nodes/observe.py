"""`observe`: takes in a task, or what came of the calls on the table."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.checkpoints import NEWER, PLAIN_INVOKE, Begun, EffectRow, EffectStatus, Ledger
from loopwright.errors import ThreadNotFound
from loopwright.policy import Kind, Seen, call_key, next_window, result_key, way_of
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
    TrailEntry,
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
from loopwright.tools import FULL_TEXT, Shown, reader_id, shares, show

from .bringing import with_brought
from .claims import claim_of, claim_on_branch, place_of_call
from .context import Fence, is_users, source_of, unrecorded
from .extending import extensions_to_take, go_on
from .ladder import LOOP_GUARD, LOOP_NOTES
from .parking import unparked
from .port import Port
from .questions import LEFT_UNKNOWN, failed
from .screening import call_digest

logger = logging.getLogger(__name__)

TASK_CHARACTERS = 200
SUPERSEDED = "not run: superseded by a newer message"
HALFWAY = "not run to its end: superseded by a newer message"
CANCELLED = "not run to its end: cancelled, and then superseded by a newer message"

_OUTCOMES = {
    Verdict.DENY: Outcome.DENIED,
    Verdict.INVALID: Outcome.INVALID,
    Verdict.NOT_RUN: Outcome.NOT_RUN,
    Verdict.ASK: Outcome.NOT_RUN,
    Verdict.ALLOW: Outcome.NOT_RUN,
    Verdict.UNKNOWN: Outcome.UNKNOWN,
    Verdict.HELD: Outcome.NOT_RUN,
}

_OPEN = (Verdict.ALLOW, Verdict.ASK, Verdict.UNKNOWN, Verdict.HELD)
"""Calls with these verdicts would have gone on, had no newer message come in between."""
_NEVER_BEGUN = (Outcome.INVALID, Outcome.DENIED, Outcome.REJECTED, Outcome.NOT_RUN)
"""Their tool messages are marked `executed: False`, so that nobody counts them as calls of the tool."""


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
    return _told(closed, state, port)


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
    told = _told([{**call, "loop": loops[n]} if n in loops else call for n, call in enumerate(turn)], state, port)
    update: dict[str, Any] = {**told, "turn": [], "usage": usage, "thread": {**state["thread"], "window": window}}
    if failed := _failure(turn):
        return {**update, "run": {**state["run"], "stop": StopReason.ERROR, "error": failed}}
    over = _handed_over(turn, port)
    return {**update, "run": {**state["run"], "stop": StopReason.ESCALATED, "answer": over}} if over else update


def _seen(call: Call, port: Port) -> Seen:
    """Return what the loop guard sees of the call: as the model proposed it, whatever a person made of it."""
    args, text, outcome = call.get("proposed", call["args"]), _text(call), _outcome(call)
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
        if contract and contract.hands_over and _outcome(call) == Outcome.DONE:
            return show(_text(call), port.spec.caps.result, "").text
    return ""


def _told(turn: list[Call], state: AgentState, port: Port) -> dict[str, Any]:
    """Return the turn as tool messages, in call order, as trail entries, and with the sources of foreign text."""
    run_id, step = state["run"]["id"], state["usage"]["steps"]
    turn, written = _folded(turn, state, port)
    fitting = zip(turn, shares([len(_text(call)) for call in turn], port.spec.caps), strict=True)
    messages = [_message(call, share, run_id, step, port) for call, share in fitting]
    told: dict[str, Any] = {"messages": messages, "trail": [_entry(call, run_id, step) for call in turn]}
    taint = [
        source_of(call, message, _text(call), run_id, step)
        for call, message in zip(turn, messages, strict=True)
        if _is_foreign(call, port)
    ]
    return {**written, **told, "taint": taint} if taint else {**written, **told}


def _folded(turn: list[Call], state: AgentState, port: Port) -> tuple[list[Call], Mapping[str, Any]]:
    """Return the turn, and what its calls' updates make of the open channels, each told with its result, once.

    A call alone was seen to fit when it ran. Where several do not fit together, the later one says so.
    """
    updates = [result.get("update", {}) if (result := call.get("result")) else {} for call in turn]
    if not any(updates):
        return turn, {}
    folded = port.spec.open_channels.folded(updates, state)
    return [_marked(call, folded.refused.get(place)) for place, call in enumerate(turn)], folded.written


def _marked(call: Call, refused: str | None) -> Call:
    """Return a call whose result says that its update was not taken in."""
    result = call.get("result")
    if refused is None or result is None:
        return call
    logger.warning("an update by %s was not taken in: %s", call["name"], refused, extra={"action": "update_refused"})
    text = f"{result['text']}\n\nERROR: its update of the state was not taken in: {refused}"
    return {**call, "result": {**result, "text": text}}


def _is_foreign(call: Call, port: Port) -> bool:
    """Tell whether strangers may have written what the model reads about a call."""
    contract = port.spec.tools.get(call["name"])
    return contract is not None and contract.untrusted and _outcome(call) in (Outcome.DONE, Outcome.ERROR)


def _message(call: Call, share: int, run_id: str, step: int, port: Port) -> ToolMessage:
    outcome = _outcome(call)
    name = f"tool-{run_id}-{step}-{call['ordinal']}"
    shown = show(_text(call), share, reader_id(name))
    fence = Fence(call["name"], f"{run_id}/{step}/{call['ordinal']}") if _is_foreign(call, port) else None
    return ToolMessage(
        _noted(call, _content(call, shown, fence)),
        artifact=_artifact(call, shown),
        tool_call_id=call["id"],
        name=call["name"] or "unknown",
        id=name,
        status="success" if outcome in (Outcome.DONE, Outcome.ANSWERED) else "error",
        additional_kwargs={"executed": False} if outcome in _NEVER_BEGUN else {},
    )


def _content(call: Call, shown: Shown, fence: Fence | None) -> Any:
    """Return the message's content; text by strangers is fenced.

    Blocks are shown as they are while their texts fit; else what is left is text.
    """
    result = call.get("result")
    blocks = result.get("blocks") if result else None
    if blocks and not shown.notice:
        return [{**one, "text": fence.around(one["text"])} if fence and "text" in one else one for one in blocks]
    return (fence.around(shown.text) if fence else shown.text) + shown.notice


def _noted(call: Call, content: Any) -> Any:
    """Put the loop guard's note, if there is one, behind what the tool said."""
    kind = call.get("loop")
    if not kind:
        return content
    note = LOOP_NOTES[Kind(kind)]
    return [*content, {"type": "text", "text": note}] if isinstance(content, list) else f"{content}\n\n{note}"


def _artifact(call: Call, shown: Shown) -> Any:
    """Return what is kept beside the content: the tool's own artifact, and the whole of a text that was shortened."""
    result = call.get("result")
    own = result.get("artifact") if result else None
    return {"type": FULL_TEXT, "text": _text(call), "artifact": own} if shown.notice else own


def _text(call: Call) -> str:
    """Return what there is to say about a call; of a result the whole text."""
    result = call.get("result")
    if result:
        return result["text"]
    why = call["why"]
    return why if why.startswith("not run") else f"ERROR: {why}"


def _outcome(call: Call) -> Outcome:
    result = call.get("result")
    if result:
        return Outcome(result["outcome"])
    if call["verdict"] == Verdict.DENY and call["approval"]:
        return Outcome.REJECTED
    return _OUTCOMES.get(Verdict(call["verdict"]), Outcome.NOT_RUN)


def _entry(call: Call, run_id: str, step: int) -> TrailEntry:
    result = call.get("result")
    entry = TrailEntry(
        run=run_id,
        step=step,
        tool=call["name"],
        args=call["args"],
        digest=call_digest(call),
        thought=excerpt(call["thought"]),
        verdict=call["verdict"],
        why=excerpt(call["why"]),
        by=call["by"],
        outcome=_outcome(call),
        observation=excerpt(_text(call)),
        began=result["began"] if result else 0.0,
        seconds=result["seconds"] if result else 0.0,
    )
    if "loop" in call:
        entry["loop"] = call["loop"]
    if result and "tries" in result:
        entry["tries"] = result["tries"]
    if result and result.get("cost_nano"):
        entry["cost_nano"] = result.get("cost_nano", 0)
    proposed = call.get("proposed")
    return {**entry, "proposed": proposed} if proposed else entry
