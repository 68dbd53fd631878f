"""Keeps to rates: waits for the next free moment, says that there is none, or when there will be one."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.state import Rate

from .port import Port


@dataclass(frozen=True, slots=True)
class Pace:
    """Whether a call may be made now."""

    refusal: str = ""
    """Why not, by a rate that refuses; empty when it may."""
    is_late: bool = False
    """Whether the next free moment comes after the run's active time is over."""
    parked: Parking | None = None
    """Until when the run is to pause, by a rate that parks."""


@dataclass(frozen=True, slots=True)
class Parking:
    """That a call waits for its rate while its run holds nothing."""

    name: str
    """What the rate is kept for."""
    why: str
    until: float
    """Seconds since the epoch."""


GO = Pace()


async def keep_pace(name: str, rate: Rate | None, until: float | None, port: Port, *, can_park: bool = True) -> Pace:
    """Take one call of a rate.

    Args:
        name: What the rate is kept for, in the ledger.
        rate: None: any number.
        until: When it would be too late, in active seconds since this node began; None for never.
        port: Of the node.
        can_park: Whether nothing is under way that a pause would break off. Where the run cannot pause, a rate that
            parks refuses.
    """
    if rate is None:
        return GO
    ledger = await port.ledger()
    while wait := await port.ask(ledger, ledger.rates.take, name, rate):
        if rate.when_exceeded == "park" and can_park and port.place.has_saver:
            moment = await port.ask(ledger, ledger.rates.next_free, name, rate)
            return Pace(parked=Parking(name, str(rate), moment))
        if rate.when_exceeded != "wait":
            return Pace(refusal=f"{rate}; the next one may be made in {wait:.3g} s")
        if until is not None and port.elapsed() + wait > until:
            return Pace(is_late=True)
        await port.sleep(wait)
    return GO
