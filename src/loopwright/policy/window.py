"""The loop guard's memory: what the latest turns brought, and how far up the ladder the run is. Pure functions.

Its size is bounded: by the calls of a turn, the tools of the agent and `SEEN`, never by the steps of a run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any, cast

from typing_extensions import TypedDict

from loopwright.state import digest

from .loops import Loops

LONGEST = 4
"""Turns in the longest cycle that is found."""
SEEN = 32
"""So much of what calls brought is remembered; what is older counts as new again."""
FORBID_AT = 2
"""A tool that fails with ever other arguments is barred at so many times the count at which the model was told."""
_DIGITS = 8
"""Of a digest in the window, which is stored with every checkpoint. Two equal by chance: a word too soon."""
_WAY = 300
"""Characters of an error that are compared."""
_SHORTEST = 2
"""Values of fewer characters are not taken out of an error: they stand there for themselves."""


class Kind(StrEnum):
    """What kind of loop it is; the `loop` of a trail entry."""

    REPEAT = "repeat"
    CYCLE = "cycle"
    FAILURES = "failures"
    NO_NEWS = "no_news"


class Rung(IntEnum):
    """How far up the ladder the run is."""

    NONE = 0
    TOLD = 1
    """The model was told; the same call again is not run."""
    FORBIDDEN = 2
    """It was not run; the same call again ends the run, or a person is asked."""
    REJECTED = 3
    """A person was asked, and said no; the same call again ends the run."""
    ENDED = 4


class Window(TypedDict):
    """The `window` of a thread's record. Calls and results are short digests."""

    row: dict[str, list[Any]]
    """The calls of the latest turn: by call, its result and how often it came in a row."""
    turns: list[list[list[str]]]
    """The latest turns, at most `LONGEST`: call, result and tool of each call, sorted."""
    matches: list[int]
    """For periods from 2 to `LONGEST`: how many turns in a row were as the one a period before."""
    seen: list[str]
    """What calls brought so far, a digest over call and result; the latest last, at most `SEEN`."""
    stale: int
    """Turns in a row without a new one."""
    stale_calls: list[list[str]]
    """The calls of these, each with its tool, sorted."""
    failures: dict[str, list[Any]]
    """By tool: the way it failed, and how often in a row."""
    barred: list[str]
    """Calls, and tools as `tool:name`, that the ladder is about."""
    rung: int


@dataclass(frozen=True, slots=True)
class Seen:
    """What the loop guard sees of a call that came back."""

    tool: str
    """Empty where there is no such tool."""
    call: str
    result: str
    way: str = ""
    """How it failed; empty when it did not."""
    refused: bool = False
    """Not run, by the loop guard itself."""
    rejected: bool = False
    """Not run: a person said no."""


def call_key(tool: str, args: Mapping[str, Any]) -> str:
    """Return what makes two calls the same here: the order of arguments, `1` or `1.0`, and blanks do not matter."""
    return digest(tool, _folded(args))[:_DIGITS]


def result_key(text: str) -> str:
    """Return what makes two results the same."""
    return digest(text)[:_DIGITS]


def way_of(text: str, args: Mapping[str, Any]) -> str:
    """Return how a call failed, without what depends on its arguments: their values, and numbers, are taken out."""
    said = " ".join(text.split())[:_WAY]
    for value in sorted(_leaves(args), key=len, reverse=True):
        said = said.replace(" ".join(value.split()), "…") if len(value) >= _SHORTEST else said
    return result_key(re.sub(r"\d+", "#", said).casefold())


def _folded(value: Any) -> Any:
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, Mapping):
        return {key: _folded(item) for key, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_folded(item) for item in cast("Sequence[Any]", value)]
    return value


def _leaves(value: Any) -> Iterable[str]:
    if isinstance(value, Mapping):
        value = [*cast("Mapping[str, Any]", value).values()]
    if isinstance(value, list):
        return {leaf for item in cast("Sequence[Any]", value) for leaf in _leaves(item)}
    return {value.strip()} if isinstance(value, str) else set()


def load_window(stored: Mapping[str, Any]) -> Window:
    """Return the window of a thread's record; that of an older release knew calls in a row only."""
    if "row" in stored:
        return cast("Window", stored)
    row = {call[:_DIGITS]: [str(result)[:_DIGITS], count] for call, (result, count) in stored.items()}
    return Window(
        row=row,
        turns=[],
        matches=[0] * (LONGEST - 1),
        seen=[],
        stale=0,
        stale_calls=[],
        failures={},
        barred=[],
        rung=Rung.NONE,
    )


def rung_of(stored: Mapping[str, Any], call: str, tool: str) -> Rung:
    """Return the rung at which a proposed call stands; `NONE` when the ladder is not about it."""
    window = load_window(stored)
    return Rung(window["rung"]) if _is_barred(window, call, tool) else Rung.NONE


def is_loop(stored: Mapping[str, Any]) -> bool:
    """Tell whether the end of the ladder is reached."""
    return load_window(stored)["rung"] >= Rung.ENDED


