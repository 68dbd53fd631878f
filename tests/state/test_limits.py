"""Limits: finite by default, and never nothing at all."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from loopwright import Limits
from loopwright.errors import InvalidLimits


def test_the_defaults_bound_every_loop() -> None:
    """Without a word from the user, steps, calls, tokens and time are bounded; money is not, as it needs a price."""
    limits = Limits()
    assert (25, 50, 500_000, 600.0, 8) == (
        limits.max_steps,
        limits.max_tool_calls,
        limits.max_tokens,
        limits.max_seconds,
        limits.max_parallel,
    )
    assert limits.max_cost is None


@pytest.mark.parametrize("name", ["max_steps", "max_tool_calls", "max_tokens", "max_cost", "max_seconds"])
@pytest.mark.parametrize("bound", [-1, float("nan"), float("inf"), True, "5", Decimal("NaN")])
def test_a_bound_is_a_number_from_zero_on(name: str, bound: Any) -> None:
    """Everything else is refused where it is written, by name."""
    with pytest.raises(InvalidLimits, match=name):
        Limits(**{name: bound})


@pytest.mark.parametrize("bound", [-1, {"pay": -1}, {"pay": "many"}])
def test_so_are_the_bounds_of_single_tools(bound: Any) -> None:
    """Also inside the mapping."""
    with pytest.raises(InvalidLimits, match="max_calls_per_tool"):
        Limits(max_calls_per_tool=bound)


@pytest.mark.parametrize(("name", "bound"), [("max_cost", 0.05), ("max_cost", 1), ("max_tokens", 1000.5)])
def test_money_is_a_decimal_and_tokens_are_whole(name: str, bound: Any) -> None:
    """As with prices and budgets: a float is another amount than the one that was written."""
    with pytest.raises(InvalidLimits, match=name):
        Limits(**{name: bound})


def test_no_bound_at_all_is_refused() -> None:
    """Calls per tool alone do not end a loop: there can be any number of tools, or of replies without calls."""
    nothing: dict[str, Any] = dict.fromkeys(["max_steps", "max_tool_calls", "max_tokens", "max_seconds"])
    with pytest.raises(InvalidLimits, match="max_steps"):
        Limits(**nothing, max_calls_per_tool=1)
    nothing["max_steps"] = 1
    assert Limits(**nothing).max_steps == 1


def test_no_parallel_call_is_refused() -> None:
    """Zero at a time is never."""
    with pytest.raises(InvalidLimits, match="at least 1"):
        Limits(max_parallel=0)


def test_calls_of_one_tool() -> None:
    """One number holds for each tool; a mapping only for those that it names."""
    assert [3, 3] == [Limits(max_calls_per_tool=3).calls_of(tool) for tool in ("a", "b")]
    assert [1, None] == [Limits(max_calls_per_tool={"a": 1}).calls_of(tool) for tool in ("a", "b")]
    assert Limits().calls_of("a") is None


def test_money_is_exact() -> None:
    """The bound in nano-dollars is the dollars' digits, not a float's."""
    assert Limits(max_cost=Decimal("0.1")).max_cost_nano == 100_000_000
    assert Limits().max_cost_nano is None


@pytest.mark.parametrize("bound", [{"max_tool_calls": 5}, {"max_cost": Decimal(1)}, {"max_calls_per_tool": 1}])
def test_what_bounds_no_loop_of_its_own(bound: dict[str, Any]) -> None:
    """Invalid calls are not counted as calls, and a free model costs nothing."""
    nothing: dict[str, Any] = dict.fromkeys(["max_steps", "max_tool_calls", "max_tokens", "max_seconds"])
    with pytest.raises(InvalidLimits, match="for ever"):
        Limits(**{**nothing, **bound})


@pytest.mark.parametrize("name", ["max_steps", "max_tokens", "max_seconds"])
def test_one_is_enough(name: str) -> None:
    """Each of these ends any loop."""
    nothing: dict[str, Any] = dict.fromkeys(["max_steps", "max_tool_calls", "max_tokens", "max_seconds"])
    nothing[name] = 5
    assert getattr(Limits(**nothing), name) == 5


@pytest.mark.parametrize("bound", [None, 2.5, 2.0, True, "8", -1, Decimal(2)])
def test_how_many_at_a_time_is_a_whole_number(bound: Any) -> None:
    """LangGraph would fail on anything else while a run is on."""
    with pytest.raises(InvalidLimits, match="max_parallel"):
        Limits(max_parallel=bound)


@pytest.mark.parametrize("name", ["max_steps", "max_tool_calls", "max_calls_per_tool"])
@pytest.mark.parametrize("bound", [2.5, 2.0, Decimal(2)])
def test_what_is_counted_is_whole(name: str, bound: Any) -> None:
    """There is no half a step."""
    with pytest.raises(InvalidLimits, match=f"{name} is .*whole number"):
        Limits(**{name: bound})


@pytest.mark.parametrize(
    ("thread", "said"),
    [
        (Limits(), "bounds nothing"),
        (Limits(max_steps=None), "bounds nothing"),
        (Limits(max_steps=9, max_parallel=2), "max_parallel"),
        (Limits(max_steps=9, thread=Limits(max_steps=9)), "thread of its own"),
        (9, "give Limits"),
    ],
)
def test_what_cannot_hold_for_a_thread(thread: Any, said: str) -> None:
    """Is refused where it is written."""
    with pytest.raises(InvalidLimits, match=said):
        Limits(thread=thread)


def test_only_what_was_written_counts_for_a_thread() -> None:
    """A number that happens to be the default was written all the same."""
    written = Limits(max_steps=25, max_cost=Decimal(5)).written()
    assert (25, Decimal(5), None, None) == (
        written.max_steps,
        written.max_cost,
        written.max_tokens,
        written.max_tool_calls,
    )
