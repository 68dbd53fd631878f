"""More for a run that met a limit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from loopwright.checkpoints import RunRow, extensions_of, labels_of
from loopwright.errors import ConfigurationError, RunError
from loopwright.nodes import budget_met
from loopwright.state import (
    NANO,
    AgentState,
    RunStatus,
    StopReason,
    current_run,
    is_amount,
    is_span,
    person_of,
    refuse_unknown,
    storable,
)

from .driver import Driver
from .options import ExtendOptions
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


async def extend(driver: Driver, run_id: str, more: ExtendOptions, by: object) -> Receipt:
    """Add to the limits of a run that has stopped at one; committed before this returns."""
    refuse_unknown("an extension", more, ExtendOptions.__annotations__)
    name, key = person_of(by).name, more.get("key", "")
    if key != storable(key):
        raise ConfigurationError("key cannot be stored; give a plain text", option="key")
    plain = _plain(more)
    row = await driver.own_row(run_id)
    known = _found(row, key)
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


def _plain(more: ExtendOptions) -> dict[str, Any]:
    """Return the amounts as they are stored: those that are not nothing, in the units that the state counts in.

    Raises:
        ConfigurationError: If one has the wrong form, or nothing is added.
    """
    counts: dict[str, object] = {name: more.get(name, 0) for name in ("steps", "tool_calls", "tokens")}
    for name, given in counts.items():
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise ConfigurationError(f"{name} is {given!r}; give a whole number from 0 on", option=name)
    cost = more.get("cost", Decimal(0))
    if not is_amount(cost):
        raise ConfigurationError(f"cost is {cost!r}; give a Decimal from 0 on, in US dollars", option="cost")
    seconds: object = more.get("seconds", 0)
    if seconds not in (0, 0.0) and not is_span(seconds):
        raise ConfigurationError(f"seconds is {seconds!r}; give a number from 0 on", option="seconds")
    added = {**counts, "cost_nano": int(cost * NANO), "seconds": seconds}
    kept = {name: amount for name, amount in added.items() if amount}
    if not kept:
        raise ConfigurationError("nothing is added; say how much more, such as steps=10")
    return kept


def _found(row: RunRow, key: str) -> Mapping[str, Any] | None:
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
    needed = _NEEDED.get(row.stop_reason, "") if row.stop_reason and row.standing is RunStatus.STOPPED else ""
    if not needed:
        stands = f"{row.status} ({row.reason})" if row.reason else row.status
        text = f"run {row.id} is {stands}; only a run that stopped at a limit can be extended: {', '.join(_NEEDED)}"
        raise RunError(text, run_id=row.id, status=row.status)
    if row.is_plain:
        text = f"run {row.id} was driven by whoever called the agent itself; send a new message on its thread"
        raise RunError(text, run_id=row.id)
    state = await driver.state(row)
    newest = current_run(state)
    if newest is None or newest["id"] != row.id:
        text = f"thread {row.thread_id!r} has gone on since run {row.id}; send a new message on it"
        raise RunError(text, run_id=row.id, thread_id=row.thread_id)
    if met := await _budget_met(driver, row, state, plain):
        text = f"run {row.id} would stop at once again: {met} is used up, and more for a run is no more for a budget; "
        raise RunError(text + "give the budget more, or wait until it starts anew", run_id=row.id, reason=row.reason)
    if ("cost_nano" if needed == "cost" else needed) not in plain:
        text = f"run {row.id} stopped at {row.reason}, and would at once again; add {needed}=…"
        raise RunError(text, run_id=row.id, reason=row.reason)


async def _budget_met(driver: Driver, row: RunRow, state: AgentState, plain: Mapping[str, Any]) -> str:
    """Return which budget of the run has no room for its next call, however much is added to the run; empty for none.

    It may have by now, where it has started anew, or others have given back what they had reserved.
    """
    spec, ledger = driver.agent.spec, driver.ledger
    if not spec.budgets:
        return ""
    shares = [budget.share(labels_of(row), ledger.clock()) for budget in spec.budgets]
    drawn = await driver.door.blocking(ledger.budgets.drawn, shares)
    return budget_met(state, spec, [*extensions_of(row), plain], shares, drawn)


def _receipt(run_id: str, extension: Mapping[str, Any], *, accepted: bool) -> Receipt:
    amounts = {name: amount for name, amount in extension.items() if name not in ("by", "at", "key")}
    return Receipt(run_id, accepted, {"type": EXTEND, **amounts}, str(extension["by"]), float(extension["at"]))
