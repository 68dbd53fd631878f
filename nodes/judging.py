"""The guard's third moment: what came of the questions, read from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from loopwright.checkpoints import ROLES, Answered, Approval, Decided, Ledger
from loopwright.policy import Bounds, refuse_price
from loopwright.state import (
    CANCEL,
    EXPIRE,
    NOT_HAPPENED,
    AgentState,
    Answer,
    Call,
    Outcome,
    Person,
    Question,
    RunRecord,
    StopReason,
    UsageRecord,
    Verdict,
    excerpt,
    instant_result,
    remove_tool_call,
    storable,
)

from .bringing import with_brought
from .claims import place_of_call
from .port import Port
from .questions import LEFT_UNKNOWN, WAKE, approval_id, failed, needs_of, question_meant, question_of, read_answer
from .screening import admit, call_digest, edited_call, price_of, refuse_decision, refuse_edit, screen_call
from .spec import AgentSpec


async def judge(state: AgentState, port: Port) -> dict[str, Any]:
    """Turn the decisions on the open questions of the turn into verdicts.

    A resume only wakes the run: what counts stands in the ledger. A raw answer (Studio, a chat UI) becomes a decision
    there, by whoever is authenticated; one that is no decision leaves the question open, with `error` set.
    """
    ledger = await port.ledger()
    pause = next((answer["at"] for answer in state.get("answers") or ()), "")
    state = {**state, "turn": [_bound(call, state, port) for call in state["turn"]]}
    table = await _on_this_branch(state, pause, port, ledger)
    asked = [call for call in table if call["verdict"] == Verdict.ASK]
    answers, errors = _heard(asked, state, port)
    names = [call["approval"] for call in asked]
    standing, decided = await port.ask(ledger, ledger.take, state["run"]["id"], names, pause, answers)
    errors |= {name: _told(decided[name], answer.by) for name, answer in answers.items()}
    turn = [
        _judged(call, standing.get(call["approval"]), errors.get(call["approval"]), state, port)
        if call["verdict"] == Verdict.ASK
        else call
        for call in table
    ]
    turn = await _with_what_came(turn, state, port, ledger)
    turn = _without_rejected_twins(turn)
    run: RunRecord = state["run"]
    if by := _cancelled_by(standing):
        run = {**run, "stop": StopReason.CANCELLED, "cancelled_by": by}
        turn = [_cancelled(call, by) if _is_to_go_on(call) else call for call in turn]
    bounds = port.spec.bounds(run, state["thread"])
    pairs = zip(state["turn"], turn, strict=True)
    turn = [_if_affordable(old, new, turn, state["usage"], bounds, port.spec) for old, new in pairs]
    turn, usage = _recount(state["turn"], turn, state["usage"], bounds, port.spec)
    fresh = [call for call in turn if call["verdict"] == Verdict.ASK and call["approval"] not in standing]
    if fresh:
        await ensure_open(fresh, state, port, ledger)
    return {"turn": turn, "run": run, "usage": usage}


async def _with_what_came(turn: list[Call], state: AgentState, port: Port, ledger: Ledger) -> list[Call]:
    """Add to calls whose outcome is known after all what they brought beside their text: a late worker has said so."""
    known = [call for call in turn if call["question"] == Question.OUTCOME and call["verdict"] == Verdict.ANSWERED]
    if not known:
        return turn
    run_id, step = state["run"]["id"], state["usage"]["steps"]
    where = {"thread_id": port.place.thread_id, "run_id": run_id}
    rows = {row.id: row for row in await port.ask(ledger, ledger.effects.of_run, run_id)}
    return [
        {**call, "result": with_brought(call["result"], row, place_of_call(call, step=step, **where))}
        if call in known and "result" in call and (row := rows.get(call["effect"])) is not None
        else call
        for call in turn
    ]


def _bound(call: Call, state: AgentState, port: Port) -> Call:
    """Return the call with the name of its question, which a state that another release wrote may lack."""
    if call["verdict"] != Verdict.ASK or call["approval"] or call["name"] not in port.spec.tools:
        return call
    return _with_approval(call, state, port)


async def _on_this_branch(state: AgentState, pause: str, port: Port, ledger: Ledger) -> list[Call]:
    """Return the turn with questions that can still be decided here; a ledger that does not know them learns of them.

    A thread that was forked from before a decision asks anew: what was decided counts on the branch that took it.
    """
    asked = [call["approval"] for call in state["turn"] if call["verdict"] == Verdict.ASK]
    standing = await port.ask(ledger, ledger.approvals.standing, asked)
    table = ask_anew(state["turn"], standing, pause, state, port)
    if table != state["turn"] or len(standing) < len(asked):
        await ensure_open([call for call in table if call["verdict"] == Verdict.ASK], state, port, ledger)
    return table


def ask_anew(
    turn: list[Call], standing: Mapping[str, Approval], place: str, state: AgentState, port: Port
) -> list[Call]:
    """Return the turn with a question of its own for each call whose decision another branch of the thread took.

    Args:
        turn: The calls on the table.
        standing: What the ledger knows of their questions.
        place: The checkpoint that the branch is named by; what it took itself still counts.
        state: For what the new question is bound to.
        port: Likewise.
    """
    taken = {approval.id for approval in standing.values() if approval.used_at not in ("", place)}
    return [_branched(call, place, state, port) if call["approval"] in taken else call for call in turn]


def _branched(call: Call, pause: str, state: AgentState, port: Port) -> Call:
    said = "it was decided on another branch of this thread; here it is asked anew"
    branched: Call = {**call, "branch": pause, "error": said}
    branched.pop("edited_by", None)  # an approval counts on the branch on which it was given
    branched.pop("votes", None)
    return _with_approval(branched, state, port)


NOBODY = "anonymous"
"""Who answers without a name."""
_BEFORE = ("", Question.APPROVAL, Question.PARKED)
"""A call that is asked about so has not run; any other was begun, or is itself what it takes of a person's time."""


