"""Which limit is met, as tables."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest

from loopwright import Limits, StopReason
from loopwright.policy import Rung, calls_are_used_up, limit_met, over_limit, refuse_call, seconds_left
from loopwright.policy.window import load_window
from loopwright.state import RunRecord, ThreadRecord, UsageRecord, no_usage

RUN = RunRecord(id="r", task_id="t", task="", began=0.0, status="running", reason="", answer="", error="")
THREAD = ThreadRecord(version=1, runs=0, steps=0, tool_calls=0, tokens=0, cost_nano=0, window={})
LIMITS = Limits(max_steps=3, max_tool_calls=2, max_tokens=100, max_cost=Decimal("0.000000010"), max_seconds=5)


def used(**figures: Any) -> UsageRecord:
    """Usage with some figures."""
    return cast("UsageRecord", {**no_usage(), **figures})


MET: list[tuple[UsageRecord, StopReason | None]] = [
    (used(), None),
    (used(steps=2), None),
    (used(steps=3), StopReason.MAX_STEPS),
    (used(input_tokens=60, output_tokens=39), None),
    (used(input_tokens=60, output_tokens=40), StopReason.MAX_TOKENS),
    (used(cost_nano=9), None),
    (used(cost_nano=10), StopReason.MAX_COST),
    (used(seconds=4.999), None),
    (used(seconds=5.0), StopReason.DEADLINE),
    (used(tool_calls=2), None),
]


@pytest.mark.parametrize(("usage", "reason"), MET)
def test_met(usage: UsageRecord, reason: StopReason | None) -> None:
    """A limit is met when it is reached; tool calls alone do not end a run that calls none."""
    assert reason == limit_met(LIMITS, usage, RUN, THREAD)


def test_a_stop_that_waits_comes_first() -> None:
    """Then a loop, then the figures."""
    stopping: RunRecord = {**RUN, "stop": "escalated"}
    looping: ThreadRecord = {**THREAD, "window": {**load_window({}), "rung": Rung.ENDED}}
    assert StopReason.ESCALATED == limit_met(LIMITS, used(steps=3), stopping, looping)
    assert StopReason.LOOP == limit_met(LIMITS, used(steps=3), RUN, looping)


def test_lifted_limits_are_never_met() -> None:
    """None means any number."""
    lifted = Limits(max_tool_calls=None, max_tokens=None, max_seconds=None)
    enough = used(input_tokens=10**9, cost_nano=10**18, seconds=1e9, tool_calls=10**6)
    assert over_limit(lifted, enough) is None
    assert refuse_call(lifted, enough, "pay") == ""
    assert not calls_are_used_up(lifted, enough)
    assert seconds_left(lifted, enough) is None


def test_calls_that_fit() -> None:
    """One more call fits below the limit of all, and below that of its tool; the refusal says which."""
    limits = Limits(max_tool_calls=2, max_calls_per_tool={"pay": 1})
    assert refuse_call(limits, used(tool_calls=1, by_tool={"look": 1}), "pay") == ""
    assert "2 tool calls" in refuse_call(limits, used(tool_calls=2), "look")
    assert "1 calls of pay" in refuse_call(limits, used(tool_calls=1, by_tool={"pay": 1}), "pay")
    assert [False, True] == [calls_are_used_up(limits, used(tool_calls=count)) for count in (1, 2)]


def test_time_that_is_left() -> None:
    """Never less than none."""
    assert [5, 1.5, 0] == [seconds_left(LIMITS, used(seconds=seconds)) for seconds in (0, 3.5, 9)]
