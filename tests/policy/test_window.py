"""What the loop guard sees in a row of turns, and how the ladder goes up and down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from loopwright import Loops
from loopwright.policy import Kind, Rung, Seen, Window, call_key, is_loop, next_window, rung_of, way_of
from loopwright.policy.window import load_window

OFF = Loops(repeats=None, rounds=None, failures=None, no_news=None)


def seen(written: str) -> Seen:
    """Read `a=1` (call a brought 1), `a!1` (it failed, saying 1), `a?` (not run)."""
    for sign in "=!?":
        call, found, result = written.partition(sign)
        if found:
            tool = call.rstrip("0123456789")
            way = result if sign == "!" else ""
            return Seen(tool, call, result, way=way, refused=sign == "?")
    raise ValueError(written)


def play(
    turns: str, loops: Loops | None = None, stored: Mapping[str, Any] | None = None
) -> tuple[Window, list[list[Kind]]]:
    """Return the window after the turns (blanks part turns, commas calls), and what was told after each."""
    window, told = load_window(stored or {}), list[list[Kind]]()
    for turn in turns.split():
        window, notes = next_window(window, [seen(one) for one in turn.split(",")], loops or Loops())
        told.append([*notes.values()])
    return window, told


def rows(*turns: str) -> str:
    """Join turns."""
    return " ".join(turns)


WANDERING = [f"{letter}={letter}" for letter in "abcacbabcbacabcacbaca"]
"""Three calls in an order without any round: no part of it comes twice in a row."""
NEW = [f"n{number}={number}" for number in range(100)]

TOLD: dict[str, tuple[str, Loops, int | None, Kind | None]] = {
    "twice is no loop": ("a=1 a=1", Loops(), None, None),
    "three times is": ("a=1 a=1 a=1", Loops(), 3, Kind.REPEAT),
    "polling is none": ("a=1 a=2 a=3 a=4 a=5", Loops(), None, None),
    "a change begins anew": ("a=1 a=1 a=2 a=2", Loops(), None, None),
    "another call in between": ("a=1 a=1 b=1 a=1", Loops(), None, None),
    "the same twice in one turn": ("a=1,a=1 a=1", Loops(), None, None),
    "with company": ("a=1,b=2 a=1,c=3 d=4,a=1", Loops(), 3, Kind.REPEAT),
    "an allowance": (rows(*["a=1"] * 19), Loops(allow={"a": 20}, no_news=None), None, None),
    "an allowance used up": (rows(*["a=1"] * 20), Loops(allow={"a": 20}, no_news=None), 20, Kind.REPEAT),
    "a cycle of two": ("a=1 b=2 a=1 b=2", Loops(), 4, Kind.CYCLE),
    "a cycle of three": ("a=1 b=2 c=3 a=1 b=2 c=3", Loops(), 6, Kind.CYCLE),
    "a cycle of four": ("a=1 b=2 c=3 d=4 a=1 b=2 c=3 d=4", Loops(), 8, Kind.CYCLE),
    "a call twice in a cycle": ("a=1 a=1 b=2 a=1 a=1 b=2", Loops(), 6, Kind.CYCLE),
    "a cycle behind other things": ("x=9 y=8 a=1 b=2 a=1 b=2", Loops(), 6, Kind.CYCLE),
    "a cycle of whole turns": ("a=1,b=2 c=3 b=2,a=1 c=3", Loops(), 4, Kind.CYCLE),
    "a cycle with something new in it": ("a=1 n=2 a=1 n=3 a=1 n=4", Loops(), None, None),
    "a round and a half": ("a=1 b=2 a=1", Loops(), None, None),
    "polling that goes back and forth": ("a=1 a=2 a=1 a=2 a=1", Loops(), None, None),
    "more rounds": ("a=1 b=2 a=1 b=2", Loops(rounds=3), None, None),
    "a cycle with an allowance": (rows(*["a=1 b=2"] * 4), Loops(allow={"a": 5}), None, None),
    "one call is no cycle": (rows(*["a=1"] * 7), Loops(repeats=9, no_news=None), None, None),
    "a tool fails four times one way": ("a1!x a2!x a3!x a4!x", Loops(), 4, Kind.FAILURES),
    "with others in between": ("a1!x b=1 a2!x c=2 a3!x d=3 a4!x", Loops(), 7, Kind.FAILURES),
    "it fails another way": ("a1!x a2!x a3!y a4!x", Loops(), None, None),
    "it works once": ("a1!x a2!x a3=1 a4!x a5!x", Loops(), None, None),
    "another tool": ("a1!x b1!x a2!x b2!x c1!x", Loops(), None, None),
    "several failures of one turn are one": ("a1!x,a2!x,a3!x,a4!x a5!x", Loops(), None, None),
    "one of a turn works": ("a1!x a2!x a3!x,a4=1 a5!x a6!x a7!x", Loops(), None, None),
    "nothing new, eight times": (rows(*WANDERING[:11]), Loops(), 11, Kind.NO_NEWS),
    "seven times": (rows(*WANDERING[:10]), Loops(), None, None),
    "with an allowance": (rows(*WANDERING[:15]), Loops(allow={"b": 20}), None, None),
    "something new in between": (rows(*WANDERING[:10], "n=1", *WANDERING[:7]), Loops(), None, None),
    "a result that goes back and forth": (rows(*["a=1 a=2"] * 5), Loops(), 10, Kind.NO_NEWS),
    "the same result of other calls": (rows(*[f"a{n}=1" for n in range(40)]), Loops(), None, None),
    "all off": (rows(*["a=1"] * 50, *["a=1 b=2"] * 30, *["c!x"] * 50), OFF, None, None),
    "all new": (rows(*NEW), Loops(), None, None),
}


@pytest.mark.parametrize(("turns", "loops", "at", "kind"), TOLD.values(), ids=TOLD.keys())
def test_what_is_a_loop(turns: str, loops: Loops, at: int | None, kind: Kind | None) -> None:
    """The model is told once, after exactly this turn, of this kind."""
    _, told = play(turns, loops)
    expected = [[kind] if number == at else [] for number in range(1, len(told) + 1)]
    assert expected == told


LADDER: dict[str, tuple[str, Rung, list[str]]] = {
    "told": ("a=1 a=1 a=1", Rung.TOLD, ["a"]),
    "not run": ("a=1 a=1 a=1 a?", Rung.FORBIDDEN, ["a"]),
    "not run again": ("a=1 a=1 a=1 a? a?", Rung.ENDED, ["a"]),
    "all calls of a cycle": ("a=1 b=2 a=1 b=2", Rung.TOLD, ["a", "b"]),
    "either of them climbs": ("a=1 b=2 a=1 b=2 a? b?", Rung.ENDED, ["a", "b"]),
    "something new begins it anew": ("a=1 a=1 a=1 a? b=2", Rung.NONE, []),
    "something known does not": ("b=2 a=1 a=1 a=1 a? b=2", Rung.FORBIDDEN, ["a"]),
    "not while it learns beside it": ("a=1 a=1 a=1 a?,b=2 a?,c=3 a?,d=4", Rung.TOLD, ["a"]),
    "it ran once more, with something new": ("a=1 a=1 a=1 a? a=2", Rung.NONE, []),
    "it ran once more, in vain": ("a=1 a=1 a=1 a? a=1", Rung.FORBIDDEN, ["a"]),
    "failures are only told at first": ("a1!x a2!x a3!x a4!x a5!x", Rung.NONE, []),
    "at twice the count the tool is barred": (rows(*[f"a{n}!x" for n in range(8)]), Rung.TOLD, ["tool:a"]),
    "all calls without news": (rows(*WANDERING[:11]), Rung.TOLD, ["a", "b", "c"]),
}


@pytest.mark.parametrize(("turns", "rung", "barred"), LADDER.values(), ids=LADDER.keys())
def test_the_ladder(turns: str, rung: Rung, barred: list[str]) -> None:
    """Where the run stands after these turns, and which calls the next rung is about."""
    window, _ = play(turns)
    assert (rung, barred) == (window["rung"], window["barred"])
    assert is_loop(window) == (rung is Rung.ENDED)


def test_a_rejection_is_the_last_word_but_one() -> None:
    """The call that a person rejected ends the run when it comes again."""
    window, _ = play("a=1 a=1 a=1 a?")
    window, _ = next_window(window, [Seen("a", "a", "no", way="no", rejected=True)], Loops())
    assert Rung.REJECTED == window["rung"]
    window, _ = next_window(window, [seen("a?")], Loops())
    assert is_loop(window)


def test_only_what_is_barred_stands_on_the_ladder() -> None:
    """By call, or by tool."""
    window, _ = play("a=1 a=1 a=1")
    assert [Rung.TOLD, Rung.NONE] == [rung_of(window, call, "a") for call in ("a", "a2")]
    window, _ = play(rows(*[f"a{n}!x" for n in range(8)]))
    assert [Rung.TOLD, Rung.NONE] == [rung_of(window, "new", tool) for tool in ("a", "b")]


SAME: dict[str, tuple[dict[str, Any], dict[str, Any], bool]] = {
    "order": ({"q": "x", "n": 1}, {"n": 1, "q": "x"}, True),
    "one, written twice": ({"n": 1}, {"n": 1.0}, True),
    "blanks around": ({"q": "x"}, {"q": "  x\n"}, True),
    "blanks within": ({"q": "a b"}, {"q": "a   b"}, True),
    "deep down": ({"q": [{"a": "x ", "b": 1.0}]}, {"q": [{"b": 1, "a": "x"}]}, True),
    "no blank, or one": ({"q": "ab"}, {"q": "a b"}, False),
    "another letter": ({"q": "x"}, {"q": "X"}, False),
    "a number as text": ({"n": 1}, {"n": "1"}, False),
    "true is not one": ({"n": 1}, {"n": True}, False),
    "the order of a list": ({"q": [1, 2]}, {"q": [2, 1]}, False),
}


@pytest.mark.parametrize(("one", "other", "same"), SAME.values(), ids=SAME.keys())
def test_what_makes_two_calls_the_same(one: dict[str, Any], other: dict[str, Any], same: bool) -> None:  # noqa: FBT001 -- a table's column
    """Of one tool; two tools never have the same call."""
    assert same == (call_key("f", one) == call_key("f", other))
    assert call_key("f", one) != call_key("g", one)


WAYS: dict[str, tuple[tuple[str, dict[str, Any]], tuple[str, dict[str, Any]], bool]] = {
    "the argument stands in it": (("no order A17", {"code": "A17"}), ("no order B2", {"code": "B2"}), True),
    "a number": (("timeout after 3 s", {}), ("timeout after 12 s", {}), True),
    "an argument within a list": (("no a@b.c", {"to": ["a@b.c"]}), ("no d@e.f", {"to": ["d@e.f"]}), True),
    "capitals and blanks": (("Not  found", {}), ("not found", {}), True),
    "something else": (("not found", {}), ("forbidden", {}), False),
    "a short argument takes no letters out": (("no way", {"q": "o"}), ("no way", {"q": "w"}), True),
}


@pytest.mark.parametrize(("one", "other", "same"), WAYS.values(), ids=WAYS.keys())
def test_what_makes_two_failures_the_same(one: Any, other: Any, same: bool) -> None:  # noqa: FBT001 -- a table's column
    """What depends on the arguments is taken out."""
    assert same == (way_of(*one) == way_of(*other))


def test_the_memory_of_an_older_release_is_read() -> None:
    """It counted calls in a row only: that count goes on."""
    older = {call_key("a", {}) + 24 * "0": ["1" * 32, 2]}
    again = Seen("a", call_key("a", {}), "1" * 8)
    assert {0: Kind.REPEAT} == next_window(older, [again], Loops())[1]


def test_the_window_does_not_grow() -> None:
    """However long the run: it holds four turns, and 32 results."""
    window, sizes = load_window({}), list[int]()
    for number in range(1000):
        turn: Sequence[Seen] = [Seen("f", f"{number:08}", f"{number:08}")]
        window, _ = next_window(window, turn, Loops())
        sizes.append(len(json.dumps(window)))
    assert max(sizes) == sizes[40] < 800


def test_the_window_is_plain_data() -> None:
    """It comes back from a store as it went in."""
    window, _ = play("a=1 a=1 a=1 b!x a?")
    assert window == json.loads(json.dumps(window))
