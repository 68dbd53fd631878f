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
ONE_X = AIMessage("", id="a", tool_calls=[call("f", call_id="x")])
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
    "ids of calls repeat later": ([HI, ONE_X, X, AIMessage("", id="b", tool_calls=ONE_X.tool_calls)], "again"),
    "an illegal name": ([HI, AIMessage("", id="a", tool_calls=[call("f g", call_id="x")])], "not legal"),
    "a late system message": ([HI, SystemMessage("s", id="s")], "stand behind"),
    "an empty task": ([HumanMessage("", id="h")], "is empty"),
    "raw calls": ([AIMessage("x", id="a", additional_kwargs={"tool_calls": [{}]})], "send again"),
    "a call without an id": ([HI, AIMessage("", id="a", tool_calls=[call("f")])], "without an id"),
}


def result(content: Any, **options: Any) -> ToolMessage:
    """A result of the call x."""
    return ToolMessage(content, tool_call_id="x", id="x", **options)


IMAGE = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
LONG_ID: list[Any] = [
    HI,
    AIMessage("", id="a", tool_calls=[call("f", call_id="x" * 41)]),
    ToolMessage("1", tool_call_id="x" * 41, id="x"),
]
ODD_ID: list[Any] = [
    HI,
    AIMessage("", id="a", tool_calls=[call("f", call_id="functions.f:0")]),
    ToolMessage("1", tool_call_id="functions.f:0", id="x"),
]
STRAY: list[Any] = [{"type": "tool_use", "id": "z", "name": "f", "input": {}}]
STRAY_BLOCK = AIMessage(STRAY, id="a", tool_calls=ONE_X.tool_calls)

OF_ONE: dict[str, tuple[Any, list[Any], str]] = {
    "an image in a result": ("openai", [HI, ONE_X, result(IMAGE)], "only text"),
    "a long id": ("openai", LONG_ID, "more than 40"),
    "a name with a blank": ("openai", [HI, ONE_X, result("1", name="a b")], "not legal"),
    "an id with a colon": ("anthropic", ODD_ID, "not taken"),
    "a blank text": ("anthropic", [HumanMessage(" ", id="h")], "blank"),
    "a blank beside a call": ("anthropic", [HI, ONE_X.model_copy(update={"content": " "}), result("1")], "blank"),
    "a block without its call": ("anthropic", [HI, STRAY_BLOCK, result("1")], "not among its calls"),
}


@pytest.mark.parametrize(("provider", "messages", "match"), OF_ONE.values(), ids=OF_ONE.keys())
def test_what_one_provider_refuses(provider: Any, messages: list[Any], match: str) -> None:
    """It fails for that one and for all, and passes for the other."""
    for asked in (provider, None):
        with pytest.raises(AssertionError, match=match):
            check_transcript(messages, provider=asked)
    check_transcript(messages, provider="anthropic" if provider == "openai" else "openai")


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


def test_messages_without_ids_do_not_repeat_one() -> None:
    """What a caller wrote by hand has none."""
    check_transcript([HumanMessage("Hello."), AIMessage("Hello, Ana."), HumanMessage("Bye.")])


def test_a_greeting_first_is_what_anthropic_refuses() -> None:
    """It may be kept; what is sent begins with the user."""
    greeted = [SystemMessage("Be kind."), AIMessage("How can I help?"), HumanMessage("I am Ana.")]
    check_transcript(greeted)
    with pytest.raises(AssertionError, match="not the user's"):
        check_transcript(greeted, provider="anthropic")
