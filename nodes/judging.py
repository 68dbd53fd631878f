"""The guard's third moment: what came of the questions, read from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopwright.checkpoints import Approval, Ledger
from loopwright.state import (
    CANCEL,
    EXPIRE,
    NOT_HAPPENED,
    AgentState,
    Answer,
    Call,
    Outcome,
    Question,
    RunStatus,
    StopReason,
    Verdict,
    excerpt,
    instant_result,
)

from .port import Port
from .questions import WAKE, approval_id, parse_answer, question_of
from .screening import edited_call, refuse_decision, screen_call


async def judge(state: AgentState, port: Port) -> dict[str, Any]:
    """Turn the decisions on the open questions of the turn into verdicts.

    A resume only wakes the run: what counts stands in the ledger. A raw answer (Studio, a chat UI) becomes a decision
    there, by whoever is authenticated; one that is no decision leaves the question open, with `error` set.
    """
    ledger = await port.ledger()
    asked = {call["approval"]: call for call in state["turn"] if call["verdict"] == Verdict.ASK}
    standing = await port.ask(ledger, ledger.approvals.standing, list(asked))
    if len(standing) < len(asked):
        await _ensure_open(list(asked.values()), state, port, ledger)
    errors: dict[str, str] = {}
    for answer in state.get("answers") or ():
        call = asked.get(answer["approval"])
        if call is not None and answer["value"] != WAKE:
            errors[answer["approval"]] = await _record(call, answer, state, port, ledger)
    standing = await port.ask(ledger, ledger.approvals.standing, list(asked))
    turn = [
        _judged(call, standing.get(call["approval"]), errors.get(call["approval"], ""), state, port)
        if call["verdict"] == Verdict.ASK
        else call
        for call in state["turn"]
    ]
    fresh = [call for call in turn if call["verdict"] == Verdict.ASK and call["approval"] not in asked]
    if fresh:
        await _ensure_open(fresh, state, port, ledger)
    if not any(call["verdict"] == Verdict.ASK for call in turn):
        await port.ask(ledger, ledger.runs.set_status, state["run"]["id"], RunStatus.RUNNING)
    return {"turn": turn, "run": _run_after(state, standing)}


def _run_after(state: AgentState, standing: Mapping[str, Approval]) -> Mapping[str, Any]:
    """Note in the run that somebody cancelled it, instead of answering."""
    for approval in standing.values():
        if approval.decision and approval.decision["type"] == CANCEL:
            return {**state["run"], "stop": StopReason.CANCELLED, "cancelled_by": approval.decided_by}
    return state["run"]


async def _ensure_open(calls: list[Call], state: AgentState, port: Port, ledger: Ledger) -> None:
    """Teach the questions to a ledger that does not know them, such as a new one beside an old saver."""
    questions = [question_of(call, state["run"]["id"]) for call in calls]
    await port.ask(ledger, ledger.approvals.open, state["run"]["id"], port.place.thread_id, questions)


async def _record(call: Call, answer: Answer, state: AgentState, port: Port, ledger: Ledger) -> str:
    """Record a raw answer as a decision; return why it could not be taken, or nothing."""
    decision = parse_answer(answer["value"])
    if decision is None:
        said = excerpt(repr(answer["value"]), 100)
        return f"{said} is no decision; send {{'type': 'approve' | 'edit' | 'reject' | 'respond', …}}"
    if wrong := refuse_decision(call, decision, state, port.spec):
        return wrong
    by = answer["by"] or "anonymous"
    await port.ask(ledger, ledger.decide, call["approval"], decision, by)
    return ""


def _judged(call: Call, approval: Approval | None, error: str, state: AgentState, port: Port) -> Call:
    """Return the call with the verdict that the decision means."""
    if approval is None or approval.decision is None:
        return {**call, "error": error} if error else call
    decision, by = approval.decision, approval.decided_by
    decided: Call = {**call, "by": by}
    match decision["type"]:
        case "approve":
            return {**decided, "verdict": Verdict.ALLOW, "why": f"approved by {by}"}
        case "edit":
            return _edited(decided, decision, by, state, port)
        case "respond":
            return _answered(decided, str(decision["message"]), by)
        case "reject":
            return _rejected(decided, str(decision.get("message", "")), by)
        case type_ if type_ == NOT_HAPPENED:
            return _anew(decided, state, port)
        case type_ if type_ == EXPIRE:
            return {**decided, "verdict": Verdict.DENY, "why": "not run: nobody approved it in time"}
        case _:
            return {**decided, "verdict": Verdict.NOT_RUN, "why": f"not run: cancelled by {by}"}


def _edited(call: Call, decision: Mapping[str, Any], by: str, state: AgentState, port: Port) -> Call:
    """Judge edited arguments anew; the person who edited has decided about what a rule would only ask."""
    edited = screen_call(edited_call(call, decision), state, port.spec)
    if edited["verdict"] in (Verdict.ALLOW, Verdict.ASK):
        return {**edited, "verdict": Verdict.ALLOW, "why": f"edited by {by}", "by": by}
    return edited


def _answered(call: Call, text: str, by: str) -> Call:
    outcome = Outcome.DONE if call["question"] == Question.OUTCOME else Outcome.ANSWERED
    result = instant_result(call["id"], outcome, text)
    return {**call, "verdict": Verdict.ANSWERED, "why": f"answered by {by}", "result": result}


def _rejected(call: Call, reason: str, by: str) -> Call:
    said = f": {reason}" if reason else ""
    if call["question"] == Question.OUTCOME:
        why = f"it did not happen and shall not run, says {by}{said}"
    else:
        why = f"rejected by {by}{said}"
    return {**call, "verdict": Verdict.DENY, "why": why}


def _anew(call: Call, state: AgentState, port: Port) -> Call:
    """Put a call on the table again whose effect did not happen: screened and asked anew, under a new claim."""
    fresh: Call = {**call, "attempt": call["attempt"] + 1, "question": Question.APPROVAL, "effect": ""}
    screened = screen_call(fresh, state, port.spec)
    if screened["verdict"] != Verdict.ASK:
        return screened
    contract = port.spec.tools[call["name"]]
    number = approval_id(
        screened,
        schema=contract.schema.model_json_schema(),
        thread_id=port.place.thread_id,
        run_id=state["run"]["id"],
        step=state["usage"]["steps"],
    )
    return {**screened, "approval": number}
