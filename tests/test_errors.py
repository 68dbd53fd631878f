"""Errors: one root, stored and carried like data."""

from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

import loopwright.errors as room
from loopwright import LoopwrightError

KINDS = [kind for kind in vars(room).values() if isinstance(kind, type) and issubclass(kind, LoopwrightError)]
FACTS: dict[str, Any] = {"run_id": "r1", "count": 3, "names": ["a", "b"]}


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_survives_pickling(kind: type[LoopwrightError]) -> None:
    """With its class, its message and its facts."""
    error = kind("what, where, and the way out", **FACTS)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own bytes
    assert (kind, error.message, FACTS, str(error)) == (type(again), again.message, again.facts, str(again))


@pytest.mark.parametrize("kind", KINDS)
def test_an_error_round_trips_through_json(kind: type[LoopwrightError]) -> None:
    """As it is stored beside the run that met it."""
    error = kind("what, where, and the way out", **FACTS)
    again = LoopwrightError.from_json(json.loads(json.dumps(error.to_json())))
    assert (kind, error.message, FACTS) == (type(again), again.message, again.facts)


def test_an_unknown_class_becomes_the_root() -> None:
    """What a newer version stored can still be read."""
    again = LoopwrightError.from_json({"error": "FromTheFuture", "message": "hm", "facts": {}})
    assert (LoopwrightError, "hm") == (type(again), again.message)


def test_the_tree_is_drawn() -> None:
    """Every class stands in the picture at the top of its module."""
    drawn = room.__doc__ or ""
    assert [kind.__name__ for kind in KINDS if kind.__name__ not in drawn] == []
    assert all(kind.__doc__ for kind in KINDS)


def test_nothing_was_done_needs_no_words() -> None:
    """`raise NotDone` alone says it."""
    assert str(room.NotDone()) == "nothing was done"
