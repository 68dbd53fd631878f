"""How much of its results a turn may show."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.errors import ConfigurationError
from loopwright.tools import Caps, shares, show

CAPS = Caps(result=4_000, turn=10_000)


@given(st.lists(st.integers(0, 20_000), max_size=30))
def test_shares_keep_the_caps_and_are_fair(lengths: list[int]) -> None:
    """No result gets more than it needs or may have; all together stay under the turn's cap; none envies another."""
    given = shares(lengths, CAPS)
    assert sum(given) <= CAPS.turn
    assert all(share <= min(length, CAPS.result) for share, length in zip(given, lengths, strict=True))
    cut = [share for share, length in zip(given, lengths, strict=True) if share < min(length, CAPS.result)]
    assert max(given, default=0) - min(cut, default=max(given, default=0)) <= 1


@given(st.integers(0, 5_000), st.integers(200, 4_000))
def test_what_is_shown_fits_its_share(length: int, share: int) -> None:
    """With the notice; and what it says leads on exactly where the text was cut."""
    text = "x" * length
    shown = show(text, share, "0123456789")
    assert len(shown.text) + len(shown.notice) <= share
    if shown.notice:
        assert f"offset={len(shown.text)})" in shown.notice
        assert f"{length - len(shown.text)} of {length} characters" in shown.notice


@pytest.mark.parametrize("cap", [0, 999, -1, True, 1e5, None, "20000"])
def test_a_cap_that_shows_nothing_is_refused(cap: Any) -> None:
    """When the agent is built."""
    with pytest.raises(ConfigurationError, match="max_turn_characters"):
        Caps(turn=cap)
