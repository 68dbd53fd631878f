"""`guard`: judges every proposal, asks a person, and ends the run.

It has three moments about calls, each a super-step of its own, so that nothing is computed twice on resume: *screen*
writes verdicts, *ask* does one thing (`interrupt`), *judge* reads the decision from the ledger.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, assert_never

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.types import interrupt

from loopwright.policy import bounds_of, calls_are_used_up, limit_met, name_limit, over_limit
from loopwright.state import (
    NUDGE,
    AgentState,
    Call,
    CallTools,
    Decision,
    FinalAnswer,
    Malformed,
    Outcome,
    Purpose,
    Question,
    Refused,
    RunRecord,
    StopReason,
    UsageRecord,
    Verdict,
    add_run,
    add_seconds,
    instant_result,
    is_too_deep,
    last_text,
    load_decision,
    new_call,
)

from .answering import Judged, hear_reflection, judge_answer
from .branches import enter, is_entered, named
from .judging import ask_anew, judge
from .ladder import climb
from .parking import judge_parking, open_parking, payload_of_run, waits_for_model
from .port import Port
from .questions import LEFT_UNKNOWN, approval_id, failed, payload_of, question_of
from .screening import admit, price_of, screen_call
from .spec import AgentSpec

MAX_MALFORMED = 3
"""So many unusable replies in a row end the run: empty, cut, unreadable, or with calls of which none can be meant."""
NUDGES = {
    "unreadable": "Your last reply could not be read.",
    "empty": "Your last reply was empty. Call a tool, or give the final answer as text.",
    "truncated": "Your last reply was cut off at its length limit. Be brief: call a tool, or give the final answer.",
}


class Moment(StrEnum):
    """What the guard is there for, this super-step."""

    SCREEN = "screen"
    ASK = "ask"
    JUDGE = "judge"
    OPEN = "open"
    """Ask about an outcome that is unknown, or how a call is to go on that was begun; or tell until when one waits."""
    CONCLUDE = "conclude"
    """The model proposed no calls."""
    STOP = "stop"
    """A limit is met."""


def moment_of(state: AgentState) -> Moment:
    """Tell from the state alone what is to be done."""
    turn = state.get("turn") or []
    decision = state.get("decision")
    if decision:
        return Moment.SCREEN if decision["kind"] == "call_tools" else Moment.CONCLUDE
    if any(call["verdict"] in (Verdict.UNKNOWN, Verdict.HELD) for call in turn):
        return Moment.OPEN
    if any(call["verdict"] == Verdict.ASK for call in turn):
        return Moment.JUDGE if state.get("answers") else Moment.ASK
    return _moment_of_parked(state) if waits_for_model(state["run"]) else Moment.STOP


def _moment_of_parked(state: AgentState) -> Moment:
    if state.get("answers"):
        return Moment.JUDGE
    return Moment.ASK if state["run"].get("parked", {}).get("approval") else Moment.OPEN


async def guard(state: AgentState, port: Port) -> dict[str, Any]:
    """Do what the moment asks for."""
    moment = moment_of(state)
    if not is_entered(state, port):
        state = named(state, port)
        if moment is Moment.ASK:
            return _timed(await enter(state, port), state, port)
    match moment:
        case Moment.SCREEN:
            return await _screen(state, port)
        case Moment.ASK:
            return _ask(state, port)
        case Moment.JUDGE:
            judged = judge_parking if waits_for_model(state["run"]) else judge
            return _timed(await judged(state, port), state, port)
        case Moment.OPEN:
            if waits_for_model(state["run"]):
                return _timed(await open_parking(state, port), state, port)
            return await _open_outcomes(state, port)
        case Moment.CONCLUDE:
            return await _conclude(state, port)
        case Moment.STOP:
            return await _stop(state, port)


async def _screen(state: AgentState, port: Port) -> dict[str, Any]:
    """Write a verdict for every call into the state, and a row into the ledger for each that must be asked."""
    decision = load_decision(state["decision"] or {})
    if not isinstance(decision, CallTools):
        raise TypeError(decision)
    usage = state["usage"]
    run: RunRecord = state["run"]
    bounds = port.spec.bounds(run, state["thread"])
    turn: list[Call] = []
    for ordinal, asked in enumerate(decision.calls):
        call: Call = new_call(asked.id, asked.name, asked.args, ordinal=ordinal, thought=decision.thought)
        call = (
            {**call, "why": asked.error, "by": "the schema"}
            if asked.error
            else screen_call(call, {**state, "turn": turn}, port.spec, port.context)
        )
        call = climb(call, state, port.spec, can_ask=port.place.has_saver)
        if call["verdict"] == Verdict.ASK:
            is_words = port.spec.tools[call["name"]].by_person
            call = _with_question(call, Question.WORDS if is_words else Question.APPROVAL, state, port)
        call, usage = admit(call, usage, bounds, cost_nano=price_of([*turn, call], port.spec))
        turn.append(call)
    if any(call["verdict"] == Verdict.NOT_RUN for call in turn) and calls_are_used_up(bounds, usage):
        run = {**run, "stop": StopReason.MAX_TOOL_CALLS}
    run = _count_unusable(run, decision, port.spec)
    if _nobody_to_ask(turn):
        run = {**run, "stop": StopReason.DENIED}
    turn = await _open_questions(turn, state, port)
    return {"decision": None, "turn": turn, "run": run, "usage": add_seconds(usage, port.elapsed())}


def _count_unusable(run: RunRecord, decision: CallTools, spec: AgentSpec) -> RunRecord:
    """Count a turn of which no call can be meant; one that can starts the count anew."""
    if any(not call.error and call.name in spec.tools for call in decision.calls):
        return {**run, "malformed": 0} if run.get("malformed") else run
    counted: RunRecord = {**run, "malformed": run.get("malformed", 0) + 1}
    return {**counted, "stop": StopReason.MALFORMED} if counted["malformed"] >= MAX_MALFORMED else counted


_NOBODY = "it would have to be asked about, and a run without a checkpointer has nobody to ask"


def _with_question(call: Call, question: Question, state: AgentState, port: Port) -> Call:
    """Bind a question to the call; where nobody can be asked, the answer is no."""
    if not port.place.has_saver:
        return {**call, "verdict": Verdict.DENY, "why": _NOBODY, "by": "default"}
    contract = port.spec.tools[call["name"]]
    asked: Call = {**call, "question": question, "verdict": Verdict.ASK}
    number = approval_id(
        asked,
        schema=contract.identity,
        thread_id=port.place.thread_id,
        run_id=state["run"]["id"],
        step=state["usage"]["steps"],
    )
    return {**asked, "approval": number}


async def _open_questions(turn: list[Call], state: AgentState, port: Port) -> list[Call]:
    """Write the turn's questions into the ledger, in one transaction; the run waits from then on.

    Returns the turn as it is asked about: after a fork, what was decided on another branch is a question of its own.
    """
    asked = [call["approval"] for call in turn if call["verdict"] == Verdict.ASK]
    if not asked:
        return turn
    ledger, run_id = await port.ledger(), state["run"]["id"]
    standing = await port.ask(ledger, ledger.approvals.standing, asked)
    turn = ask_anew(turn, standing, state["run"].get("branch") or port.place.checkpoint_id, state, port)
    questions = [question_of(call, run_id) for call in turn if call["verdict"] == Verdict.ASK]
    await port.ask(ledger, ledger.ask, run_id, port.place.thread_id, questions)
    return turn


def _nobody_to_ask(turn: list[Call]) -> bool:
    return any(call["verdict"] == Verdict.DENY and call["why"] == _NOBODY for call in turn)


def _ask(state: AgentState, port: Port) -> dict[str, Any]:
    """Pause until somebody resumes. Nothing before `interrupt` has an effect, and nothing after it can raise."""
    asked = sorted((call for call in state["turn"] if call["verdict"] == Verdict.ASK), key=_is_parked)
    shown = payload_of(asked[0], state["run"]["id"]) if asked else payload_of_run(state["run"])
    value = interrupt(shown)
    place, id_ = port.place, asked[0]["id"] if asked else ""
    answer = {"call": id_, "value": value, "by": place.user, "roles": [*place.roles], "at": place.checkpoint_id}
    if is_too_deep(value):  # nothing could keep it
        answer |= {"value": None, "wrong": "the answer is nested too deep to be kept"}
    return {"answers": [answer]}


def _is_parked(call: Call) -> bool:
    """Tell whether a call waits for nobody's answer: whoever is asked about another one comes first."""
    return call["question"] == Question.PARKED


