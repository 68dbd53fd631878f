"""Calls that must never run at once, in this process or in another: one after the other, in the order of their turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from loopwright.checkpoints import Lease, Ledger
from loopwright.state import digest

from .port import Port

LINE_POLL_SECONDS = 0.005
"""How often a call looks whether it is its turn among the calls of this process."""
LEASE_POLL_SECONDS = 0.05
"""The same, where another process has the key."""
LONGEST_WAIT = 600.0
"""Seconds in line, where the run's active time has no bound."""


class NotItsTurn(Exception):
    """Raised when a call waited in line for too long; nothing was begun."""


@asynccontextmanager
async def alone(key: str, ticket: tuple[str, int, int], seconds: float, port: Port) -> AsyncGenerator[None]:
    """Run a block while no other call with this key runs.

    Raises:
        NotItsTurn: If its turn did not come within `seconds`; nothing was begun.
    """
    ledger = await port.ledger()
    until = port.elapsed() + min(seconds, LONGEST_WAIT)
    ledger.lines.join(key, ticket)
    try:
        while not ledger.lines.enter(key, ticket):
            await _wait(LINE_POLL_SECONDS, until, port)
        lease = await _lease(key, until, port, ledger)
        try:
            with ledger.heart.keep(lease):
                yield
        finally:
            await port.ask(ledger, ledger.leases.drop, lease)
    finally:
        ledger.lines.leave(key, ticket)


async def _lease(key: str, until: float, port: Port, ledger: Ledger) -> Lease:
    name = f" serial:{digest(key)}"  # no thread id begins with a blank
    while True:
        lease = await port.ask(ledger, ledger.leases.take, name)
        if lease is not None:
            return lease
        await _wait(LEASE_POLL_SECONDS, until, port)


async def _wait(seconds: float, until: float, port: Port) -> None:
    if port.elapsed() >= until:
        raise NotItsTurn(f"after {until:.0f} s")
    await port.sleep(seconds)
