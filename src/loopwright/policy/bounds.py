"""What bounds a run here and now: its own limits, what was added to them, and what its thread leaves. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TypeVar

from loopwright.state import NANO, Limits, RunRecord, StopReason, ThreadRecord

N = TypeVar("N", int, float)

LAST_WORDS_PART = 10
"""Of `max_seconds`, one part in so many is kept for the last words of a run."""
LAST_WORDS_SECONDS = 30.0
"""So much at most."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of one run, each the tightest of all that hold; None for any amount."""

    limits: Limits
    """The agent's."""
    thread: ThreadRecord
    """What the thread's earlier runs have used."""
    max_steps: int | None
    max_tool_calls: int | None
    max_tokens: int | None
    max_cost_nano: int | None
    max_seconds: float | None

    def calls_of(self, tool: str) -> int | None:
        """Return how many calls of this tool the run may make; None for any number."""
        total = self.limits.thread.calls_of(tool) if self.limits.thread is not None else None
        return _tighter(self.limits.calls_of(tool), _rest(total, self.thread.get("by_tool", {}).get(tool, 0)))


def bounds_of(limits: Limits, run: RunRecord, thread: ThreadRecord, *, keeps_last_words: bool = False) -> Bounds:
    """Return what bounds a run.

    Args:
        limits: The agent's.
        run: For what `Runs.extend` added.
        thread: For what its earlier runs have used.
        keeps_last_words: Leave a step, and some of the time, for one more call.
    """
    own, rest = own_bounds(limits, run, thread), thread_bounds(limits, run, thread)
    bounds = (
        own
        if rest is None
        else replace(
            own,
            max_steps=_tighter(own.max_steps, rest.max_steps),
            max_tool_calls=_tighter(own.max_tool_calls, rest.max_tool_calls),
            max_tokens=_tighter(own.max_tokens, rest.max_tokens),
            max_cost_nano=_tighter(own.max_cost_nano, rest.max_cost_nano),
            max_seconds=_tighter(own.max_seconds, rest.max_seconds),
        )
    )
    if not keeps_last_words:
        return bounds
    kept = min(LAST_WORDS_SECONDS, (bounds.max_seconds or 0.0) / LAST_WORDS_PART)
    return replace(bounds, max_steps=_rest(bounds.max_steps, 1), max_seconds=_rest(bounds.max_seconds, kept))


def own_bounds(limits: Limits, run: RunRecord, thread: ThreadRecord) -> Bounds:
    """Return what the agent's limits, and what was added to them, say of a run."""
    added = run.get("added", {})
    return Bounds(
        limits,
        thread,
        _more(limits.max_steps, added.get("steps", 0)),
        _more(limits.max_tool_calls, added.get("tool_calls", 0)),
        _more(limits.max_tokens, added.get("tokens", 0)),
        _more(limits.max_cost_nano, added.get("cost_nano", 0)),
        _more(limits.max_seconds, added.get("seconds", 0.0)),
    )


def thread_bounds(limits: Limits, run: RunRecord, thread: ThreadRecord) -> Bounds | None:
    """Return what the thread's totals leave of its limits to a run; None where nothing bounds the thread.

    What was added to the run is added here too, or it could not go on.
    """
    if limits.thread is None:
        return None
    total = own_bounds(limits.thread.written(), run, thread)
    return replace(
        total,
        max_steps=_rest(total.max_steps, thread["steps"]),
        max_tool_calls=_rest(total.max_tool_calls, thread["tool_calls"]),
        max_tokens=_rest(total.max_tokens, thread["tokens"]),
        max_cost_nano=_rest(total.max_cost_nano, thread["cost_nano"]),
        max_seconds=_rest(total.max_seconds, thread.get("seconds", 0.0)),
    )


_FIGURES = {
    StopReason.MAX_STEPS: "max_steps",
    StopReason.MAX_TOOL_CALLS: "max_tool_calls",
    StopReason.MAX_TOKENS: "max_tokens",
    StopReason.MAX_COST: "max_cost_nano",
    StopReason.DEADLINE: "max_seconds",
}


def name_limit(reason: StopReason, limits: Limits, run: RunRecord, thread: ThreadRecord) -> str:
    """Say which limit a run met: whose it is, and how much; empty for a reason that is no limit."""
    if reason not in _FIGURES:
        return ""
    own, rest = own_bounds(limits, run, thread), thread_bounds(limits, run, thread)
    mine = getattr(own, _FIGURES[reason])
    left = getattr(rest, _FIGURES[reason]) if rest is not None else None
    if limits.thread is None or left is None or (mine is not None and mine <= left):
        return f"the run's {_said(reason, mine)}"
    total = getattr(own_bounds(limits.thread.written(), run, thread), _FIGURES[reason])
    return f"the thread's {_said(reason, total)}"


def _said(reason: StopReason, figure: float | None) -> str:
    if figure is None:  # of one tool, or of a model that went over what was reserved
        return reason.value
    match reason:
        case StopReason.MAX_COST:
            return f"max_cost of ${Decimal(int(figure)) / NANO:f}"
        case StopReason.DEADLINE:
            return f"max_seconds of {figure:g} s"
        case _:
            return f"{reason.value} of {figure:,}"


def _tighter(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)


def _more(bound: N | None, added: N) -> N | None:
    return None if bound is None else bound + added


def _rest(bound: N | None, used: N) -> N | None:
    return None if bound is None else max(type(used)(0), bound - used)
