"""Spans of time: a finite number above 0."""

from __future__ import annotations

import pytest

from loopwright.state import is_span


@pytest.mark.parametrize("value", [0, -1, True, None, "3", float("nan"), float("inf"), [3]])
def test_no_span(value: object) -> None:
    """Nothing that a clock could not be set by."""
    assert not is_span(value)


@pytest.mark.parametrize("value", [1, 0.05])
def test_a_span(value: object) -> None:
    """Whole or not."""
    assert is_span(value)
