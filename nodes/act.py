"""`act`: runs one allowed call. What changes the world is claimed in the ledger before, and settled after."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, NotRequired

from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from typing_extensions import TypedDict

from loopwright.checkpoints import Brought, Claim, ClaimRequest, ClaimStatus, EffectRow, EffectStatus, Ledger
from loopwright.crash import CrashPoint, reached
from loopwright.policy import seconds_left
from loopwright.state import Call, Happened, NotHappened, Outcome, Question, Result, UsageRecord, upgrade, upgrade_call
from loopwright.tools import (
    Contract,
    Effect,
    EffectKind,
    Late,
    NotDone,
    OutOfTime,
    Output,
    is_async,
    safe_str,
    to_text,
)

from .billing import Bill, close_bill, open_bill
from .bringing import brought_of, with_brought, with_output
from .claims import claim_of, claim_on_branch, is_of_branch, place_of_call
from .pacing import keep_pace
from .pausing import Asked, asked_by
from .port import FOREVER, Port
from .serial import NotItsTurn, alone
from .trying import run_tool

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
"""How often a call looks whether another worker, who runs the same effect, has settled it."""


class ActTask(TypedDict):
    """What a `Send` brings to one `act` task."""

    call: Call
    run_id: str
    step: int
    usage: UsageRecord
    seconds_left: NotRequired[float | None]
    """Of the run's active time; None for any number. From release 0.2 on."""
    branch: NotRequired[str]
    """Of the run; empty on the first."""
    labels: NotRequired[dict[str, str]]
    """The run's. From release 0.2 on."""


class _Where(TypedDict):
    """The place of a call: what names its effect."""

    thread_id: str
    run_id: str
    step: int


@dataclass(frozen=True, slots=True)
class _Came:
    """What came of a call."""

    outcome: Outcome
    text: str
    effect: str = ""
    output: Output | None = None
    """What the tool returned; None where it was not this call that brought it."""
    row: EffectRow | None = None
    """The effect whose stored result answers the call."""
    asked: Asked | None = None
    """What the tool wants to know of a person, where it has paused for that."""
    until: float | None = None
    """When it may be tried again, where it is parked: seconds since the epoch."""
    cost_nano: int = 0
    """Of a priced tool."""


def branch_of(task: ActTask) -> str:
    """Return the branch that a call is on: its run's, or the one that it was asked about anew on."""
    return task.get("branch") or task["call"]["branch"]


async def act(task: ActTask, port: Port) -> dict[str, Any]:
    """Run the call; returns its result for `observe`."""
    task = {**task, "call": upgrade_call(task["call"]), "usage": upgrade("usage", task["usage"])}
    began = port.now()
    contract = port.spec.tools.get(task["call"]["name"])
    tries: list[str] = []
    came = await _come(contract, task, tries, port)
    if came.outcome is Outcome.ERROR and contract is not None:
        came = _failed(came, contract, tries)
    result = Result(
        call_id=task["call"]["id"], outcome=came.outcome, text=came.text, began=began, seconds=round(port.elapsed(), 6)
    )
    if came.cost_nano:
        result["cost_nano"] = came.cost_nano
    if came.effect:
        result["effect"] = came.effect
    if tries:
        result["tries"] = tries
    if came.output is not None:
        result = with_output(result, came.output)
    if came.row is not None:
        result = with_brought(result, came.row, place_of_call(task["call"], **_where(task, port)))
    if result["outcome"] == Outcome.ERROR and contract is not None:
        result = _with_consequence(result, contract, has_run=came.output is not None or came.row is not None)
    if came.asked is not None:
        result["asks"], result["asked"] = Question.PAUSE, came.asked.value
    if came.until is not None:
        result["asks"], result["until"] = Question.PARKED, came.until
    return {"results": [result]}


def _with_consequence(result: Result, contract: Contract, *, has_run: bool) -> Result:
    """Add what a failure of the tool means for the run.

    Where it has run, and only its result was refused, nobody is asked whether a `write` shall run once more.
    """
    match contract.on_error:
        case "observe":
            return result
        case "ask" if has_run and not contract.is_repeatable:
            return result
        case "ask":
            return {**result, "asks": Question.FAILURE}
        case "stop":
            return {**result, "stops": True}


