"""Usage: plain arithmetic, each figure counted in one place."""

from __future__ import annotations

from decimal import Decimal

import pytest

from loopwright.state import (
    ThreadRecord,
    Tokens,
    add_attempt,
    add_run,
    add_seconds,
    add_step,
    add_tool_call,
    no_usage,
    remove_run,
    remove_tool_call,
    view_usage,
)


def test_an_attempt_adds_its_tokens_and_its_cost() -> None:
    """Each part adds up; once estimated, the whole is."""
    record = add_attempt(no_usage(), Tokens(10, 5, cached=4, reasoning=2), 1_500_000_000)
    record = add_attempt(record, Tokens(1, 1, estimated=True), 1)
    usage = view_usage(record)
    assert (2, 11, 6, 4, 2, 17) == (
        usage.model_calls,
        usage.input_tokens,
        usage.output_tokens,
        usage.cached_tokens,
        usage.reasoning_tokens,
        usage.tokens,
    )
    assert (usage.cost, usage.estimated) == (Decimal("1.500000001"), True)


def test_tool_calls_are_counted_and_taken_back() -> None:
    """What is taken back leaves no trace, also not a zero."""
    record = add_tool_call(add_tool_call(add_step(no_usage()), "a"), "b")
    assert (record["steps"], record["tool_calls"], record["by_tool"]) == (1, 2, {"a": 1, "b": 1})
    record = remove_tool_call(record, "a")
    assert (record["tool_calls"], record["by_tool"]) == (1, {"b": 1})


@pytest.mark.parametrize(("seconds", "total"), [(0.25, 0.25), (-5, 0.0), (0.0000001, 0.0)])
def test_time_never_runs_backwards(seconds: float, total: float) -> None:
    """Whatever the clock did."""
    assert total == add_seconds(no_usage(), seconds)["seconds"]


def test_a_run_adds_to_its_thread() -> None:
    """The thread's totals go on, and back if it is extended; its other facts stay."""
    thread = ThreadRecord(version=1, runs=1, steps=2, tool_calls=3, tokens=4, cost_nano=5, window={"x": []})
    record = add_tool_call(add_step(add_attempt(no_usage(), Tokens(10, 5), 7)), "a")
    total = ThreadRecord(version=1, runs=2, steps=3, tool_calls=4, tokens=19, cost_nano=12, window={"x": []})
    added = add_run(thread, record)
    assert {**total, "seconds": 0.0, "by_tool": {"a": 1}} == added
    assert {**thread, "seconds": 0.0, "by_tool": {}} == remove_run(added, record)
