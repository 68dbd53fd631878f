"""The loop guard: it never holds back what brings something new, and always ends what goes round for ever."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from loopwright import Loops
from loopwright.policy import Rung, Seen, is_loop, next_window, rung_of
from loopwright.policy.window import LONGEST

TOOLS = st.sampled_from(["a", "b", "c"])
CALLS = st.tuples(TOOLS, st.integers(0, 3))
TURNS = st.lists(CALLS, min_size=1, max_size=3)
PERIODS = st.lists(TURNS, min_size=1, max_size=LONGEST)
LOOPS = st.builds(
    Loops,
    repeats=st.integers(2, 5),
    rounds=st.integers(2, 4),
    failures=st.integers(2, 5),
    no_news=st.integers(2, 9),
    allow=st.dictionaries(TOOLS, st.integers(2, 8), max_size=2),
)


def take(stored: dict[str, Any], turn: list[Seen], loops: Loops) -> tuple[dict[str, Any], bool]:
    """Return the window after a turn whose barred calls are not run, and whether anything was said."""
    passed = [
        Seen(one.tool, one.call, one.result, refused=True) if rung_of(stored, one.call, one.tool) else one
        for one in turn
    ]
    window, told = next_window(stored, passed, loops)
    return {**window}, bool(told)


@given(st.lists(TURNS, max_size=40), LOOPS)
def test_what_is_always_new_is_never_a_loop(turns: list[list[tuple[str, int]]], loops: Loops) -> None:
    """Any calls, also the same ones again: as long as each result is new, nothing is said."""
    stored: dict[str, Any] = {}
    for number, turn in enumerate(turns):
        seen = [Seen(tool, f"{tool}{n}", f"{number}.{place}") for place, (tool, n) in enumerate(turn)]
        stored, told = take(stored, seen, loops)
        assert (False, Rung.NONE) == (told, stored["rung"])


def go_round(stored: dict[str, Any], period: list[list[tuple[str, int]]], loops: Loops, turns: int) -> bool:
    """Tell whether it is over after so many turns of a period."""
    for number in range(turns):
        turn = period[number % len(period)]
        stored, _ = take(stored, [Seen(tool, f"{tool}{n}", f"{tool}{n}") for tool, n in turn], loops)
    return is_loop(stored)


def documented(period: list[list[tuple[str, int]]], loops: Loops) -> int:
    """Return the turn at which a run that does nothing else is over: told, then held back, then ended."""
    tools = {tool for turn in period for tool, _ in turn}
    repeats, rounds = loops.count_for(loops.repeats, tools), loops.count_for(loops.rounds, tools)
    return max(repeats or 0, (rounds or 0) * len(period)) + 2


@given(PERIODS, LOOPS)
def test_a_period_ends_at_the_documented_call(period: list[list[tuple[str, int]]], loops: Loops) -> None:
    """A model that goes round for ever, in up to four turns, is stopped at that turn, or earlier."""
    assert go_round({}, period, loops, documented(period, loops))


@given(st.lists(TURNS, max_size=20), PERIODS, LOOPS)
def test_a_period_ends_whatever_came_before(
    before: list[list[tuple[str, int]]], period: list[list[tuple[str, int]]], loops: Loops
) -> None:
    """What an earlier ladder still holds back can cost two rounds more: until then, each of its calls has run."""
    stored: dict[str, Any] = {}
    for turn in before:
        stored, _ = take(stored, [Seen(tool, f"{tool}{n}", f"{tool}{n}") for tool, n in turn], loops)
    assert go_round(stored, period, loops, documented(period, loops) + 2 * len(period))
