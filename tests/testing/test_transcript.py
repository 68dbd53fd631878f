"""The check of a transcript: it finds each way in which one can be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.testing import call, check_transcript

HI = HumanMessage("hi", id="h")
ASKS = AIMessage("", id="a", tool_calls=[call("f", call_id="x"), call("f", call_id="y")])
X = ToolMessage("1", tool_call_id="x", id="x")
Y = ToolMessage("2", tool_call_id="y", id="y")
BYE = AIMessage("bye", id="b")

GOOD: list[list[Any]] = [
    [],
    [HI],
    [SystemMessage("s", id="s"), HI, ASKS, X, Y, BYE],
    [HI, BYE, HumanMessage("more", id="h2"), ASKS, X, Y],
]
BAD: dict[str, tuple[list[Any], str]] = {
    "no result": ([HI, ASKS], "asks for"),
    "a result missing": ([HI, ASKS, X], "asks for"),
    "results in another order": ([HI, ASKS, Y, X], "asks for"),
    "a result twice": ([HI, ASKS, X, Y, ToolMessage("2", tool_call_id="y", id="y2")], "asks for"),
    "a result of nobody's": ([HI, X], "without a call"),
    "a message in between": ([HI, ASKS, X, HumanMessage("?", id="h2"), Y], "asks for"),
    "an empty reply": ([HI, AIMessage("", id="e")], "is empty"),
    "a blank reply": ([HI, AIMessage(" ", id="e")], "is empty"),
    "an empty result": ([HI, ASKS, ToolMessage("", tool_call_id="x", id="x"), Y], "is empty"),
    "ids of messages repeat": ([HI, AIMessage("x", id="h")], "ids repeat"),
    "ids of calls repeat": ([HI, AIMessage("", id="a", tool_calls=[call("f", call_id="x")] * 2)], "uses an id twice"),
    "a call without an id": ([HI, AIMessage("", id="a", tool_calls=[call("f")])], "without an id"),
}


@pytest.mark.parametrize("messages", GOOD)
def test_good(messages: list[Any]) -> None:
    """What every provider takes passes."""
    check_transcript(messages)


@pytest.mark.parametrize(("messages", "match"), BAD.values(), ids=BAD.keys())
def test_bad(messages: list[Any], match: str) -> None:
    """What one would refuse fails, and says where."""
    with pytest.raises(AssertionError, match=match):
        check_transcript(messages)


def test_unread_calls_fail() -> None:
    """Calls that the client could not read have no results, and some servers refuse them."""
    broken: Any = [{"name": "f", "args": "{", "id": "x", "error": None, "type": "invalid_tool_call"}]
    with pytest.raises(AssertionError, match="read back"):
        check_transcript([AIMessage("text", id="a", invalid_tool_calls=broken)])