def _has_begun(call: Call) -> bool:
    return call["question"] not in _BEFORE or bool(call.get("resumes"))


def _recount(
    before: list[Call], turn: list[Call], usage: UsageRecord, limits: Bounds, spec: AgentSpec
) -> tuple[list[Call], UsageRecord]:
    """Give back what was counted for calls that will not run after all, and count an edited call under its own tool."""
    counted: list[Call] = []
    for old, new in zip(before, turn, strict=True):
        is_counted = old["verdict"] in (Verdict.ASK, Verdict.ALLOW) and not _has_begun(old)
        is_other = new["verdict"] not in (Verdict.ALLOW, Verdict.ASK) or new["name"] != old["name"]
        call = new
        if is_counted and is_other:
            before_it = remove_tool_call(usage, old["name"])
            call, usage = admit(new, before_it, limits, cost_nano=price_of(turn, spec))
        counted.append(call)
    return counted, usage


def _if_affordable(  # noqa: PLR0917 -- what it was and is, among which others, and what bounds it
    old: Call, new: Call, turn: list[Call], usage: UsageRecord, limits: Bounds, spec: AgentSpec
) -> Call:
    """Return a call that is to run once more, or only now, as not run where its price does not fit any more.

    It was admitted with its turn; since then an earlier try of it may have cost something, or a call beside it.
    """
    is_later = old["verdict"] == Verdict.ASK and old["question"] != Question.APPROVAL and not new.get("result")
    if not is_later or new["verdict"] not in (Verdict.ALLOW, Verdict.ASK) or new["name"] not in spec.tools:
        return new
    before = [call for call in turn if call["ordinal"] <= new["ordinal"]]
    priced = spec.tools[new["name"]].price_nano
    why = refuse_price(limits, usage, price_of(before, spec)) if priced else ""
    return {**new, "verdict": Verdict.NOT_RUN, "why": why, "by": "the limits"} if why else new


def _without_rejected_twins(turn: list[Call]) -> list[Call]:
    """An edit cannot make a call run that a person has rejected in the same turn."""
    rejected = {call_digest(call): call["why"] for call in turn if call["verdict"] == Verdict.DENY and call["approval"]}
    return [
        {**call, "verdict": Verdict.DENY, "why": f"{rejected[call_digest(call)]} (the same call was refused before)"}
        if call.get("proposed") and _is_to_go_on(call) and call_digest(call) in rejected
        else call
        for call in turn
    ]


def _is_to_go_on(call: Call) -> bool:
    return call["verdict"] in (Verdict.ALLOW, Verdict.ASK) and not call.get("result")


def _cancelled_by(standing: Mapping[str, Approval]) -> str:
    """Return who cancelled the run, instead of answering; empty when nobody did."""
    return next((a.decided_by for a in standing.values() if a.decision and a.decision["type"] == CANCEL), "")


async def ensure_open(calls: list[Call], state: AgentState, port: Port, ledger: Ledger) -> None:
    """Teach the questions to a ledger that does not know them, such as a new one beside an old saver."""
    questions = [question_of(call, state["run"]["id"]) for call in calls]
    await port.ask(ledger, ledger.ask, state["run"]["id"], port.place.thread_id, questions)


