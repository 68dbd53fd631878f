"""How much a call of the model may use, as tables and as a rule for all figures."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright import Price, StopReason
from loopwright.policy import SMALLEST_REPLY, Left, Room, Wanted, find_room, least
from loopwright.state import Tokens

PRICE = Price(Decimal(1), Decimal(2))
"""A thousand nano-dollars a token of input, two thousand one of output."""

CASES: list[tuple[Left, int | None, StopReason | None]] = [
    (Left(), 1000, None),
    (Left(tokens=1100), 1000, None),
    (Left(tokens=1099), 999, StopReason.MAX_TOKENS),
    (Left(tokens=164), 64, StopReason.MAX_TOKENS),
    (Left(tokens=163), None, StopReason.MAX_TOKENS),
    (Left(cost_nano=2_100_000), 1000, None),
    (Left(cost_nano=2_099_999), 999, StopReason.MAX_COST),
    (Left(cost_nano=228_000), 64, StopReason.MAX_COST),
    (Left(cost_nano=227_999), None, StopReason.MAX_COST),
    (Left(tokens=600, cost_nano=500_000), 200, StopReason.MAX_COST),
    (Left(tokens=200, cost_nano=500_000), 100, StopReason.MAX_TOKENS),
    (Left(tokens=0, cost_nano=0), None, StopReason.MAX_TOKENS),
]


@pytest.mark.parametrize(("left", "output", "limit"), CASES)
def test_the_longest_reply_that_fits(left: Left, output: int | None, limit: StopReason | None) -> None:
    """Nothing is capped while the model's own maximum fits; below the smallest useful reply there is no call."""
    found = find_room(left, Wanted(input=100, most=1000, price=PRICE))
    if output is None:
        assert found == limit
        return
    tokens = Tokens(100, output, estimated=True)
    assert found == Room(tokens, PRICE(tokens), limit)


def test_a_model_that_is_always_brief() -> None:
    """Whoever set the model's maximum below the smallest useful reply wants just that."""
    found = find_room(Left(tokens=110), Wanted(input=100, most=10))
    assert isinstance(found, Room)
    assert (10, None) == (found.tokens.output, found.cap)


def test_the_tightest_bound() -> None:
    """Each figure by itself; None bounds nothing."""
    assert least(Left(5, None), Left(None, 7), Left(9, 3)) == Left(5, 3)
    assert least() == Left()


FIGURES = st.integers(min_value=0, max_value=10**6)


@given(FIGURES, FIGURES, FIGURES, st.integers(min_value=0, max_value=5000), st.integers(min_value=1, max_value=10**5))
def test_what_is_reserved_fits(tokens: int, cost: int, taken: int, keep: int, most: int) -> None:
    """Whatever is left, it is not overrun; a further call that was to be kept room for fits behind it."""
    wanted = Wanted(input=taken, most=most, price=PRICE, keep=keep)
    found = find_room(Left(tokens, cost * 10**4), wanted)
    if isinstance(found, StopReason):
        return
    after = found.tokens.output + taken
    assert min(SMALLEST_REPLY, most) <= found.tokens.output <= most
    assert after + (after + keep if keep else 0) <= tokens
    assert found.cost_nano == PRICE(found.tokens)
    assert found.cost_nano + (PRICE(Tokens(after, keep)) if keep else 0) <= cost * 10**4