async def _open_outcomes(state: AgentState, port: Port) -> dict[str, Any]:
    """Ask about each effect of which nobody knows whether it happened, and about each call that is held."""
    if not port.place.has_saver:
        return _timed(_left_open(state), state, port)
    turn = [_opened(call, state, port) for call in state["turn"]]
    turn = await _open_questions(turn, state, port)
    return _timed({"turn": turn}, state, port)


def _opened(call: Call, state: AgentState, port: Port) -> Call:
    if call["verdict"] not in (Verdict.UNKNOWN, Verdict.HELD):
        return call
    if call["name"] not in port.spec.tools:
        return {**call, "verdict": Verdict.NOT_RUN, "why": "not run to its end: the tool is gone"}
    question = Question.OUTCOME if call["verdict"] == Verdict.UNKNOWN else Question(call["question"])
    if question is Question.PARKED:
        call = {**call, "parkings": call.get("parkings", 0) + 1}
    return _with_question({**call, "error": ""}, question, state, port)


def _left_open(state: AgentState) -> dict[str, Any]:
    """Without anybody to ask, tell the model not to repeat what is unknown, and end the run."""
    state = {**state, "turn": [_left_held(call) if call["verdict"] == Verdict.HELD else call for call in state["turn"]]}
    if any(call["verdict"] == Verdict.UNKNOWN for call in state["turn"]):
        return _left_unknown(state)
    return {"turn": state["turn"], "run": {**state["run"], "stop": StopReason.DENIED}}


