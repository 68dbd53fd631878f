"""The loop guard: the same call with the same result, again and again. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

IN_A_ROW = 3
"""So many equal results of equal calls, one turn after another, are a loop."""


def next_window(window: dict[str, list[Any]], seen: Iterable[tuple[str, str]]) -> dict[str, list[Any]]:
    """Return the window after a turn.

    Only calls of the turn before count on: a call that was not repeated, or that brought something else (polling),
    starts again at one.

    Args:
        window: By call digest, the digest of the last result and how often it came in a row.
        seen: The call digest and result digest of each call of the turn.
    """
    after: dict[str, list[Any]] = {}
    for call, result in seen:
        before, count = window.get(call, ("", 0))
        after[call] = [result, count + 1 if before == result else 1]
    return after


def is_loop(window: dict[str, list[Any]]) -> bool:
    """Tell whether some call came back the same too often."""
    return any(count >= IN_A_ROW for _, count in window.values())