def next_window(stored: Mapping[str, Any], turn: Sequence[Seen], loops: Loops) -> tuple[Window, dict[int, Kind]]:
    """Return the window after a turn, and which of its calls the model is to be told about, by their place.

    What the loop guard did not let run counts nowhere but on the ladder.
    """
    window = load_window(stored)
    ran = [(place, seen) for place, seen in enumerate(turn) if not seen.refused]
    after, has_news = _remembered(window, [seen for _, seen in ran]) if ran else (window, False)
    after = _climbed(after, turn, has_news=has_news)
    told: dict[int, Kind] = {}
    for place, kind, barred in _findings(after, ran, loops):
        told.setdefault(place, kind)
        after = _barred(after, barred)
    return after, told


def _remembered(window: Window, ran: Sequence[Seen]) -> tuple[Window, bool]:
    """Return the window with what the turn brought, and whether any of it was new."""
    row: dict[str, list[Any]] = {}
    for seen in ran:
        before, count = window["row"].get(seen.call, ("", 0))
        row[seen.call] = [seen.result, count + 1 if before == seen.result else 1]
    turn = sorted([seen.call, seen.result, seen.tool] for seen in ran)
    turns = window["turns"]
    matches = [
        window["matches"][period - 2] + 1 if len(turns) >= period and turns[-period] == turn else 0
        for period in range(2, LONGEST + 1)
    ]
    news = [result_key(seen.call + seen.result) for seen in ran]
    has_news = any(item not in window["seen"] for item in news)
    known = [item for item in window["seen"] if item not in news]
    stale = {(seen.call, seen.tool) for seen in ran} | {(call, tool) for call, tool in window["stale_calls"]}
    return {
        **window,
        "row": row,
        "turns": [*turns, turn][-LONGEST:],
        "matches": matches,
        "seen": [*known, *dict.fromkeys(news)][-SEEN:],
        "stale": 0 if has_news else window["stale"] + 1,
        "stale_calls": [] if has_news else [[call, tool] for call, tool in sorted(stale)][:SEEN],
        "failures": _failures(window["failures"], ran),
    }, has_news


def _failures(before: dict[str, list[Any]], ran: Sequence[Seen]) -> dict[str, list[Any]]:
    """Count, by tool, turns in which all its calls failed one way; a success ends it, other tools do not touch it."""
    after = dict(before)
    for tool in {seen.tool for seen in ran}:
        ways = {seen.way for seen in ran if seen.tool == tool}
        known, count = after.pop(tool, ("", 0))
        if "" not in ways:
            after[tool] = [min(ways), count + 1 if ways == {known} else 1]
    return after


def _climbed(window: Window, turn: Sequence[Seen], *, has_news: bool) -> Window:
    """Return the window with the rung after the turn: up if the model went on, down if something new was learnt."""
    rung = Rung(window["rung"])
    if any(seen.rejected and _is_barred(window, seen.call, seen.tool) for seen in turn):
        return {**window, "rung": max(rung, Rung.REJECTED)}
    if not any(seen.refused for seen in turn):
        return {**window, "rung": Rung.NONE, "barred": []} if has_news else window
    if has_news:
        return window
    return {**window, "rung": Rung.FORBIDDEN if rung <= Rung.TOLD else Rung.ENDED}


def _is_barred(window: Window, call: str, tool: str) -> bool:
    return call in window["barred"] or f"tool:{tool}" in window["barred"]


def _barred(window: Window, calls: Iterable[str]) -> Window:
    barred = sorted({*window["barred"], *calls})
    return {**window, "barred": barred, "rung": max(window["rung"], Rung.TOLD) if barred else window["rung"]}


def _findings(
    window: Window, ran: Sequence[tuple[int, Seen]], loops: Loops
) -> Iterator[tuple[int, Kind, Sequence[str]]]:
    """Give each loop that the turn has closed: the call to tell it at, its kind, and what is barred from now on."""
    if not ran:
        return
    last = ran[-1][0]
    for place, seen in ran:
        limit = loops.count_for(loops.repeats, [seen.tool])
        if limit is not None and window["row"][seen.call][1] >= limit:
            yield place, Kind.REPEAT, [seen.call]
    if cycle := _cycle(window, loops):
        yield last, Kind.CYCLE, cycle
    for tool, place in {seen.tool: place for place, seen in ran if seen.way}.items():
        limit = loops.count_for(loops.failures, [tool])
        count = window["failures"].get(tool, ("", 0))[1]
        if limit is not None and count >= FORBID_AT * limit:
            yield place, Kind.FAILURES, [f"tool:{tool}"]
        elif count == limit:
            yield place, Kind.FAILURES, []
    limit = loops.count_for(loops.no_news, [tool for _, tool in window["stale_calls"]])
    if limit is not None and window["stale"] >= limit:
        yield last, Kind.NO_NEWS, [call for call, _ in window["stale_calls"]]


def _cycle(window: Window, loops: Loops) -> list[str]:
    """Return the calls of a cycle of two to `LONGEST` turns that has come round often enough; empty for none.

    A call that brings another result within one round is polling, not going round.
    """
    for period in range(2, LONGEST + 1):
        calls = [call for turn in window["turns"][-period:] for call in turn]
        limit = loops.count_for(loops.rounds, [tool for _, _, tool in calls])
        if limit is None or window["matches"][period - 2] < period * (limit - 1):
            continue
        results = {call: result for call, result, _ in calls}
        is_round = any(turn != window["turns"][-1] for turn in window["turns"][-period:])
        if is_round and all(results[call] == result for call, result, _ in calls):
            return sorted(results)
    return []
