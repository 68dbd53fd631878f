"""What is looked after from time to time: runs that nobody drives, questions that ran out, people to be reminded."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from .driver import Driver
from .results import RunResult

logger = logging.getLogger(__name__)

Wait = Callable[[str], Awaitable[RunResult]]
"""Carries a run to its next rest."""


async def recover(driver: Driver, wait: Wait) -> list[RunResult]:
    """Carry on what nobody drives although something is to be done, oldest first."""
    await _remind(driver)
    left: list[str] = []
    for row in await driver.door.blocking(driver.ledger.runs.unfinished):
        if row.is_plain:
            await driver.door.blocking(driver.ledger.end_abandoned, row)
        if await driver.is_mine(row):
            left.append(row.id)
    return await _carry_on(left, wait)


async def expire(driver: Driver, wait: Wait) -> list[RunResult]:
    """Decide what was not answered in time, carry those runs on and what was parked until now, send reminders."""
    due = await driver.door.blocking(driver.ledger.approvals.expire, driver.reference)
    await _remind(driver)
    return await _carry_on(list(dict.fromkeys(approval.run_id for approval in due)), wait)


async def _carry_on(run_ids: Sequence[str], wait: Wait) -> list[RunResult]:
    """Carry on one run after the other; one that cannot be is logged."""
    results: list[RunResult] = []
    for run_id in run_ids:
        try:
            results.append(await wait(run_id))
        except Exception:  # the next one may be sound
            extra = {"action": "run_not_recovered", "run_id": run_id}
            logger.warning("run %s could not be carried on", run_id, exc_info=True, extra=extra)
    return results


async def parked_until(driver: Driver) -> dict[str, float]:
    """Return until when runs of this agent wait for a rate, by their ids: also those that others have driven."""
    return await driver.door.blocking(driver.ledger.approvals.parked_until, driver.reference)


async def _remind(driver: Driver) -> None:
    """Tell the hook of each question that has waited for long, once, whichever worker is first.

    Where the hook fails, the next pass tries again.
    """
    if driver.on_reminder is None:
        return
    approvals = driver.ledger.approvals
    for approval in await driver.door.blocking(approvals.due_reminders, driver.reference):
        if not await driver.door.blocking(approvals.claim_reminder, approval.id):
            continue
        try:
            await driver.door.call(driver.on_reminder, approval)
        except Exception:  # a mail server that is away must not keep runs from being carried on
            await driver.door.blocking(approvals.return_reminder, approval.id)
            extra = {"action": "not_reminded", "run_id": approval.run_id}
            logger.warning("nobody was reminded of approval %s", approval.id, exc_info=True, extra=extra)