def _failed(came: _Came, contract: Contract, tries: list[str]) -> _Came:
    """Say what a failure means: how often it was tried, and what might do instead."""
    tried = f" (tried {len(tries) + 1} times)" if tries else ""
    instead = f"; {contract.fallback} may do instead" if contract.fallback else ""
    return replace(came, text=f"{came.text}{tried}{instead}")


async def _come(contract: Contract | None, task: ActTask, tries: list[str], port: Port) -> _Came:
    """Run the call, or say why it may not run; of one that was begun before a crash, what became of it."""
    try:
        return await _in_its_turn(contract, task, tries, port)
    except _Refused as refused:
        return await _as_known(refused.came, contract, task, port)


class _Refused(Exception):
    """A call may not run now, and nothing of it was begun by this task."""

    def __init__(self, came: _Came) -> None:
        super().__init__(came.text)
        self.came = came


def _not_run(why: str) -> _Refused:
    return _Refused(_Came(Outcome.NOT_RUN, f"not run: {why}"))


async def _in_its_turn(contract: Contract | None, task: ActTask, tries: list[str], port: Port) -> _Came:
    if contract is None or not _fits(contract, task):
        raise _not_run(f"the tool {task['call']['name']} is gone, or has changed meanwhile")
    if _seconds(contract, task, port) <= 0:
        raise _not_run("the run's active seconds are used up")
    key = contract.serial_key(task["call"]["args"])
    if not key:
        return await _run_call(contract, task, tries, port)
    left = _left(task, port)
    try:
        async with alone(key, _ticket(task), FOREVER if left is None else left, contract.timeout, port):
            return await _run_call(contract, task, tries, port)
    except NotItsTurn as waited:
        said = _error(f"nothing was done: {waited}")
        raise _Refused(_Came(Outcome.ERROR, said)) from None


async def _as_known(refused: _Came, contract: Contract | None, task: ActTask, port: Port) -> _Came:
    """Return what the ledger knows of a call that may not run now: one that a dead worker had begun is not `not run`.

    The model would make it once more. One that may be repeated under its key is left to that.
    """
    if contract is None or contract.is_read:
        return refused
    ledger = await port.ledger()
    request = await _request(contract, task, port, ledger)
    row = await port.ask(ledger, ledger.effects.find, request.id)
    if row is None or (row.digest, row.run_id) != (request.digest, request.run_id):
        return refused
    match EffectStatus(row.status):
        case EffectStatus.DONE:
            return _Came(Outcome.DONE, _stored(row, _Work(request, contract, task, port, ledger, [])), row=row)
        case EffectStatus.FAILED:
            return refused if request.own_key else _Came(Outcome.ERROR, _error(str(row.result)))
        case EffectStatus.CLAIMED | EffectStatus.UNKNOWN:
            if request.repeatable:
                return refused
            return _Came(Outcome.UNKNOWN, f"it was begun before; then: {refused.text}", row.id)


async def _run_call(contract: Contract, task: ActTask, tries: list[str], port: Port) -> _Came:
    """Run it when its rate lets it, and the budgets have its price."""
    await _keep_pace(contract, task, port)
    bill = await _bill(contract, task, port)
    if bill is not None and bill.refusal:
        cost = await close_bill(bill, contract, port)
        raise _Refused(_Came(Outcome.NOT_RUN, bill.refusal, cost_nano=cost))
    came = await (_read if contract.is_read else _effect)(contract, task, tries, port)
    return replace(came, cost_nano=await close_bill(bill, contract, port))


async def _keep_pace(contract: Contract, task: ActTask, port: Port) -> None:
    """Wait for the tool's rate.

    Raises:
        _Refused: If the call may not run now, or not yet.
    """
    left = _left(task, port)
    until = None if left is None else port.elapsed() + left
    pace = await keep_pace(f"tool:{contract.name}", contract.rate, until, port)
    if pace.parked is not None:
        raise _Refused(_Came(Outcome.NOT_RUN, pace.parked.why, until=pace.parked.until))
    if pace.is_late:
        raise _not_run("the run's active seconds would be used up before its rate lets it run")
    if pace.refusal:
        raise _not_run(pace.refusal)


