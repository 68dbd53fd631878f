"""Calls that must never run at once, in this process or in another: one after the other, in the order of their turn."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import ExitStack, asynccontextmanager

from loopwright.checkpoints import Lease, Ledger
from loopwright.state import digest

from .port import Port

logger = logging.getLogger(__name__)

NOT_DROPPED = "serial_lease_not_dropped"
LINE_POLL_SECONDS = 0.005
"""How often a call looks whether it is its turn among the calls of this process."""
LEASE_POLL_SECONDS = 0.05
"""The same, where another process has the key."""
LONGEST_WAIT = 600.0
"""Seconds in line, where the run's active time has no bound."""


class NotItsTurn(Exception):
    """Raised when a call waited in line for too long; nothing was begun."""


@asynccontextmanager
async def alone(
    key: str, ticket: tuple[str, int, int], seconds: float, patience: float, port: Port
) -> AsyncGenerator[None]:
    """Run a block while no other call with this key runs; a call that was given up in the block keeps others out.

    Args:
        key: What must not run at once.
        ticket: Of the call.
        seconds: So long it waits for calls that run.
        patience: So long it waits for one that was given up, of which nobody knows when it ends.
        port: Of the `act` task.

    Raises:
        NotItsTurn: If its turn did not come in time; nothing was begun.
    """
    ledger = await port.ledger()
    ledger.lines.join(key, ticket)
    try:
        until = port.elapsed() + min(seconds, LONGEST_WAIT)
        await _turn(key, ticket, until, patience, port)
        lease = await _lease(key, until, port, ledger)
    except BaseException:
        ledger.lines.leave(key, ticket)
        raise
    beat = ExitStack()
    beat.enter_context(ledger.heart.keep(lease))

    def give_back(*, late: bool) -> None:
        try:
            with beat:
                ledger.leases.drop(lease)
        except Exception:  # the database may be closed by now; then the lease ends by itself
            logger.warning("the lease on %s could not be given back", key, exc_info=True, extra={"action": NOT_DROPPED})
        ledger.lines.leave(key, ticket, late=late)

    try:
        yield
    finally:
        is_late = port.left.is_going
        if is_late:
            ledger.lines.stay(key)
        if not (is_late and port.left.follow(lambda: give_back(late=True))):
            await port.ask(ledger, give_back, late=is_late)


async def _turn(key: str, ticket: tuple[str, int, int], until: float, patience: float, port: Port) -> None:
    """Wait for the turn among the calls of this process."""
    lines, late_until = (await port.ledger()).lines, None
    while not lines.enter(key, ticket):
        if not lines.is_late(key):
            late_until = None
        elif late_until is None:
            late_until = port.elapsed() + patience
        if late_until is not None and port.elapsed() >= late_until:
            raise NotItsTurn(f"an earlier call on {key}, which was given up, has not ended after {patience:.3g} s more")
        await _wait(key, LINE_POLL_SECONDS, until, port)


async def _lease(key: str, until: float, port: Port, ledger: Ledger) -> Lease:
    name = f" serial:{digest(key)}"  # no thread id begins with a blank
    while True:
        lease = await port.ask(ledger, ledger.leases.take, name)
        if lease is not None:
            return lease
        await _wait(key, LEASE_POLL_SECONDS, until, port)


async def _wait(key: str, seconds: float, until: float, port: Port) -> None:
    if port.elapsed() >= until:
        raise NotItsTurn(f"another call on {key} still ran after {until:.3g} s")
    await port.sleep(seconds)
