"""Plain data: one text for what a tool could not tell apart."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.state import RunStatus, canonical, digest, excerpt, to_plain

SAME: list[tuple[Any, Any]] = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (1, 1.0),
    ([1.0, {"x": -0.0}], [1, {"x": 0}]),
    ((1, 2), [1, 2]),
    (dt.date(2026, 1, 2), "2026-01-02"),
]
OTHER: list[tuple[Any, Any]] = [(1, True), (1, "1"), ("a", "a "), ([1, 2], [2, 1]), (None, "None"), (0, None), (1, 1.5)]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_one_text_for_the_same(one: Any, other: Any) -> None:
    """Order of keys, and how a whole number is written, make no difference."""
    assert canonical(one) == canonical(other)
    assert digest("tool", one) == digest("tool", other)


@pytest.mark.parametrize(("one", "other"), OTHER)
def test_two_texts_for_what_differs(one: Any, other: Any) -> None:
    """What a tool can tell apart, the digest tells apart."""
    assert digest(one) != digest(other)


def test_parts_do_not_run_together() -> None:
    """A digest over two parts is not that of their sum."""
    assert digest("ab", "c") != digest("a", "bc")


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), st.lists))
def test_anything_has_a_text(value: Any) -> None:
    """Canonical never raises, and its text is plain ASCII, whatever the characters were."""
    assert canonical(value).isascii()


def test_what_has_no_json_form_has_one_too() -> None:
    """Decimals keep their digits."""
    assert canonical({"amount": Decimal("1.10")}) == '{"amount":"1.10"}'


def test_an_excerpt_says_what_is_missing() -> None:
    """Short texts stay, on one line; long ones are cut."""
    assert excerpt("a\n b") == "a b"
    assert excerpt("x" * 12, 10) == "xxxxxxxxxx… (2 more characters)"


def test_plain_data_holds_no_class_of_ours() -> None:
    """Enumerations become their values, at any depth, so that a checkpoint loads without importing them."""
    plain = to_plain({"status": RunStatus.RUNNING, "turn": [{"x": [RunStatus.FAILED]}], "n": 1})
    assert {"status": "running", "turn": [{"x": ["failed"]}], "n": 1} == plain
    assert type(plain["status"]) is str
    assert type(plain["turn"][0]["x"][0]) is str
