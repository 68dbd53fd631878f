"""Rate limits: how often something may be called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from loopwright.errors import ConfigurationError

from .budgets import is_count
from .seconds import is_span

WhenExceeded = Literal["wait", "refuse", "park"]
MAX_CALLS = 100_000
MAX_SECONDS = 100 * 366 * 86_400
"""A hundred years: what is said of a later moment is of no use to anybody, and soon cannot be said at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """At most `calls` in any `per_seconds`, over all runs and processes of one ledger.

    Of a model it counts by the model's name, of a tool by the tool's.

    Raises:
        ConfigurationError: If a part of it has the wrong form.
    """

    calls: int
    per_seconds: float
    when_exceeded: WhenExceeded = "wait"
    """`wait`: for the next free moment, within `max_seconds`. `refuse`: the tool's call is answered as not run, and a
    model's ends the run with the stop reason `rate_limit`. `park`: the run pauses, holds nothing, and goes on by itself
    when there is room; where there is no saver to pause with, it refuses."""

    def __post_init__(self) -> None:
        """Refuse what could not be kept."""
        if not is_count(self.calls) or not 1 <= self.calls <= MAX_CALLS:
            text = f"Rate: calls is {self.calls!r}; give a whole number from 1 to {MAX_CALLS:,}"
            raise ConfigurationError(text, option="calls")
        if not is_span(self.per_seconds) or self.per_seconds > MAX_SECONDS:
            text = f"Rate: per_seconds is {self.per_seconds!r}; give seconds above 0, at most {MAX_SECONDS:,}"
            raise ConfigurationError(text, option="per_seconds")
        if self.when_exceeded not in get_args(WhenExceeded):
            known = ", ".join(repr(kind) for kind in get_args(WhenExceeded))
            text = f"Rate: when_exceeded is {self.when_exceeded!r}; give one of {known}"
            raise ConfigurationError(text, option="when_exceeded")

    def __str__(self) -> str:
        """Name it, as a refusal says it."""
        return f"rate limit of {self.calls} in {self.per_seconds:g} s"
