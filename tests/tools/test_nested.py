"""Nested arguments that arrive as text: decoded where the schema leaves no other reading, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, Json

from loopwright.tools.nested import decode_nested


class Line(BaseModel):
    """A part of an order."""

    code: str
    tags: list[str] = []


class Order(BaseModel):
    """What a tool takes."""

    items: list[int] | None = None
    pair: tuple[int, int] | None = None
    note: str = ""
    either: list[int] | str = ""
    lines: list[Line] = []
    extra: dict[str, Any] = {}
    one: Line | dict[str, int] | None = None
    count: int = 0
    raw: Json[list[int]] | None = None


@pytest.mark.parametrize(
    ("given", "decoded"),
    [
        ({"items": "[1, 2]"}, {"items": [1, 2]}),
        ({"pair": "[1, 2]"}, {"pair": [1, 2]}),
        ({"extra": '{"a": "[1]"}'}, {"extra": {"a": "[1]"}}),
        ({"one": '{"code": "x"}'}, {"one": {"code": "x"}}),
        ({"lines": [{"code": "x", "tags": '["a"]'}]}, {"lines": [{"code": "x", "tags": ["a"]}]}),
        ({"lines": ['{"code": "x"}']}, {"lines": [{"code": "x"}]}),
    ],
)
def test_a_text_where_only_a_list_or_an_object_fits_is_decoded(given: dict[str, Any], decoded: dict[str, Any]) -> None:
    """At any depth, and the given arguments stay as they were."""
    before = repr(given)
    assert decoded == decode_nested(Order, given)
    assert before == repr(given)
    Order.model_validate(decoded)


@pytest.mark.parametrize(
    "given",
    [
        {"note": '{"a": 1}'},
        {"note": "[1]"},
        {"either": "[1]"},
        {"raw": "[1]"},
        {"items": '{"a": 1}'},
        {"items": "1, 2"},
        {"items": "[1"},
        {"items": '"[1]"'},
        {"extra": "[1]"},
        {"count": "[1]"},
        {"count": "7"},
        {"items": "[" * 100_000},
        {"unknown": "[1]"},
        {},
    ],
)
def test_all_else_stays_as_it_is(given: dict[str, Any]) -> None:
    """Texts where a text is taken, JSON of another kind, what is no JSON, and what is encoded twice."""
    assert given == decode_nested(Order, given)