async def _bill(contract: Contract, task: ActTask, port: Port) -> Bill | None:
    where = _where(task, port)
    place, labels = place_of_call(task["call"], **where), task.get("labels", {})
    return await open_bill(contract, port, place=place, run_id=task["run_id"], step=task["step"], labels=labels)


def _ticket(task: ActTask) -> tuple[str, int, int]:
    return task["run_id"], task["step"], task["call"]["ordinal"]


def _fits(contract: Contract, task: ActTask) -> bool:
    """Tell whether the tool still is, and takes, what was judged: another release may carry the run on."""
    if task["call"].get("version", "") != contract.version:
        return False
    try:
        return contract.canonical_args(task["call"]["args"]) == task["call"]["args"]
    except ValueError:  # pydantic's too
        return False


def _seconds(contract: Contract, task: ActTask, port: Port) -> float:
    """No call outlives what is left of the run's active time."""
    left = _left(task, port)
    return contract.timeout if left is None else min(contract.timeout, left)


def _left(task: ActTask, port: Port) -> float | None:
    """Return the run's active seconds that are left, less what this call has waited."""
    left = task["seconds_left"] if "seconds_left" in task else seconds_left(port.spec.limits, task["usage"])
    return None if left is None else left - port.elapsed()


def _error(said: str) -> str:
    return f"ERROR: {said}"


def _where(task: ActTask, port: Port) -> _Where:
    return {"thread_id": port.place.thread_id, "run_id": task["run_id"], "step": task["step"]}


async def _read(contract: Contract, task: ActTask, tries: list[str], port: Port) -> _Came:
    where = _where(task, port)
    effect = Effect(
        key=place_of_call(task["call"], **where),
        run_id=task["run_id"],
        thread_id=port.place.thread_id,
        around=port.around(task["call"]["id"], contract.name),
        costs=port.costs,
    )
    try:
        seconds = _seconds(contract, task, port)
        output = await run_tool(contract, task["call"], effect, seconds=seconds, tries=tries, port=port)
        return _answered(output)
    except GraphInterrupt as pause:
        return _paused(pause)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever a tool raises, the model reads it
        return _Came(Outcome.ERROR, _error(safe_str(error)))


def _paused(pause: GraphInterrupt) -> _Came:
    """Return what a tool asks that has paused by LangGraph's `interrupt`: the guard puts it to a person."""
    asked = asked_by(pause)
    if asked is None:
        text = "nobody was asked: a graph within it asks several things at once; let it ask one after the other"
        return _Came(Outcome.ERROR, _error(text))
    return _Came(Outcome.NOT_RUN, asked.text, asked=asked)


def _answered(output: Output) -> _Came:
    """Return what a tool brought; a `Command` that goes too far is told to the model, and changes nothing here."""
    if output.refused:
        return _Came(Outcome.ERROR, _error(f"it ran, but its result was refused: {output.refused}"), output=output)
    return _Came(Outcome.DONE, output.text, output=output)


@dataclass(frozen=True, slots=True)
class _Work:
    """One call that changes the world, and what it takes to run it."""

    request: ClaimRequest
    contract: Contract
    task: ActTask
    port: Port
    ledger: Ledger
    tries: list[str]

    @property
    def args(self) -> dict[str, Any]:
        return self.task["call"]["args"]


async def _effect(contract: Contract, task: ActTask, tries: list[str], port: Port) -> _Came:
    """Claim, run, settle; or answer with what the ledger knows."""
    ledger = await port.ledger()
    request = await _request(contract, task, port, ledger)
    work = _Work(request, contract, task, port, ledger, tries)
    reached(CrashPoint.BEFORE_CLAIM)
    claim = await port.ask(ledger, ledger.effects.claim, work.request)
    while claim.status is ClaimStatus.BUSY:
        await port.sleep(POLL_SECONDS)
        claim = await port.ask(ledger, ledger.effects.claim, work.request)
    return await _claimed(claim, work)


async def _request(contract: Contract, task: ActTask, port: Port, ledger: Ledger) -> ClaimRequest:
    """Return what claims the effect of the call, here on its branch."""
    request = claim_of(contract, task["call"], **_where(task, port))
    if branch := branch_of(task):
        return claim_on_branch(request, branch, await port.ask(ledger, ledger.effects.of_run, request.run_id))
    return request


