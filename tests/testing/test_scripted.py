"""The scripted model: strict, so that a test notices a turn too many or too few."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright.testing import ManualClock, ScriptedModel, ScriptExhausted, call


def newest(messages: list[AnyMessage]) -> str:
    """Repeat what was said last."""
    return messages[-1].text


def test_each_kind_of_turn() -> None:
    """A text, a call, several, a message, a function, an error; by both doors; and what it was given."""
    sent = AIMessage("as it is")
    turns: list[Any] = ["text", call("f", x=1), [call("f"), call("g", call_id="own")], sent, newest]
    model = ScriptedModel([*turns, ValueError("no")])
    task = [HumanMessage("task")]
    replies = [model.invoke(task), asyncio.run(model.ainvoke(task)), *(model.invoke(task) for _ in range(3))]
    assert ["text", "", "", "as it is", "task"] == [reply.text for reply in replies]
    assert [("f", {"x": 1}, "call-1-0")] == [(c["name"], c["args"], c["id"]) for c in replies[1].tool_calls]
    assert ["call-2-0", "own"] == [c["id"] for c in replies[2].tool_calls]
    with pytest.raises(ValueError, match="no"):
        model.invoke(task)
    assert [task] * 6 == model.seen
    model.assert_done()


def test_a_turn_too_many() -> None:
    """It raises, and says so again at the end, when a run has swallowed it."""
    model = ScriptedModel(["one"])
    model.invoke("a")
    with pytest.raises(ScriptExhausted, match="turn 2"):
        model.invoke("b")
    with pytest.raises(ScriptExhausted, match="the script has 1"):
        model.assert_done()


def test_a_turn_too_few() -> None:
    """It is noticed at the end."""
    model = ScriptedModel(["one", "two"])
    model.invoke("a")
    with pytest.raises(ScriptExhausted, match="1 of 2 turns"):
        model.assert_done()


def test_the_clock_stands_still() -> None:
    """Until it is moved, in either direction."""
    clock = ManualClock(100)
    assert (clock(), clock()) == (100, 100)
    clock.advance(5)
    clock.advance(-15)
    assert clock() == 90