def _heard(asked: list[Call], state: AgentState, port: Port) -> tuple[dict[str, Answered], dict[str, str]]:
    """Return, by approval, the raw answers that can be taken as decisions, and why the others cannot."""
    heard: dict[str, Answered] = {}
    errors: dict[str, str] = {}
    for answer in state.get("answers") or ():
        call = next((call for call in asked if answer["call"] == call["id"]), None)
        if call is None or answer["value"] == WAKE or call["question"] == Question.PARKED:
            continue
        read = _read(call, answer, state, port)
        if isinstance(read, str):
            errors[call["approval"]] = read
        else:
            heard[call["approval"]] = read
    return heard, errors


def _read(call: Call, answer: Answer, state: AgentState, port: Port) -> Answered | str:
    """Read a raw answer as a decision; a text says why it cannot be taken."""
    if wrong := answer.get("wrong"):
        return wrong
    if (meant := question_meant(answer["value"])) not in ("", call["approval"]):
        return f"this answers the question {excerpt(meant, 40)}, and another one is asked now"
    decision = read_answer(call, answer["value"])
    if decision is None:
        said = excerpt(repr(answer["value"]), 100)
        return f"{said} is no decision; send {{'type': 'approve' | 'edit' | 'reject' | 'respond', …}}"
    person = _person(answer)
    if wrong := refuse_decision(call, decision, person, state, port.spec, context=port.context):
        return wrong
    by, roles = (person.name, person.roles) if person else (NOBODY, ())
    return Answered(decision, by, roles)


def _told(decided: Decided, by: str) -> str:
    """Return why an answer was not taken although more are needed; empty where it was, or where all is decided."""
    has_voted = not decided.accepted and decided.approval.decision is None
    if has_voted and decided.approval.question == Question.OUTCOME:
        return "it is being run right now; what comes of it will be known"
    return f"{by} has approved this already; somebody else must, too" if has_voted else ""


def _person(answer: Answer) -> Person | None:
    """Return who answered, as the server knows them; None when it knows nobody."""
    name = storable(answer["by"])
    return Person(name, [role for role in answer.get("roles", ()) if role.strip()]) if name.strip() else None


def _judged(call: Call, approval: Approval | None, error: str | None, state: AgentState, port: Port) -> Call:
    """Return the call with the verdict that the decision means.

    Args:
        call: One that was asked about.
        approval: Its question as it stands.
        error: Why a raw answer could not be taken; empty when it was, None when there was none.
        state: For the rules that judge an edit.
        port: Likewise.
    """
    if approval is None or approval.decision is None:
        return _still_open(call, approval, error)
    if call["question"] == Question.PARKED and approval.decision["type"] != CANCEL:
        return _unparked(call, state, port)
    return _decided(call, approval.decision, approval.decided_by, state, port)


def _decided(call: Call, decision: Mapping[str, Any], by: str, state: AgentState, port: Port) -> Call:
    decided: Call = {**call, "by": by}
    match decision["type"]:
        case "approve":
            return _approved(decided, by, state, port)
        case "edit":
            return _edited(decided, decision, by, state, port)
        case "respond":
            return _answered(decided, decision, by)
        case "reject":
            return _rejected(decided, str(decision.get("message", "")), by)
        case type_ if type_ == NOT_HAPPENED:
            return _anew(decided, state, port)
        case type_ if type_ == EXPIRE:
            did = "answered" if call["question"] == Question.WORDS else "approved"
            return {**decided, "verdict": Verdict.DENY, "why": f"not run: nobody {did} it in time"}
        case _:
            return _cancelled(decided, by)


def _still_open(call: Call, approval: Approval | None, error: str | None) -> Call:
    """Ask again, with what was wrong with the last answer, and with who has approved so far."""
    asked: Call = call if error is None else {**call, "error": error}
    return {**asked, "votes": [*approval.votes]} if approval is not None and approval.votes else asked


def _approved(call: Call, by: str, state: AgentState, port: Port) -> Call:
    """Let the call run, if the question still names this very one: the tool, its schema and the arguments."""
    if not _is_same(call, state, port):
        return _changed(call)
    allowed: Call = {**call, "verdict": Verdict.ALLOW, "why": f"approved by {by}"}
    return _once_more(allowed, by, state, port) if call["question"] == Question.FAILURE else allowed


def _is_same(call: Call, state: AgentState, port: Port) -> bool:
    return call["name"] in port.spec.tools and _with_approval(call, state, port)["approval"] == call["approval"]


def _changed(call: Call) -> Call:
    why = "not run: the tool is gone, or has changed since it was asked about"
    return {**call, "verdict": Verdict.NOT_RUN, "why": why}


def _unparked(call: Call, state: AgentState, port: Port) -> Call:
    """Let a call go on that was parked: under the verdict that it had, and if its rate lets it through now."""
    if not _is_same(call, state, port):
        return _changed(call)
    going: Call = {**call, "verdict": Verdict.ALLOW, "question": "", "approval": ""}
    going.pop("held", None)
    return going