async def _claimed(claim: Claim, work: _Work) -> _Came:
    if claim.effect is not None and claim.effect.id != work.request.id:  # an earlier one, of the very same call
        if claim.status is ClaimStatus.UNKNOWN and claim.effect.run_id == work.request.run_id:
            return _Came(Outcome.NOT_RUN, "not run: the same call was begun, and nobody knows yet whether it happened")
        work = replace(work, request=replace(work.request, id=claim.effect.id, key=claim.effect.key))
    match claim.status:
        case ClaimStatus.MINE:
            return await _run(claim, work)
        case ClaimStatus.DONE:
            return _Came(Outcome.DONE, _stored(_row(claim), work), row=_row(claim))
        case ClaimStatus.FAILED:
            return _Came(Outcome.ERROR, _error(str(claim.result)))
        case ClaimStatus.CANCELLED:
            return _Came(Outcome.NOT_RUN, "not run: the run was cancelled")
        case ClaimStatus.CONFLICT:
            text = f"{work.request.key} was already used for a call with other arguments; nothing was done"
            return _Came(Outcome.ERROR, _error(text))
        case ClaimStatus.UNKNOWN | ClaimStatus.BUSY:
            return await _unknown(work)


def _row(claim: Claim) -> EffectRow:
    if claim.effect is None:
        raise RuntimeError(f"a claim with status {claim.status} has no row")
    return claim.effect


def _stored(row: EffectRow, work: _Work) -> str:
    """Return a stored result; one of another run or branch says so, lest it be taken for new."""
    is_here = row.run_id == work.request.run_id
    branch = branch_of(work.task)
    if is_here and (not branch or is_of_branch(row, branch)):
        return str(row.result)
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(row.ended_at or row.began_at))
    where = "on another branch of this thread" if is_here else f"in run {row.run_id}"
    return f"already done on {when} {where}: {row.result}"


def _handle(row: EffectRow, work: _Work) -> Effect:
    around = work.port.around(work.task["call"]["id"], work.contract.name)
    where = {"run_id": row.run_id, "thread_id": row.thread_id}
    return Effect(key=row.key, id=row.id, around=around, costs=work.port.costs, **where)


async def _run(claim: Claim, work: _Work) -> _Came:
    """Run a claimed effect; the heartbeat keeps the claim while it lasts."""
    port, ledger, row = work.port, work.ledger, _row(claim)
    reached(CrashPoint.AFTER_CLAIM)
    try:
        with ledger.heart.keep(row):
            output = await run_tool(
                work.contract,
                work.task["call"],
                _handle(row, work),
                seconds=_seconds(work.contract, work.task, port),
                tries=work.tries,
                port=port,
                late=_settler(row, work),
            )
    except GraphInterrupt as pause:
        await port.ask(ledger, ledger.effects.release, claim)
        return _paused(pause)
    except GraphBubbleUp:
        await port.ask(ledger, ledger.effects.release, claim)
        raise
    except (NotDone, ToolException) as error:
        return await _settle(row, EffectStatus.FAILED, safe_str(error), work)
    except Exception as error:  # noqa: BLE001 -- the tool was begun: what it did is not known
        return await _broken(row, error, work)
    except BaseException:
        await port.ask(ledger, ledger.effects.settle, row, EffectStatus.UNKNOWN, None)
        raise
    reached(CrashPoint.AFTER_EFFECT)
    brought = _answered(output)
    came = await _settle(row, EffectStatus.DONE, brought.text, work, _kept(output, work))
    reached(CrashPoint.AFTER_SETTLE)
    return brought if came.text == brought.text else came


def _kept(output: Output, work: _Work) -> Brought | None:
    """Return what of an output is settled with its effect, beside the text."""
    return brought_of(output, place_of_call(work.task["call"], **_where(work.task, work.port)))


