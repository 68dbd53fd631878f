"""`act`: runs one allowed call. What changes the world is claimed in the ledger before, and settled after."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp
from typing_extensions import TypedDict

from loopwright.checkpoints import Claim, ClaimRequest, ClaimStatus, EffectRow, EffectStatus, Ledger
from loopwright.crash import CrashPoint, reached
from loopwright.policy import seconds_left
from loopwright.state import Call, Happened, NotHappened, Outcome, Result, UsageRecord, digest
from loopwright.tools import Contract, Effect, EffectKind, NotDone, OutOfTime, safe_str, to_text

from .port import Port
from .screening import call_digest

POLL_SECONDS = 0.05
"""How often a call looks whether another worker, who runs the same effect, has settled it."""


class ActTask(TypedDict):
    """What a `Send` brings to one `act` task."""

    call: Call
    run_id: str
    step: int
    usage: UsageRecord


@dataclass(frozen=True, slots=True)
class _Came:
    """What came of a call."""

    outcome: Outcome
    text: str
    effect: str = ""


async def act(task: ActTask, port: Port) -> dict[str, Any]:
    """Run the call; returns its result for `observe`."""
    began = port.now()
    contract = port.spec.tools[task["call"]["name"]]
    came = await _come(contract, task, port)
    result = Result(
        call_id=task["call"]["id"], outcome=came.outcome, text=came.text, began=began, seconds=round(port.elapsed(), 6)
    )
    return {"results": [{**result, "effect": came.effect} if came.effect else result]}


async def _come(contract: Contract, task: ActTask, port: Port) -> _Came:
    if _seconds(contract, task, port) <= 0:
        return _Came(Outcome.NOT_RUN, "not run: the run's active seconds are used up")
    return await (_read(contract, task, port) if contract.is_read else _effect(contract, task, port))


def _seconds(contract: Contract, task: ActTask, port: Port) -> float:
    """No call outlives what is left of the run's active time."""
    left = seconds_left(port.spec.limits, task["usage"])
    return contract.timeout if left is None else min(contract.timeout, left)


def _error(said: str) -> str:
    return f"ERROR: {said}"


async def _read(contract: Contract, task: ActTask, port: Port) -> _Came:
    effect = Effect(key=_place(task, port), run_id=task["run_id"], thread_id=port.place.thread_id)
    try:
        value = await port.tool(contract, task["call"]["args"], effect, _seconds(contract, task, port))
        return _Came(Outcome.DONE, to_text(value))
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever a tool raises, the model reads it
        return _Came(Outcome.ERROR, _error(safe_str(error)))


def _place(task: ActTask, port: Port) -> str:
    """Name the call by its place: the same when the step is repeated, another when it is put on the table anew."""
    call = task["call"]
    return digest(port.place.thread_id, task["run_id"], task["step"], call["ordinal"], call["attempt"])


def _request(contract: Contract, task: ActTask, port: Port) -> ClaimRequest:
    own = contract.effect_key(task["call"]["args"])
    key = own or _place(task, port)
    return ClaimRequest(
        id=digest("effect", key),
        key=key,
        digest=call_digest(task["call"]),
        tool=contract.name,
        run_id=task["run_id"],
        thread_id=port.place.thread_id,
        repeatable=contract.effect is EffectKind.IDEMPOTENT,
        own_key=bool(own),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """One call that changes the world, and what it takes to run it."""

    request: ClaimRequest
    contract: Contract
    task: ActTask
    port: Port
    ledger: Ledger

    @property
    def args(self) -> dict[str, Any]:
        return self.task["call"]["args"]


async def _effect(contract: Contract, task: ActTask, port: Port) -> _Came:
    """Claim, run, settle; or answer with what the ledger knows."""
    ledger = await port.ledger()
    work = _Work(_request(contract, task, port), contract, task, port, ledger)
    reached(CrashPoint.BEFORE_CLAIM)
    claim = await port.ask(ledger, ledger.effects.claim, work.request)
    while claim.status is ClaimStatus.BUSY:
        await port.sleep(POLL_SECONDS)
        claim = await port.ask(ledger, ledger.effects.claim, work.request)
    return await _claimed(claim, work)


async def _claimed(claim: Claim, work: _Work) -> _Came:
    match claim.status:
        case ClaimStatus.MINE:
            return await _run(_row(claim), work)
        case ClaimStatus.DONE:
            return _Came(Outcome.DONE, _stored(_row(claim), work.request))
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


def _stored(row: EffectRow, request: ClaimRequest) -> str:
    """Return a stored result; one of another run says so, lest the model take it for new."""
    if row.run_id == request.run_id:
        return str(row.result)
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(row.ended_at or row.began_at))
    return f"already done on {when} in run {row.run_id}: {row.result}"


def _handle(row: EffectRow) -> Effect:
    return Effect(key=row.key, id=row.id, run_id=row.run_id, thread_id=row.thread_id)


async def _run(row: EffectRow, work: _Work) -> _Came:
    """Run a claimed effect; the heartbeat keeps the claim while it lasts."""
    port, ledger = work.port, work.ledger
    reached(CrashPoint.AFTER_CLAIM)
    try:
        with ledger.heart.keep(lambda: ledger.effects.renew(row)):
            seconds = _seconds(work.contract, work.task, port)
            text = to_text(await port.tool(work.contract, work.args, _handle(row), seconds))
    except GraphBubbleUp:
        await port.ask(ledger, ledger.effects.release, row)
        raise
    except (NotDone, ToolException) as error:
        return await _settle(row, EffectStatus.FAILED, safe_str(error), work)
    except Exception as error:  # noqa: BLE001 -- the tool was begun: what it did is not known
        return await _broken(row, error, work)
    except BaseException:
        await port.ask(ledger, ledger.effects.settle, row, EffectStatus.UNKNOWN, None)
        raise
    reached(CrashPoint.AFTER_EFFECT)
    came = await _settle(row, EffectStatus.DONE, text, work)
    reached(CrashPoint.AFTER_SETTLE)
    return came


async def _settle(row: EffectRow, status: EffectStatus, text: str, work: _Work) -> _Came:
    """Settle, and answer with what counts: another may have said before what became of the effect."""
    counts = await work.port.ask(work.ledger, work.ledger.effects.settle, row, status, text)
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
        return await work.port.blocking(verify, _handle(row), work.args)
    except Exception:  # noqa: BLE001 -- then a person is asked
        return None


async def _resolve(row: EffectRow, status: EffectStatus, text: str, work: _Work) -> _Came:
    _, counts = await work.port.ask(work.ledger, work.ledger.effects.resolve, row.id, status, text, "verify")
    if counts.status == EffectStatus.DONE:
        return _Came(Outcome.DONE, str(counts.result))
    return _Came(Outcome.ERROR, _error(f"{counts.result} (verified: nothing happened)"))