def _once_more(call: Call, by: str, state: AgentState, port: Port) -> Call:
    """Let a call run again that has failed, under a new claim; not where the rules deny it by now."""
    fresh: Call = {**_begun_anew(call), "question": "", "why": f"tried once more, says {by}"}
    screened = screen_call(fresh, state, port.spec, port.context)
    return screened if screened["verdict"] == Verdict.DENY else fresh


def _begun_anew(call: Call) -> Call:
    """Return a call that was begun, to be begun again: what its tool was answered the first time counts no more."""
    fresh: Call = {**call, "attempt": call["attempt"] + 1, "approval": ""}
    fresh.pop("held", None)
    fresh.pop("resumes", None)
    return fresh


def _edited(call: Call, decision: Mapping[str, Any], by: str, state: AgentState, port: Port) -> Call:
    """Judge edited arguments anew.

    Whoever edited has decided about what a rule would only ask one person. Where it takes several, what they see must
    be what runs: the edited call is a question of its own, with whoever edited as the first who approves it. It is one,
    too, where the rules want somebody else for it by now than whoever edited.
    """
    edited = screen_call(edited_call(call, decision), state, port.spec, port.context)
    if edited["verdict"] == Verdict.ASK:
        refused = refuse_edit(edited, _editor(decision, by), port.spec)
        if refused or needs_of(edited)["number"] > 1:
            return _asked_about_edit(edited, by, refused, state, port)
    if edited["verdict"] in (Verdict.ALLOW, Verdict.ASK):
        return {**edited, "verdict": Verdict.ALLOW, "why": f"edited by {by}", "by": by}
    return edited


def _editor(decision: Mapping[str, Any], by: str) -> Person | None:
    return None if by == NOBODY else Person(by, decision.get(ROLES, ()))


def _asked_about_edit(edited: Call, by: str, refused: str, state: AgentState, port: Port) -> Call:
    if port.spec.tools[edited["name"]].by_person:
        return {**edited, "verdict": Verdict.NOT_RUN, "why": f"not run: {refused}"}
    asked: Call = {**edited, "revision": edited.get("revision", 0) + 1, "error": refused}
    if not refused:
        asked["edited_by"], asked["votes"] = by, [by]
    return _with_approval(asked, state, port)


def _answered(call: Call, decision: Mapping[str, Any], by: str) -> Call:
    text = str(decision["message"])
    if call["question"] == Question.PAUSE:
        answers = [*call.get("resumes", ()), decision.get("value", text)]
        return {**call, "verdict": Verdict.ALLOW, "why": f"answered by {by}", "resumes": answers, "error": ""}
    outcome = Outcome.DONE if call["question"] == Question.OUTCOME else Outcome.ANSWERED
    result = instant_result(call["id"], outcome, text)
    return {**call, "verdict": Verdict.ANSWERED, "why": f"answered by {by}", "result": result}


def _cancelled(call: Call, by: str) -> Call:
    if call["question"] == Question.FAILURE:
        return failed(call)
    cancelled: Call = {**call, "verdict": Verdict.NOT_RUN, "why": f"not run: cancelled by {by}"}
    if call["question"] == Question.OUTCOME:
        return {**cancelled, "result": instant_result(call["id"], Outcome.UNKNOWN, LEFT_UNKNOWN)}
    return cancelled


def _rejected(call: Call, reason: str, by: str) -> Call:
    said = f": {reason}" if reason else ""
    if call["question"] == Question.FAILURE:
        return failed({**call, "why": f"it failed, and {by} lets it stand{said}"}, f" ({by}{said})" if reason else "")
    if call["question"] == Question.OUTCOME:
        why = f"it did not happen and shall not run, says {by}{said}"
    elif call["question"] == Question.WORDS:
        why = f"no answer from {by}{said}"
    else:
        why = f"rejected by {by}{said}"
    return {**call, "verdict": Verdict.DENY, "why": why}


def _anew(call: Call, state: AgentState, port: Port) -> Call:
    """Put a call on the table again whose effect did not happen: screened and asked anew, under a new claim."""
    fresh: Call = {**_begun_anew(call), "question": Question.APPROVAL, "effect": ""}
    screened = screen_call(fresh, state, port.spec, port.context)
    if screened["verdict"] != Verdict.ASK:
        return screened
    return _with_approval(screened, state, port)


def _with_approval(call: Call, state: AgentState, port: Port) -> Call:
    number = approval_id(
        call,
        schema=port.spec.tools[call["name"]].identity,
        thread_id=port.place.thread_id,
        run_id=state["run"]["id"],
        step=state["usage"]["steps"],
    )
    return {**call, "approval": number}
