"""Which pieces of a transcript are sent: tables, and what holds for any."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.errors import ConfigurationError
from loopwright.policy import SHORT, Compaction, Frame, Layout, Piece, TooLong, plan_layout, size_of_layout

FRAME = Frame(limit=10_000, target=5_000, fixed=500, summary=0, longest_summary=200, keep_turns=2)
USER = Piece(50, is_pinned=True, is_users=True)
REPLY = Piece(20, is_reply=True)


def result(tokens: int) -> Piece:
    """Build a result of so many tokens, four letters each."""
    return Piece(tokens, shown=lambda share: share // 4 + 20, characters=tokens * 4)


def turns(*tokens: int) -> list[Piece]:
    """Build a task, and a turn for each result."""
    return [USER, *(piece for size in tokens for piece in (REPLY, result(size)))]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        pytest.param(turns(1_000, 1_000), Layout(), id="it fits"),
        pytest.param(turns(*[1_900] * 5), Layout(short=7), id="old results short"),
        pytest.param(turns(*[100] * 80), Layout(cut=157, short=157), id="small turns: only leaving out helps"),
        pytest.param(turns(2_500, 4_000, 4_000), Layout(cut=5, short=5), id="one turn is kept where two are too many"),
        pytest.param(
            turns(2_000, 8_000), Layout(short=3), id="the newest alone is above the target: the other one short"
        ),
        pytest.param([*turns(*[1_900] * 5), USER], Layout(short=7), id="the user spoke last"),
        pytest.param([USER, *[Piece(20)] * 700], TooLong(14_550), id="nothing to cut in front of"),
        pytest.param([Piece(11_000, is_pinned=True, is_users=True)], TooLong(11_500), id="the task alone"),
        pytest.param(turns(), Layout(), id="a task alone"),
    ],
)
def test_what_is_sent(pieces: list[Piece], expected: Layout | TooLong) -> None:
    """By sizes."""
    assert expected == plan_layout(pieces, Layout(), FRAME)


def test_c51_ten_parallel_calls_stay_together() -> None:
    """The turn is kept whole, its results shortened evenly; the cut is in front of its reply."""
    pieces = [*turns(3_000), REPLY, *[result(3_000)] * 10]
    planned = plan_layout(pieces, Layout(), FRAME)
    assert isinstance(planned, Layout)
    assert planned.cut in {0, 3}
    assert 1 == len(set(planned.shares.values()))
    assert [*range(4, 14)] == sorted(planned.shares)
    assert 7_000 < size_of_layout(pieces, planned, FRAME) <= FRAME.limit


def test_c55_instructions_and_tools_count() -> None:
    """Beside 9,000 tokens of them, 1,200 of history are too many."""
    tight = Frame(10_000, 9_500, fixed=9_000, summary=0, longest_summary=100, keep_turns=2)
    planned = plan_layout(turns(400, 400, 400), Layout(), tight)
    assert Layout() != planned
    assert isinstance(planned, Layout)


def test_a_lone_summary_is_never_summed_up() -> None:
    """What stands is left as it is: nothing new would be left out."""
    pieces = [Piece(9_000, is_pinned=True, is_users=True), REPLY]
    frame = Frame(10_000, 5_000, fixed=500, summary=600, longest_summary=200, keep_turns=2)
    assert isinstance(plan_layout(pieces, Layout(), frame), TooLong)


sizes = st.integers(1, 4_000)
pieces_ = st.lists(
    st.one_of(
        sizes.map(lambda size: Piece(size, is_reply=True)),
        sizes.map(result),
        st.builds(Piece, sizes),
        sizes.map(lambda size: Piece(size, is_pinned=True, is_users=True)),
    ),
    max_size=40,
)


@st.composite
def frames(draw: st.DrawFn) -> Frame:
    """Draw what must be fitted into."""
    limit, keep_turns = draw(st.integers(1_000, 20_000)), draw(st.integers(1, 8))
    target = int(limit * draw(st.floats(0.1, 0.9)))
    return Frame(limit, target, draw(st.integers(0, 1_000)), 0, limit // 10, keep_turns)


@given(pieces=pieces_, frame=frames())
def test_it_fits_or_says_so(pieces: list[Piece], frame: Frame) -> None:
    """Any transcript, any window: within the limit, cut in front of a reply or a user, and stable."""
    planned = plan_layout(pieces, Layout(), frame)
    if isinstance(planned, TooLong):
        assert planned.tokens > frame.limit
        return
    assert size_of_layout(pieces, planned, frame) <= frame.limit
    assert 0 == planned.cut or pieces[planned.cut].is_reply or pieces[planned.cut].is_users
    assert all(share >= SHORT for share in planned.shares.values())
    assert planned is plan_layout(pieces, planned, frame)


@given(pieces=pieces_, more=pieces_, frame=frames())
def test_no_place_moves_back(pieces: list[Piece], more: list[Piece], frame: Frame) -> None:
    """A longer transcript never brings back what was left out, nor makes whole what was short."""
    before = plan_layout(pieces, Layout(), frame)
    if isinstance(before, TooLong):
        return
    after = plan_layout([*pieces, *more], before, frame)
    if isinstance(after, Layout):
        assert (after.cut, after.short) >= (before.cut, before.short)
        kept = {place for place in before.shares if place >= after.short}
        assert all(after.shares[place] <= before.shares[place] for place in kept)


@pytest.mark.parametrize(
    "options",
    [
        {"window": 100},
        {"window": True},
        {"window": 1e6},
        {"keep_turns": 0},
        {"target": 1.0},
        {"target": 0},
        {"reply": 0},
    ],
)
def test_options_that_cannot_hold(options: dict[str, Any]) -> None:
    """Refused where they are written."""
    with pytest.raises(ConfigurationError, match=next(iter(options))):
        Compaction(**options)