def _settler(row: EffectRow, work: _Work) -> Late:
    """Build what hears a call out that nobody waits for: it writes nothing into the thread.

    Its effect is known then, and so is the answer to the question about it.
    """

    def settle(late: Future[Any]) -> None:
        kept: Brought | None = None
        try:
            output: Output = late.result()
            text, status, kept = _answered(output).text, EffectStatus.DONE, _kept(output, work)
        except (NotDone, ToolException) as error:
            text, status = safe_str(error), EffectStatus.FAILED
        except Exception:  # noqa: BLE001 -- what it did is as unknown as before
            return
        try:
            work.ledger.settle(row, status, text, kept)
        except Exception:  # the database may be closed by now; then a person is asked
            extra = {"action": "late_effect_not_settled", "effect_id": row.id}
            logger.warning("effect %s ended late, and could not be settled", row.id, exc_info=True, extra=extra)

    return settle


async def _settle(
    row: EffectRow, status: EffectStatus, text: str, work: _Work, brought: Brought | None = None
) -> _Came:
    """Settle, and answer with what counts: another may have said before what became of the effect."""
    counts = await work.port.ask(work.ledger, work.ledger.settle, row, status, text, brought)
    if counts.status == EffectStatus.DONE:
        return _Came(Outcome.DONE, str(counts.result))
    if counts.status == EffectStatus.FAILED:
        return _Came(Outcome.ERROR, _error(str(counts.result)))
    return _Came(Outcome.UNKNOWN, text, row.id)


async def _broken(row: EffectRow, error: Exception, work: _Work) -> _Came:
    """A tool that was begun raised, or was late: only who can find out may say that nothing happened."""
    said = safe_str(error) if isinstance(error, OutOfTime) else f"{type(error).__name__}: {safe_str(error)}"
    await work.port.ask(work.ledger, work.ledger.effects.settle, row, EffectStatus.UNKNOWN, None)
    if work.contract.effect is EffectKind.IDEMPOTENT:
        return _Came(Outcome.ERROR, _error(f"{said}; it is safe to try again"))
    match await _verified(row, work):
        case Happened(result):
            return await _resolve(row, EffectStatus.DONE, to_text(result), work)
        case NotHappened() if isinstance(error, OutOfTime):
            # What was late may still be under way, in its thread or at the service: it can happen after we looked.
            return _Came(Outcome.UNKNOWN, f"{said}, and had not happened yet", row.id)
        case NotHappened():
            return await _resolve(row, EffectStatus.FAILED, said, work)
        case None:
            return _Came(Outcome.UNKNOWN, said, row.id)


async def _unknown(work: _Work) -> _Came:
    """A worker that is gone had begun it: the hook decides if there is one, else a person."""
    port, ledger = work.port, work.ledger
    row = await port.ask(ledger, ledger.effects.get, work.request.id)
    gone = "the worker that ran it is gone"
    if row.digest != work.request.digest:
        return _Came(Outcome.UNKNOWN, "another call had been begun in its place", row.id)
    match await _verified(row, work):
        case Happened(result):
            return await _resolve(row, EffectStatus.DONE, to_text(result), work)
        case NotHappened():
            claim = await port.ask(ledger, ledger.effects.retake, work.request)
            if claim.status in (ClaimStatus.UNKNOWN, ClaimStatus.BUSY):
                return _Came(Outcome.UNKNOWN, gone, row.id)
            return await _claimed(claim, work)
        case None:
            return _Came(Outcome.UNKNOWN, gone, row.id)


async def _verified(row: EffectRow, work: _Work) -> Happened | NotHappened | None:
    """Ask the tool's hook; one that fails cannot tell."""
    verify = work.contract.verify
    if verify is None:
        return None
    try:
        handle, seconds = _handle(row, work), work.contract.timeout
        found = await work.port.within(seconds, lambda: verify(handle, work.args), is_async=is_async(verify))
    except Exception:  # noqa: BLE001 -- then a person is asked
        return None
    return found if isinstance(found, Happened | NotHappened) else None


async def _resolve(row: EffectRow, status: EffectStatus, text: str, work: _Work) -> _Came:
    _, counts = await work.port.ask(work.ledger, work.ledger.effects.resolve, row.id, status, text, "verify")
    if counts.status == EffectStatus.DONE:
        return _Came(Outcome.DONE, str(counts.result))
    return _Came(Outcome.ERROR, _error(f"{counts.result} (verified: nothing happened)"))