def _left_held(call: Call) -> Call:
    is_failure = call["question"] == Question.FAILURE
    return failed(call) if is_failure else {**call, "verdict": Verdict.DENY, "why": _NOBODY, "by": "default"}


def _left_unknown(state: AgentState) -> dict[str, Any]:
    turn = [
        {**call, "verdict": Verdict.NOT_RUN, "result": instant_result(call["id"], Outcome.UNKNOWN, LEFT_UNKNOWN)}
        if call["verdict"] == Verdict.UNKNOWN
        else call
        for call in state["turn"]
    ]
    names = ", ".join(call["name"] for call in state["turn"] if call["verdict"] == Verdict.UNKNOWN)
    error = f"nobody knows whether {names} happened, and a run without a checkpointer has nobody to ask"
    return {"turn": turn, "run": {**state["run"], "stop": StopReason.ERROR, "error": error}}


async def _conclude(state: AgentState, port: Port) -> dict[str, Any]:
    """Judge a reply without calls."""
    decision = load_decision(state["decision"] or {})
    purpose = state["run"].get("purpose")
    if purpose == Purpose.WRAP_UP:
        return await _wrapped_up(decision, state, port)
    if purpose == Purpose.REFLECT:
        return await _judged(hear_reflection(decision, state, port), state, port)
    if purpose == Purpose.SUMMARISE:
        return _timed({"run": {**state["run"], "purpose": Purpose.DECIDE}, "decision": None}, state, port)
    match decision:
        case FinalAnswer(text):
            return await _judged(await judge_answer(text, state, port), state, port)
        case Refused(text):
            return await _end(_ended(state["run"], StopReason.REFUSED, answer=text), state, port)
        case Malformed():
            return await _nudge(decision, state, port)
        case CallTools():
            raise TypeError(decision)
        case _:
            assert_never(decision)


async def _judged(judged: Judged, state: AgentState, port: Port) -> dict[str, Any]:
    """End the run with its answer, or let it go on."""
    run = judged.run
    if judged.reason is None:
        return _timed({"messages": [*judged.messages], "run": run, "decision": None}, state, port)
    over = over_limit(bounds_of(port.spec.limits, run, state["thread"]), state["usage"])
    is_answer = judged.reason is StopReason.ANSWERED
    return await _end(
        _ended(run, judged.reason, answer=run["answer"], over_limit=over if is_answer else None), state, port
    )


async def _wrapped_up(decision: Decision, state: AgentState, port: Port) -> dict[str, Any]:
    """End a run that has met a limit, with its last words; without any, with the best answer so far."""
    said = decision.text if isinstance(decision, FinalAnswer) else ""
    answer = said or _best_answer(state)
    return await _end(_ended(state["run"], StopReason(state["run"].get("stop", "")), answer=answer), state, port)


def _best_answer(state: AgentState) -> str:
    return state["run"].get("answer") or last_text(state["messages"])


_UNUSABLE = {
    "empty": StopReason.EMPTY,
    "truncated": StopReason.TRUNCATED,
    "unreadable": StopReason.MALFORMED,
}


