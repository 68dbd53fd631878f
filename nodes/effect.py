"""A call that changes the world: claimed in the ledger before, settled after."""

from __future__ import annotations

import logging
import time
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from loopwright.checkpoints import Brought, Claim, ClaimRequest, ClaimStatus, EffectRow, EffectStatus, Ledger
from loopwright.crash import CrashPoint, reached
from loopwright.state import Happened, NotHappened, Outcome
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

from .bringing import brought_of
from .claims import claim_of, claim_on_branch, is_of_branch, place_of_call
from .port import Port
from .task import (
    ActTask,
    Came,
    branch_of,
    came_answered,
    came_paused,
    error_text,
    seconds_for,
    where_of,
)
from .trying import run_tool

logger = logging.getLogger(__name__)

POLL_SECONDS = 0.05
"""How often a call looks whether another worker, who runs the same effect, has settled it."""


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


async def carry_out(contract: Contract, task: ActTask, tries: list[str], port: Port) -> Came:
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


async def as_known(refused: Came, contract: Contract | None, task: ActTask, port: Port) -> Came:
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
            return Came(Outcome.DONE, _stored(row, _Work(request, contract, task, port, ledger, [])), row=row)
        case EffectStatus.FAILED:
            return refused if request.own_key else Came(Outcome.ERROR, error_text(str(row.result)))
        case EffectStatus.CLAIMED | EffectStatus.UNKNOWN:
            if request.repeatable:
                return refused
            return Came(Outcome.UNKNOWN, f"it was begun before; then: {refused.text}", row.id)


async def _request(contract: Contract, task: ActTask, port: Port, ledger: Ledger) -> ClaimRequest:
    """Return what claims the effect of the call, here on its branch."""
    request = claim_of(contract, task["call"], **where_of(task, port))
    if branch := branch_of(task):
        return claim_on_branch(request, branch, await port.ask(ledger, ledger.effects.of_run, request.run_id))
    return request


async def _claimed(claim: Claim, work: _Work) -> Came:
    if claim.effect is not None and claim.effect.id != work.request.id:  # an earlier one, of the very same call
        if claim.status is ClaimStatus.UNKNOWN and claim.effect.run_id == work.request.run_id:
            return Came(Outcome.NOT_RUN, "not run: the same call was begun, and nobody knows yet whether it happened")
        work = replace(work, request=replace(work.request, id=claim.effect.id, key=claim.effect.key))
    match claim.status:
        case ClaimStatus.MINE:
            return await _run(claim, work)
        case ClaimStatus.DONE:
            return Came(Outcome.DONE, _stored(_row(claim), work), row=_row(claim))
        case ClaimStatus.FAILED:
            return Came(Outcome.ERROR, error_text(str(claim.result)))
        case ClaimStatus.CANCELLED:
            return Came(Outcome.NOT_RUN, "not run: the run was cancelled")
        case ClaimStatus.CONFLICT:
            text = f"{work.request.key} was already used for a call with other arguments; nothing was done"
            return Came(Outcome.ERROR, error_text(text))
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


async def _run(claim: Claim, work: _Work) -> Came:
    """Run a claimed effect; the heartbeat keeps the claim while it lasts."""
    port, ledger, row = work.port, work.ledger, _row(claim)
    reached(CrashPoint.AFTER_CLAIM)
    try:
        with ledger.heart.keep(row):
            output = await run_tool(
                work.contract,
                work.task["call"],
                _handle(row, work),
                seconds=seconds_for(work.contract, work.task, port),
                tries=work.tries,
                port=port,
                late=_settler(row, work),
            )
    except GraphInterrupt as pause:
        await port.ask(ledger, ledger.effects.release, claim)
        return came_paused(pause)
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
    brought = came_answered(output)
    came = await _settle(row, EffectStatus.DONE, brought.text, work, _kept(output, work))
    reached(CrashPoint.AFTER_SETTLE)
    return brought if came.text == brought.text else came


def _kept(output: Output, work: _Work) -> Brought | None:
    """Return what of an output is settled with its effect, beside the text."""
    return brought_of(output, place_of_call(work.task["call"], **where_of(work.task, work.port)))


def _settler(row: EffectRow, work: _Work) -> Late:
    """Build what hears a call out that nobody waits for: it writes nothing into the thread.

    Its effect is known then, and so is the answer to the question about it.
    """

    def settle(late: Future[Any]) -> None:
        kept: Brought | None = None
        try:
            output: Output = late.result()
            text, status, kept = came_answered(output).text, EffectStatus.DONE, _kept(output, work)
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


async def _settle(row: EffectRow, status: EffectStatus, text: str, work: _Work, brought: Brought | None = None) -> Came:
    """Settle, and answer with what counts: another may have said before what became of the effect."""
    counts = await work.port.ask(work.ledger, work.ledger.settle, row, status, text, brought)
    if counts.status == EffectStatus.DONE:
        return Came(Outcome.DONE, str(counts.result))
    if counts.status == EffectStatus.FAILED:
        return Came(Outcome.ERROR, error_text(str(counts.result)))
    return Came(Outcome.UNKNOWN, text, row.id)


async def _broken(row: EffectRow, error: Exception, work: _Work) -> Came:
    """A tool that was begun raised, or was late: only who can find out may say that nothing happened."""
    said = safe_str(error) if isinstance(error, OutOfTime) else f"{type(error).__name__}: {safe_str(error)}"
    await work.port.ask(work.ledger, work.ledger.effects.settle, row, EffectStatus.UNKNOWN, None)
    if work.contract.effect is EffectKind.IDEMPOTENT:
        return Came(Outcome.ERROR, error_text(f"{said}; it is safe to try again"))
    match await _verified(row, work):
        case Happened(result):
            return await _resolve(row, EffectStatus.DONE, to_text(result), work)
        case NotHappened() if isinstance(error, OutOfTime):
            # What was late may still be under way, in its thread or at the service: it can happen after we looked.
            return Came(Outcome.UNKNOWN, f"{said}, and had not happened yet", row.id)
        case NotHappened():
            return await _resolve(row, EffectStatus.FAILED, said, work)
        case None:
            return Came(Outcome.UNKNOWN, said, row.id)


async def _unknown(work: _Work) -> Came:
    """A worker that is gone had begun it: the hook decides if there is one, else a person."""
    port, ledger = work.port, work.ledger
    row = await port.ask(ledger, ledger.effects.get, work.request.id)
    gone = "the worker that ran it is gone"
    if row.digest != work.request.digest:
        return Came(Outcome.UNKNOWN, "another call had been begun in its place", row.id)
    match await _verified(row, work):
        case Happened(result):
            return await _resolve(row, EffectStatus.DONE, to_text(result), work)
        case NotHappened():
            claim = await port.ask(ledger, ledger.effects.retake, work.request)
            if claim.status in (ClaimStatus.UNKNOWN, ClaimStatus.BUSY):
                return Came(Outcome.UNKNOWN, gone, row.id)
            return await _claimed(claim, work)
        case None:
            return Came(Outcome.UNKNOWN, gone, row.id)


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


async def _resolve(row: EffectRow, status: EffectStatus, text: str, work: _Work) -> Came:
    _, counts = await work.port.ask(work.ledger, work.ledger.effects.resolve, row.id, status, text, "verify")
    if counts.status == EffectStatus.DONE:
        return Came(Outcome.DONE, str(counts.result))
    return Came(Outcome.ERROR, error_text(f"{counts.result} (verified: nothing happened)"))
