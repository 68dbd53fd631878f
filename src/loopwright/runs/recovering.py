"""What is looked after from time to time: runs that nobody drives, questions that ran out, people to be reminded."""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, TypeVar

from loopwright.checkpoints import RunRow
from loopwright.errors import ConfigurationError
from loopwright.state import is_span

from .driver import Driver
from .results import RunResult

logger = logging.getLogger(__name__)

T = TypeVar("T")

Wait = Callable[[str], Awaitable[RunResult]]
"""Carries a run to its next rest."""
EVERY: Final = 30.0
"""Seconds between two looks, where nobody says otherwise."""
_JITTER: Final = 0.2
"""Share of that by which they differ, so that processes started together do not look together for ever."""


async def recover(driver: Driver, wait: Callable[[str], Awaitable[T]]) -> list[T]:
    """Carry on what nobody drives although something is to be done, oldest first."""
    await _remind(driver)
    rows = await driver.door.blocking(driver.ledger.runs.unfinished)
    return await _carry_on([row.id for row in rows if await _is_left(driver, row)], wait)


async def _is_left(driver: Driver, row: RunRow) -> bool:
    """Tell whether a run is this agent's to carry on; one whose caller is gone, and that was cancelled, ends here."""
    try:
        if row.is_plain:
            await driver.door.blocking(driver.ledger.end_abandoned, row)
        return await driver.is_mine(row)
    except Exception:  # what is stored of one run must not keep the others from being carried on
        extra = {"action": "run_not_recovered", "run_id": row.id}
        logger.warning("run %s could not be looked at", row.id, exc_info=True, extra=extra)
        return False


def check_every(every: object) -> None:
    """Refuse what is no time between two looks.

    Raises:
        ConfigurationError: Naming the option.
    """
    if not is_span(every):
        raise ConfigurationError(f"every is {every!r}; give seconds above 0, as a number", option="every")


async def keep_recovering(
    look: Callable[[], Awaitable[object]], rest: Callable[[float], Awaitable[bool]], every: float
) -> None:
    """Look at once, and again and again, one look after the other, until `rest` says that it is over.

    A look that fails is logged, and the next one tries again: a database that is away for a minute ends nothing.
    """
    is_over = False
    while not is_over:
        try:
            await look()
        except Exception:
            extra = {"action": "recovery_failed"}
            logger.warning("nothing was recovered this time; the next look tries again", exc_info=True, extra=extra)
        is_over = await rest(every * random.uniform(1 - _JITTER, 1 + _JITTER))  # noqa: S311 -- no secret


async def expire(driver: Driver, wait: Wait) -> list[RunResult]:
    """Decide what was not answered in time, carry those runs on and what was parked until now, send reminders."""
    due = await driver.door.blocking(driver.ledger.approvals.expire, driver.reference)
    await _remind(driver)
    return await _carry_on(list(dict.fromkeys(approval.run_id for approval in due)), wait)


async def _carry_on(run_ids: Sequence[str], wait: Callable[[str], Awaitable[T]]) -> list[T]:
    """Carry on one run after the other; one that cannot be is logged."""
    results: list[T] = []
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
