"""Cases from public bug reports: results that are not strings (C42)."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from langchain_core.documents import Document
from pydantic import BaseModel
from tests.world.doors import Desk

from loopwright import allow, create_agent, open_checkpoints, tool
from loopwright.testing import ScriptedModel, call, check_transcript


class Colour(Enum):
    """An enumeration."""

    RED = "red"


@dataclass
class Point:
    """A data class."""

    x: int
    y: Decimal


class Order(BaseModel):
    """A model."""

    code: str
    at: dt.date


def count() -> Iterator[int]:
    """Yield some numbers."""
    yield from range(3)


ID = uuid.UUID(int=1)
NOON = dt.datetime(2026, 10, 13, 12, tzinfo=dt.timezone.utc)  # noqa: UP017 -- as most write it
RESULTS: list[tuple[Any, str]] = [
    (None, "(no result)"),
    ("", "(empty text)"),
    ({}, "{}"),
    ([], "[]"),
    ({"a": {"at": NOON}}, '{"a": {"at": "2026-10-13T12:00:00Z"}}'),
    (Decimal("1.10"), "1.10"),
    (ID, str(ID)),
    (Colour.RED, "red"),
    ({"b", "a"}, '["a", "b"]'),
    (Point(1, Decimal("2.50")), '{"x": 1, "y": "2.50"}'),
    (Order(code="A1", at=NOON.date()), '{"code": "A1", "at": "2026-10-13"}'),
    ((1, "a"), '[1, "a"]'),
    (count, "[0, 1, 2]"),
    (ValueError("no such order"), "ValueError: no such order"),
    (True, "true"),
    (1.5, "1.5"),
    (float("nan"), "NaN"),
    (b"\xff", "base64:/w=="),
    (b"plain", "plain"),
    (
        [Document("a page", metadata={"n": 1})],
        '[{"id": null, "metadata": {"n": 1}, "page_content": "a page", "type": "Document"}]',
    ),
    ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
    ([{"type": "file", "name": "a.txt"}], '[{"type": "file", "name": "a.txt"}]'),
    (dt.timedelta(seconds=90), "PT1M30S"),
]


@pytest.mark.parametrize("effect", ["read", "write"])
@pytest.mark.parametrize(
    ("value", "text"), RESULTS, ids=[f"{number}-{type(value).__name__}" for number, (value, _) in enumerate(RESULTS)]
)
def test_c42_whatever_a_tool_returns(value: Any, text: str, effect: Any) -> None:
    """Always a text that is not empty, JSON where it can be; nothing crashes, and it counts as a success."""

    @tool(effect=effect)
    def get() -> Any:
        """Get what there is to get."""
        return value() if value is count else value

    agent = create_agent(ScriptedModel([call("get"), "Done."]), [get], permissions=[allow("get")])
    with open_checkpoints("memory:") as checkpoints:
        result = Desk(agent, checkpoints).run()
    assert ("succeeded", text, "done") == (result.status, result.messages[2].content, result.trail[0]["outcome"])
    check_transcript(result.messages)
