"""The loop guard: the same call with the same result, three turns in a row."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright.policy import is_loop, next_window

TURNS: dict[str, tuple[list[list[tuple[str, str]]], bool]] = {
    "twice is no loop": ([[("a", "1")], [("a", "1")]], False),
    "three times is": ([[("a", "1")], [("a", "1")], [("a", "1")]], True),
    "polling is none": ([[("a", "1")], [("a", "2")], [("a", "3")], [("a", "4")]], False),
    "a change begins anew": ([[("a", "1")], [("a", "1")], [("a", "2")], [("a", "2")]], False),
    "another call in between": ([[("a", "1")], [("a", "1")], [("b", "1")], [("a", "1")]], False),
    "the same twice in one turn": ([[("a", "1"), ("a", "1")], [("a", "1")]], False),
    "with company": ([[("a", "1"), ("b", "1")], [("a", "1"), ("c", "1")], [("d", "1"), ("a", "1")]], True),
    "the same result of other calls": ([[("a", "1")], [("b", "1")], [("c", "1")]], False),
}


@pytest.mark.parametrize(("turns", "looped"), TURNS.values(), ids=TURNS.keys())
def test_table(turns: list[list[tuple[str, str]]], looped: bool) -> None:  # noqa: FBT001 -- a table's column
    """What is a loop, and what is not."""
    window: dict[str, list[Any]] = {}
    for turn in turns:
        window = next_window(window, turn)
    assert looped == is_loop(window)


def test_the_window_does_not_grow() -> None:
    """It holds the calls of one turn only."""
    window: dict[str, list[Any]] = {}
    for number in range(1000):
        window = next_window(window, [(str(number), "x")])
    assert len(window) == 1