async def _nudge(reply: Malformed, state: AgentState, port: Port) -> dict[str, Any]:
    """Tell the model what was wrong with its reply; after some in a row, end."""
    count = state["run"].get("malformed", 0) + 1
    if count >= MAX_MALFORMED:
        answer = reply.text or last_text(state["messages"])
        return await _end(_ended(state["run"], _UNUSABLE[reply.why], answer=answer), state, port)
    told = HumanMessage(reply.told or NUDGES[reply.why], id=f"{NUDGE}{state['run']['id']}-{state['usage']['steps']}")
    run: RunRecord = {**state["run"], "malformed": count}
    return _timed({"messages": [told], "run": run, "decision": None}, state, port)


async def _stop(state: AgentState, port: Port) -> dict[str, Any]:
    """End a run that may not go on; one that met a limit may say first what it found."""
    run: RunRecord = state["run"]
    reason = limit_met(port.spec.bounds(run, state["thread"]), state["usage"], run, state["thread"])
    if reason is None:
        return _timed({"turn": _lost_calls(state)}, state, port)
    run = {**run, "limit": run.get("limit") or name_limit(reason, port.spec.limits, run, state["thread"])}
    if _has_last_words(reason, state, port):
        run = {**run, "purpose": Purpose.WRAP_UP, "stop": reason}
        return _timed({"run": run}, state, port)
    return await _end(_ended(run, reason, answer=_best_answer(state)), state, port)


_WRAPPED_UP = (
    StopReason.MAX_STEPS,
    StopReason.MAX_TOOL_CALLS,
    StopReason.MAX_TOKENS,
    StopReason.MAX_COST,
    StopReason.DEADLINE,
    StopReason.LOOP,
)


def _has_last_words(reason: StopReason, state: AgentState, port: Port) -> bool:
    """Tell whether one more call is due: where something was found, and once."""
    is_due = port.spec.wrap_up and state["run"].get("purpose") != Purpose.WRAP_UP
    return is_due and reason in _WRAPPED_UP and state["usage"]["steps"] > 0


def _lost_calls(state: AgentState) -> list[Call]:
    """Return the calls that wait in the transcript, for a stored state that lacks its turn: none of them may run."""
    answered = {message.tool_call_id for message in state["messages"] if isinstance(message, ToolMessage)}
    asked = next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), AIMessage(""))
    open_ = [call for call in asked.tool_calls if call["id"] and call["id"] not in answered]
    if not open_:
        raise RuntimeError("the guard was called with nothing to judge")
    why = "not run: what was known of it is lost"
    calls = [new_call(str(one["id"]), one["name"], one["args"], ordinal=number) for number, one in enumerate(open_)]
    return [{**call, "verdict": Verdict.NOT_RUN, "why": why} for call in calls]


def _ended(run: RunRecord, reason: StopReason, *, answer: str, over_limit: StopReason | None = None) -> RunRecord:
    ended: RunRecord = {**run, "status": reason.status, "reason": reason, "answer": answer}
    return {**ended, "over_limit": over_limit} if over_limit else ended


async def _end(run: RunRecord, state: AgentState, port: Port) -> dict[str, Any]:
    """Write the run's end into the state, and into the ledger.

    A run that `Runs` drives is ended in the ledger by `Runs`, once this checkpoint is stored: in the other order a
    crash in between would leave a run that the ledger takes for ended, without its answer. Of a run without a saver
    nothing is kept: the ledger in memory lives as long as the agent, and would only grow.
    """
    usage = add_seconds(state["usage"], port.elapsed())
    if not port.place.has_saver:
        ledger = await port.ledger()
        await port.ask(ledger, ledger.forget, run["id"])
    elif not port.place.run_id:
        ledger = await port.ledger()
        cost, thread = usage["cost_nano"], port.place.thread_id
        await port.ask(ledger, ledger.end_run, run["id"], StopReason(run["reason"]), thread_id=thread, cost_nano=cost)
    return {"run": run, "usage": usage, "thread": add_run(state["thread"], usage), "decision": None, "turn": []}


def _timed(update: dict[str, Any], state: AgentState, port: Port) -> dict[str, Any]:
    """Count this execution's own time."""
    usage: UsageRecord = update.get("usage", state["usage"])
    return {**update, "usage": add_seconds(usage, port.elapsed())}
