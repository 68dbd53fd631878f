"""What bounds a run: its limits, what was added, and what its thread leaves."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest

from loopwright import Limits, StopReason
from loopwright.policy import bounds_of, name_limit, refuse_call
from loopwright.state import RunRecord, ThreadRecord, no_usage

RUN = RunRecord(id="r", task_id="t", task="", began=0.0, status="running", reason="", answer="", error="")
THREAD = ThreadRecord(version=1, runs=2, steps=30, tool_calls=9, tokens=700, cost_nano=4 * 10**9, window={})


def thread(**totals: Any) -> ThreadRecord:
    """A thread that has used this much."""
    return cast("ThreadRecord", {**THREAD, **totals})


def test_without_more_the_limits_are_the_bounds() -> None:
    """Whatever the thread has used."""
    bounds = bounds_of(Limits(max_cost=Decimal("0.5")), RUN, THREAD)
    assert (25, 50, 500_000, 5 * 10**8, 600.0) == (
        bounds.max_steps,
        bounds.max_tool_calls,
        bounds.max_tokens,
        bounds.max_cost_nano,
        bounds.max_seconds,
    )


def test_a_thread_leaves_the_rest_of_what_was_written() -> None:
    """Its defaults bound nothing: a conversation is not over after 25 steps. Never less than nothing is left."""
    total = Limits(max_steps=40, max_tool_calls=8, max_cost=Decimal(5), max_seconds=100)
    bounds = bounds_of(Limits(thread=total), RUN, thread(seconds=70.5))
    assert (10, 0, 500_000, 10**9, 29.5) == (
        bounds.max_steps,
        bounds.max_tool_calls,
        bounds.max_tokens,
        bounds.max_cost_nano,
        bounds.max_seconds,
    )


def test_calls_of_a_tool_over_the_thread() -> None:
    """The tighter of both holds."""
    limits = Limits(max_calls_per_tool=2, thread=Limits(max_calls_per_tool={"pay": 3}))
    bounds = bounds_of(limits, RUN, thread(by_tool={"pay": 2, "look": 9}))
    assert (1, 2) == (bounds.calls_of("pay"), bounds.calls_of("look"))
    used = {**no_usage(), "by_tool": {"pay": 1}}
    assert "limit of 1 calls of pay" in refuse_call(bounds, cast("Any", used), "pay")


def test_what_was_added_counts_for_both() -> None:
    """Else a run that its thread has stopped could never go on."""
    run: RunRecord = {**RUN, "added": {"steps": 5, "cost_nano": 7}}
    bounds = bounds_of(Limits(max_steps=3, thread=Limits(max_steps=31, max_cost=Decimal(4))), run, THREAD)
    assert (6, 7) == (bounds.max_steps, bounds.max_cost_nano)


def test_room_for_last_words() -> None:
    """One step, and a tenth of the time, at most half a minute."""
    bounds = bounds_of(Limits(max_steps=3, max_seconds=100), RUN, THREAD, keeps_last_words=True)
    assert (2, 90.0) == (bounds.max_steps, bounds.max_seconds)
    assert 570 == bounds_of(Limits(), RUN, THREAD, keeps_last_words=True).max_seconds
    assert bounds_of(Limits(max_seconds=None), RUN, THREAD, keeps_last_words=True).max_seconds is None


NAMED: list[tuple[StopReason, Limits, str]] = [
    (StopReason.MAX_STEPS, Limits(max_steps=3), "the run's max_steps of 3"),
    (StopReason.MAX_STEPS, Limits(thread=Limits(max_steps=31)), "the thread's max_steps of 31"),
    (StopReason.MAX_STEPS, Limits(max_steps=3, thread=Limits(max_steps=90)), "the run's max_steps of 3"),
    (StopReason.MAX_TOKENS, Limits(), "the run's max_tokens of 500,000"),
    (StopReason.MAX_COST, Limits(max_cost=Decimal("0.05")), "the run's max_cost of $0.05"),
    (StopReason.MAX_COST, Limits(thread=Limits(max_cost=Decimal(4))), "the thread's max_cost of $4"),
    (StopReason.DEADLINE, Limits(max_seconds=2.5), "the run's max_seconds of 2.5 s"),
    (StopReason.REFUSED, Limits(), ""),
]


@pytest.mark.parametrize(("reason", "limits", "said"), NAMED)
def test_the_limit_that_was_met_has_a_name(reason: StopReason, limits: Limits, said: str) -> None:
    """Whose it is, and how much."""
    assert said == name_limit(reason, limits, RUN, THREAD)
