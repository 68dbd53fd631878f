"""Decisions about a run: answers, outcomes and cancellations, each taken once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from loopwright.checkpoints import Approval, EffectRow, EffectStatus
from loopwright.errors import InvalidDecision
from loopwright.nodes import normal_decision, parse_answer, refuse_decision, respond_with
from loopwright.state import (
    CANCEL,
    AgentState,
    Call,
    Happened,
    NotHappened,
    PersonDecision,
    Question,
    excerpt,
    in_utc,
    is_too_deep,
    new_call,
    person_of,
)
from loopwright.tools import to_text

from .driver import Driver
from .results import Receipt, receipt_of

SHAPES = "approve(), edit(…), reject('why') or respond('text'), or their JSON form {'type': 'approve'}"


async def decide(driver: Driver, approval_id: str, decision: object, by: object) -> Receipt:
    """Take a decision, if it is one that can be taken here and none was taken before; committed before this returns."""
    person = person_of(by)
    approval = await driver.door.blocking(driver.ledger.approvals.get, approval_id)
    row = await driver.own_row(approval.run_id)
    _refuse_parked(approval)
    if approval.decision is None:
        state = await driver.state(row)
        call = _call_of(approval, state)
        plain = _plain(approval_id, call, decision)
        context = await driver.context_of(row) if plain["type"] == "edit" else None  # an edit is judged by the rules
        if wrong := refuse_decision(call, plain, person, state, driver.agent.spec, context=context):
            raise InvalidDecision(f"approval {approval_id}: {wrong}", approval_id=approval_id)
    else:
        plain = _plain(approval_id, _kept_call(approval), decision)
    decided = await driver.door.blocking(driver.ledger.decide, approval_id, plain, person.name, person.roles)
    if not decided.accepted and decided.approval.decision is None and approval.question == Question.OUTCOME:
        raise InvalidDecision(_is_run_again(approval.effect_id), approval_id=approval_id)
    return receipt_of(decided.approval, accepted=decided.accepted)


def _refuse_parked(approval: Approval) -> None:
    """Refuse to decide where nobody is asked.

    Raises:
        InvalidDecision: With the moment at which the run goes on.
    """
    if approval.question == Question.PARKED:
        why, until = approval.payload.get("why", ""), in_utc(approval.expires_at or 0.0)
        text = (
            f"approval {approval.id} is no question: its run waits for a rate ({why}) and goes on by itself at {until}"
        )
        raise InvalidDecision(text, approval_id=approval.id)


def _call_of(approval: Approval, state: AgentState) -> Call:
    """Return the call that is asked about; when it is gone from the table, what the ledger kept of it."""
    for call in state.get("turn") or ():
        if call.get("approval") == approval.id:
            return call
    return _kept_call(approval)


def _kept_call(approval: Approval) -> Call:
    call = new_call("", approval.tool, approval.args)
    return {**call, "question": approval.question, "approval": approval.id, "needs": approval.needs}


def _plain(approval_id: str, call: Call, decision: object) -> dict[str, Any]:
    if isinstance(decision, PersonDecision):
        if is_too_deep([dict(decision.args or {}), dict(decision.changes or {})]):
            text = f"approval {approval_id}: the arguments are nested too deep to be kept"
            raise InvalidDecision(text, approval_id=approval_id)
        return normal_decision(call, decision)
    if is_too_deep(decision):
        text = f"approval {approval_id}: the decision is nested too deep to be kept"
        raise InvalidDecision(text, approval_id=approval_id)
    parsed = parse_answer(decision) or _structured(call, decision)
    if parsed is None:
        text = f"approval {approval_id}: {excerpt(repr(decision))} is no decision; give {SHAPES}"
        raise InvalidDecision(text, approval_id=approval_id)
    return parsed


def _structured(call: Call, decision: object) -> dict[str, Any] | None:
    """Read the answer to a tool that wants more than a text: `{"type": "respond", "message": …}`."""
    if call["question"] != Question.PAUSE or not isinstance(decision, Mapping):
        return None
    given = cast("Mapping[str, object]", decision)
    is_answer = given.get("type") == "respond" and given.get("message") is not None
    return respond_with(given["message"]) if is_answer else None


async def resolve(driver: Driver, effect_id: str, outcome: object, by: object) -> Receipt:
    """Say what became of an effect whose outcome is unknown; committed before this returns."""
    name = person_of(by).name
    if not isinstance(outcome, Happened | NotHappened):
        raise InvalidDecision(f"{outcome!r} is no outcome; give happened(result) or not_happened()")
    effect = await driver.door.blocking(driver.ledger.effects.get, effect_id)
    await driver.own_row(effect.run_id)
    text = to_text(outcome.result) if isinstance(outcome, Happened) else "it did not happen"
    won, row = await driver.door.blocking(driver.ledger.resolve, effect_id, outcome, text, name)
    if not won and row.status in (EffectStatus.CLAIMED, EffectStatus.UNKNOWN):
        raise InvalidDecision(_is_run_again(effect_id), effect_id=effect_id)
    known = "happened" if row.status == EffectStatus.DONE else "not_happened"
    said_by = name if won else await driver.door.blocking(_settled_by, driver, row)
    return Receipt(row.run_id, won, {"type": known, "result": row.result}, said_by, row.ended_at)


def _is_run_again(effect_id: str) -> str:
    return f"effect {effect_id} is being run right now, so its outcome is not unknown; wait until it settles"


def _settled_by(driver: Driver, effect: EffectRow) -> str:
    """Return who said what became of an effect: the person who was asked, else the worker that ran it."""
    asked = driver.ledger.approvals.of_run(effect.run_id)
    people = [approval.decided_by for approval in asked if approval.effect_id == effect.id and approval.decision]
    return people[-1] if people else effect.owner


async def cancel(driver: Driver, run_id: str, by: object) -> Receipt:
    """Ask for a run's end, and withdraw its questions; committed before this returns."""
    name = person_of(by).name
    if not (await driver.row(run_id)).is_plain:  # ending a run needs none of its agent's rules
        await driver.own_row(run_id)
    won = await driver.door.blocking(driver.ledger.cancel, run_id, name)
    row = await driver.row(run_id)
    decision = {"type": CANCEL} if row.cancel_by else {"type": row.status}
    return Receipt(run_id, won, decision, row.cancel_by or row.worker, row.updated_at)
