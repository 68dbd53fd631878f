"""More for a run that met a limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from loopwright.checkpoints import RunRow, extensions_of
from loopwright.errors import ConfigurationError, RunError
from loopwright.state import NANO, RunStatus, StopReason, current_run, is_amount, is_span, person_of, storable

from .driver import Driver
from .results import Receipt

EXTEND = "extend"
"""The `type` of a receipt's decision."""

_NEEDED = {
    StopReason.MAX_STEPS: "steps",
    StopReason.MAX_TOOL_CALLS: "tool_calls",
    StopReason.MAX_TOKENS: "tokens",
    StopReason.MAX_COST: "cost",
    StopReason.DEADLINE: "seconds",
}
"""What a run needs more of, by what it stopped at."""


@dataclass(frozen=True, slots=True)
class More:
    """What is added to a run's limits."""

    steps: int = 0
    tool_calls: int = 0
    tokens: int = 0
    cost: Decimal = Decimal(0)
    seconds: float = 0.0

    def plain(self) -> dict[str, Any]:
        """Return it as it is stored: what is not nothing, in the units that the state counts in.

        Raises:
            ConfigurationError: If a part has the wrong form, or nothing is added.
        """
        for name in ("steps", "tool_calls", "tokens"):
            given: object = getattr(self, name)
            if not isinstance(given, int) or isinstance(given, bool) or given < 0:
                raise ConfigurationError(f"{name} is {given!r}; give a whole number from 0 on", option=name)
        if not is_amount(self.cost):
            raise ConfigurationError(f"cost is {self.cost!r}; give a Decimal from 0 on, in US dollars", option="cost")
        seconds: object = self.seconds
        if seconds not in (0, 0.0) and not is_span(seconds):
            raise ConfigurationError(f"seconds is {seconds!r}; give a number from 0 on", option="seconds")
        added = {
            "steps": self.steps,
            "tool_calls": self.tool_calls,
            "tokens": self.tokens,
            "cost_nano": int(self.cost * NANO),
            "seconds": self.seconds,
        }
        kept = {name: amount for name, amount in added.items() if amount}
        if not kept:
            raise ConfigurationError("nothing is added; say how much more, such as steps=10")
        return kept


async def extend(driver: Driver, run_id: str, more: More, key: str, by: object) -> Receipt:
    """Add to the limits of a run that has stopped at one; committed before this returns."""
    name = person_of(by).name
    if key != storable(key):
        raise ConfigurationError("key cannot be stored; give a plain text", option="key")
    plain = more.plain()
    row = await driver.own_row(run_id)
    known = _known(row, key)
    if known is not None:
        return _receipt(run_id, known, accepted=False)
    await _check(driver, row, plain)
    extension = {**plain, "by": name, "at": driver.ledger.clock(), "key": key}
    if await driver.door.blocking(driver.ledger.runs.extend, row, extension):
        return _receipt(run_id, extension, accepted=True)
    now = await driver.row(run_id)
    if len(extensions_of(now)) == len(extensions_of(row)):
        raise RunError(f"run {run_id} cannot be extended any more: it is {now.status} now", run_id=run_id)
    return _receipt(run_id, extensions_of(now)[-1], accepted=False)


def _known(row: RunRow, key: str) -> Mapping[str, Any] | None:
    """Return the extension that a second click finds: the one under its key, or the one that the run goes on with."""
    extensions = extensions_of(row)
    for one in extensions:
        if key and one["key"] == key:
            return one
    return extensions[-1] if extensions and not row.is_final else None


async def _check(driver: Driver, row: RunRow, plain: Mapping[str, Any]) -> None:
    """Refuse what would change nothing, or could not go on.

    Raises:
        RunError: Saying why, and what to do instead.
    """
    needed = _NEEDED.get(StopReason(row.reason), "") if row.status == RunStatus.STOPPED else ""
    if not needed:
        stands = f"{row.status} ({row.reason})" if row.reason else row.status
        text = f"run {row.id} is {stands}; only a run that stopped at a limit can be extended: {', '.join(_NEEDED)}"
        raise RunError(text, run_id=row.id, status=row.status)
    if row.is_plain:
        text = f"run {row.id} was driven by whoever called the agent itself; send a new message on its thread"
        raise RunError(text, run_id=row.id)
    if ("cost_nano" if needed == "cost" else needed) not in plain:
        text = f"run {row.id} stopped at {row.reason}, and would at once again; add {needed}=…"
        raise RunError(text, run_id=row.id, reason=row.reason)
    newest = current_run(await driver.state(row))
    if newest is None or newest["id"] != row.id:
        text = f"thread {row.thread_id!r} has gone on since run {row.id}; send a new message on it"
        raise RunError(text, run_id=row.id, thread_id=row.thread_id)


def _receipt(run_id: str, extension: Mapping[str, Any], *, accepted: bool) -> Receipt:
    amounts = {name: amount for name, amount in extension.items() if name not in ("by", "at", "key")}
    return Receipt(run_id, accepted, {"type": EXTEND, **amounts}, str(extension["by"]), float(extension["at"]))
