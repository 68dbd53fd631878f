"""A run that is parked: it waits for a rate, holds nothing meanwhile, and goes on by itself when its time has come.

Of a tool's rate it is a call on the table, held like one that asks a person (`questions`, `judging`); of the model's it
is the run itself, which is told here. The ledger knows both as a question that expires, and that nobody can answer.
"""

from __future__ import annotations

from typing import Any, cast

from loopwright.checkpoints import Approval, Ledger, NewApproval
from loopwright.state import (
    CANCEL,
    AgentState,
    Answer,
    ParkedRecord,
    Purpose,
    Question,
    RunRecord,
    StopReason,
    digest,
    require_nothing,
)

from .attempts import Where
from .pacing import Parking
from .port import Port
from .questions import parked_payload


def parked_run(run: RunRecord, parking: Parking, where: Where) -> RunRecord:
    """Return the run as it waits for the rate of its model.

    Args:
        run: Of the model call that has to wait.
        parking: What for, and until when.
        where: Its step stands.
    """
    parked = ParkedRecord(
        name=parking.name,
        why=parking.why,
        until=parking.until,
        approval="",
        left=where.left,
        tried=where.tried,
        counted=where.counted,
        is_over=False,
    )
    return {**run, "parked": parked, "parkings": run.get("parkings", 0) + 1}


def waits_for_model(run: RunRecord) -> bool:
    """Tell whether the run is parked for the rate of its model."""
    parked = run.get("parked")
    return parked is not None and not parked["is_over"]


def unparked(run: RunRecord) -> RunRecord:
    """Return the run without that it was parked."""
    if "parked" not in run:
        return run
    return cast("RunRecord", {name: value for name, value in run.items() if name != "parked"})


async def open_parking(state: AgentState, port: Port) -> dict[str, Any]:
    """Tell the ledger until when the run is parked; it waits from then on."""
    run = _named(state["run"], port.place.thread_id)
    await _tell(run, port, await port.ledger())
    return {"run": run}


def _named(run: RunRecord, thread_id: str) -> RunRecord:
    """Return the run with the id of its parking: another one each time, and on each branch of the thread."""
    name = digest("parked", thread_id, run["id"], run.get("branch", ""), run.get("parkings", 0))
    return {**run, "parked": {**run["parked"], "approval": name}} if "parked" in run else run


async def _tell(run: RunRecord, port: Port, ledger: Ledger) -> None:
    parked = _parked(run)
    told = NewApproval(
        id=parked["approval"],
        question=Question.PARKED,
        tool=parked["name"],
        args={},
        payload=payload_of_run(run),
        until=parked["until"],
        needs={**require_nothing(), "decisions": []},
    )
    await port.ask(ledger, ledger.ask, run["id"], port.place.thread_id, [told])


def _parked(run: RunRecord) -> ParkedRecord:
    if "parked" not in run:
        raise RuntimeError(f"run {run['id']} is not parked")
    return run["parked"]


def payload_of_run(run: RunRecord) -> dict[str, Any]:
    """Return what an interrupt shows of a run that waits for the rate of its model."""
    parked = _parked(run)
    return parked_payload(
        name=parked["name"],
        why=parked["why"],
        until=parked["until"],
        run_id=run["id"],
        approval_id=parked["approval"],
    )


async def judge_parking(state: AgentState, port: Port) -> dict[str, Any]:
    """Let the run go on, if its time has come by the ledger's clock: whoever wakes it, and with whatever answer.

    Too early, it waits on, until the very same moment. What was decided on another branch of the thread counts here as
    well: at worst the run asks its rate too early, and is parked again.
    """
    ledger, run = await port.ledger(), state["run"]
    answer: Answer = state["answers"][0]
    parked = _parked(run)
    if not await port.ask(ledger, ledger.approvals.standing, [parked["approval"]]):
        await _tell(run, port, ledger)  # a new ledger beside an old saver
    standing, _ = await port.ask(ledger, ledger.take, run["id"], [parked["approval"]], answer["at"], {})
    decided = standing[parked["approval"]]
    if decided.decision is None:
        return {"run": run}
    if by := _cancelled_by(decided, answer["at"]):
        # Also in its last words: nothing is said any more.
        ended = {**unparked(run), "stop": StopReason.CANCELLED, "cancelled_by": by, "purpose": Purpose.DECIDE}
        return {"run": ended}
    return {"run": {**run, "parked": {**parked, "is_over": True}}}


def _cancelled_by(decided: Approval, pause: str) -> str:
    is_ours = decided.used_at in ("", pause)
    return decided.decided_by if is_ours and decided.decision and decided.decision["type"] == CANCEL else ""
