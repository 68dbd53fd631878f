"""The bounds of a run, and of all runs of a thread."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any, cast

from loopwright.errors import InvalidLimits

from .budgets import is_amount
from .usage import NANO


class _DefaultCount(int):
    """A default, told from the same number where somebody wrote it: in `thread`, only what was written counts."""

    __slots__ = ()


class _DefaultSeconds(float):
    """The same, for a span."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of one run; each counts from zero when a new task starts, and no pause, crash or resume resets it.

    `None` lifts a bound. At least one of `max_steps`, `max_tokens` and `max_seconds` must be left: a loop of calls that
    never run is not ended by a bound on calls, nor one of a model that costs nothing by a bound on cost.

    Raises:
        InvalidLimits: If a bound is negative, no number, or no whole one where things are counted; or if nothing bounds
            the loop; or if `thread` holds what cannot hold for a thread.
    """

    max_steps: int | None = _DefaultCount(25)
    """Model calls, each with what it led to. Counted when the call is made."""
    max_tool_calls: int | None = _DefaultCount(50)
    """Tool calls. Counted when the guard admits them: what is denied, rejected or invalid costs nothing."""
    max_calls_per_tool: int | Mapping[str, int] | None = None
    """Tool calls of one tool: one number for each tool, or numbers by tool name. Does not bound the loop by itself."""
    max_tokens: int | None = _DefaultCount(500_000)
    """Input and output tokens of all model calls together; estimated where the provider reports none. The worst case
    of a call is reserved before it is made."""
    max_cost: Decimal | None = None
    """US dollars for model calls, reserved likewise; a `Decimal`, as all money. Needs a model with a known price."""
    max_seconds: float | None = _DefaultSeconds(600.0)
    """Active seconds: the nodes' own time. Waiting for a person costs nothing; parallel calls count once."""
    max_parallel: int = _DefaultCount(8)
    """How many calls of one turn run at the same time."""
    thread: Limits | None = None
    """The bounds of all runs of a thread together: `Limits(thread=Limits(max_cost=Decimal(5)))`. They go on from run
    to run; what is not written there bounds nothing."""

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        for field in fields(self):
            if field.name != "thread":
                _check(field.name, getattr(self, field.name))
        _check_thread(self.thread)
        if not _is_whole(self.max_parallel) or self.max_parallel < 1:
            text = f"max_parallel is {self.max_parallel!r}; give a whole number, at least 1, or no tool could ever run"
            raise InvalidLimits(text, limit="max_parallel")
        if all(bound is None for bound in (self.max_steps, self.max_tokens, self.max_seconds)):
            text = "no limit at all on steps, tokens or seconds: a run could go on for ever; set at least max_steps"
            raise InvalidLimits(text)

    def calls_of(self, tool: str) -> int | None:
        """Return how many calls of this tool a run may make; None for any number."""
        if isinstance(self.max_calls_per_tool, Mapping):
            return self.max_calls_per_tool.get(tool)
        return self.max_calls_per_tool

    def written(self) -> Limits:
        """Return the limits with only those bounds that somebody wrote; for totals, where defaults would surprise."""
        kept = object.__new__(Limits)  # without the check that something bounds each run
        for field in fields(self):
            bound = getattr(self, field.name)
            is_default = isinstance(bound, _DefaultCount | _DefaultSeconds)
            object.__setattr__(kept, field.name, None if is_default else bound)
        return kept

    @property
    def max_cost_nano(self) -> int | None:
        """The cost bound in nano-dollars, the unit that the state counts in."""
        return None if self.max_cost is None else int(self.max_cost * NANO)


_OF_THREADS = ("max_steps", "max_tool_calls", "max_calls_per_tool", "max_tokens", "max_cost", "max_seconds")


def _check_thread(thread: object) -> None:
    if thread is None:
        return
    if not isinstance(thread, Limits):
        text = f"thread is {thread!r}; give Limits(…) with the bounds of all runs of a thread together"
        raise InvalidLimits(text, limit="thread")
    if thread.thread is not None:
        raise InvalidLimits("thread has a thread of its own; write its bounds once", limit="thread")
    written = thread.written()
    if not isinstance(thread.max_parallel, _DefaultCount):
        text = "thread sets max_parallel, which has no total; set it beside thread"
        raise InvalidLimits(text, limit="thread")
    if all(getattr(written, name) is None for name in _OF_THREADS):
        text = "thread bounds nothing: only what is written there counts, such as thread=Limits(max_steps=200)"
        raise InvalidLimits(text, limit="thread")


_COUNTED = ("max_steps", "max_tool_calls", "max_calls_per_tool", "max_tokens")


def _is_whole(bound: object) -> bool:
    return isinstance(bound, int) and not isinstance(bound, bool)


def _check(name: str, bound: Any) -> None:
    values = cast("Mapping[str, Any]", bound).values() if isinstance(bound, Mapping) else [bound]
    for value in values:
        if value is None:
            continue
        if name == "max_cost" and not is_amount(value):
            text = f"max_cost is {value!r}; give a Decimal from 0 on, in US dollars, such as Decimal('0.05'), or None"
            raise InvalidLimits(text, limit=name)
        numeric = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
        if not numeric or not math.isfinite(value) or value < 0:
            raise InvalidLimits(f"{name} is {value!r}; give a number from 0 on, or None", limit=name)
        if name in _COUNTED and not _is_whole(value):
            raise InvalidLimits(f"{name} is {value!r}; give a whole number, or None", limit=name)
