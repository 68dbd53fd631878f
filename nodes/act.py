"""`act`: runs one allowed call. What changes the world is claimed in the ledger before, and settled after."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from loopwright.state import Outcome, Question, Result, upgrade, upgrade_call
from loopwright.tools import (
    Contract,
    Effect,
    safe_str,
)

from .billing import Bill, close_bill, open_bill
from .bringing import with_brought, with_output
from .claims import place_of_call
from .effect import as_known, carry_out
from .pacing import keep_pace
from .port import FOREVER, Port
from .serial import NotItsTurn, alone
from .task import (
    ActTask,
    Came,
    came_answered,
    came_paused,
    error_text,
    left_of,
    seconds_for,
    where_of,
)
from .trying import run_tool

logger = logging.getLogger(__name__)


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
        result = with_brought(result, came.row, place_of_call(task["call"], **where_of(task, port)))
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


def _failed(came: Came, contract: Contract, tries: list[str]) -> Came:
    """Say what a failure means: how often it was tried, and what might do instead."""
    tried = f" (tried {len(tries) + 1} times)" if tries else ""
    instead = f"; {contract.fallback} may do instead" if contract.fallback else ""
    return replace(came, text=f"{came.text}{tried}{instead}")


async def _come(contract: Contract | None, task: ActTask, tries: list[str], port: Port) -> Came:
    """Run the call, or say why it may not run; of one that was begun before a crash, what became of it."""
    try:
        return await _in_its_turn(contract, task, tries, port)
    except _Refused as refused:
        return await as_known(refused.came, contract, task, port)


class _Refused(Exception):
    """A call may not run now, and nothing of it was begun by this task."""

    def __init__(self, came: Came) -> None:
        super().__init__(came.text)
        self.came = came


def _not_run(why: str) -> _Refused:
    return _Refused(Came(Outcome.NOT_RUN, f"not run: {why}"))


async def _in_its_turn(contract: Contract | None, task: ActTask, tries: list[str], port: Port) -> Came:
    if contract is None or not _fits(contract, task):
        raise _not_run(f"the tool {task['call']['name']} is gone, or has changed meanwhile")
    if seconds_for(contract, task, port) <= 0:
        raise _not_run("the run's active seconds are used up")
    key = contract.serial_key(task["call"]["args"])
    if not key:
        return await _run_call(contract, task, tries, port)
    left = left_of(task, port)
    try:
        async with alone(key, _ticket(task), FOREVER if left is None else left, contract.timeout, port):
            return await _run_call(contract, task, tries, port)
    except NotItsTurn as waited:
        said = error_text(f"nothing was done: {waited}")
        raise _Refused(Came(Outcome.ERROR, said)) from None


async def _run_call(contract: Contract, task: ActTask, tries: list[str], port: Port) -> Came:
    """Run it when its rate lets it, and the budgets have its price."""
    await _keep_pace(contract, task, port)
    bill = await _bill(contract, task, port)
    if bill is not None and bill.refusal:
        cost = await close_bill(bill, contract, port)
        raise _Refused(Came(Outcome.NOT_RUN, bill.refusal, cost_nano=cost))
    came = await (_read if contract.is_read else carry_out)(contract, task, tries, port)
    return replace(came, cost_nano=await close_bill(bill, contract, port))


async def _keep_pace(contract: Contract, task: ActTask, port: Port) -> None:
    """Wait for the tool's rate.

    Raises:
        _Refused: If the call may not run now, or not yet.
    """
    left = left_of(task, port)
    until = None if left is None else port.elapsed() + left
    pace = await keep_pace(f"tool:{contract.name}", contract.rate, until, port)
    if pace.parked is not None:
        raise _Refused(Came(Outcome.NOT_RUN, pace.parked.why, until=pace.parked.until))
    if pace.is_late:
        raise _not_run("the run's active seconds would be used up before its rate lets it run")
    if pace.refusal:
        raise _not_run(pace.refusal)


async def _bill(contract: Contract, task: ActTask, port: Port) -> Bill | None:
    where = where_of(task, port)
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


async def _read(contract: Contract, task: ActTask, tries: list[str], port: Port) -> Came:
    where = where_of(task, port)
    effect = Effect(
        key=place_of_call(task["call"], **where),
        run_id=task["run_id"],
        thread_id=port.place.thread_id,
        around=port.around(task["call"]["id"], contract.name),
        costs=port.costs,
    )
    try:
        seconds = seconds_for(contract, task, port)
        output = await run_tool(contract, task["call"], effect, seconds=seconds, tries=tries, port=port)
        return came_answered(output)
    except GraphInterrupt as pause:
        return came_paused(pause)
    except GraphBubbleUp:
        raise
    except Exception as error:  # noqa: BLE001 -- whatever a tool raises, the model reads it
        return Came(Outcome.ERROR, error_text(safe_str(error)))
