"""The transcript's reducer: a left fold that keeps calls and results together."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from loopwright.state import calls_tool, fold_messages, fold_trail, last_text
from loopwright.testing import call

ASKS = AIMessage("", id="a1", tool_calls=[call("f", call_id="x"), call("f", call_id="y")])


def ids(messages: Any) -> list[str]:
    """Return the order of a transcript."""
    return [str(message.id) for message in messages]


@pytest.mark.parametrize("write", ["hi", ("user", "hi"), {"role": "user", "content": "hi"}, HumanMessage("hi"), ["hi"]])
def test_it_takes_what_langgraph_takes(write: Any) -> None:
    """Strings, pairs, dicts, messages, and lists of them; each gets an id by its place."""
    (message,) = fold_messages([], [write])
    assert ("hi", "m0") == (message.text, message.id)


def test_a_known_id_replaces() -> None:
    """In its old place, as a repeated step needs it."""
    before = fold_messages([], [[HumanMessage("1", id="a"), HumanMessage("2", id="b")]])
    after = fold_messages(before, [HumanMessage("one", id="a")])
    assert ["one", "2"] == [message.text for message in after]


def test_results_go_behind_their_call() -> None:
    """Even when the user spoke meanwhile; in the order in which they come."""
    before = fold_messages([], [[HumanMessage("task", id="h1"), ASKS, HumanMessage("wait!", id="h2")]])
    results = [ToolMessage("1", tool_call_id="x", id="t1"), ToolMessage("2", tool_call_id="y", id="t2")]
    assert ["h1", "a1", "t1", "t2", "h2"] == ids(fold_messages(before, [results]))


def test_call_ids_may_repeat_in_later_turns() -> None:
    """Then a result belongs to the newest call of that id."""
    again = ASKS.model_copy(update={"id": "a2"})
    before = fold_messages([], [[ASKS, ToolMessage("1", tool_call_id="x", id="t1"), again]])
    assert ["a1", "t1", "a2", "t2"] == ids(fold_messages(before, [ToolMessage("2", tool_call_id="x", id="t2")]))


def test_removing() -> None:
    """One message by its id, or all; a freed place gives no id twice."""
    before = fold_messages([], ["a", "b", "c"])
    assert ["m1", "m2"] == ids(fold_messages(before, [RemoveMessage("m0")]))
    assert ["m1", "m2", "m3"] == ids(fold_messages(before, [RemoveMessage("m0"), "d"]))
    assert ["m0"] == ids(fold_messages(before, [RemoveMessage("__remove_all__"), "new"]))


def test_folding_changes_nothing_that_was_there() -> None:
    """The state that was given stays as it was."""
    before = fold_messages([], ["a"])
    fold_messages(before, [HumanMessage("b", id="m0"), "c"])
    assert ["a"] == [message.text for message in before]


def test_the_trail_is_appended() -> None:
    """Each write is a list of entries."""
    assert [1, 2, 3] == fold_trail([1], [[2], [3]])
    assert [] == fold_trail(None, [])


def test_who_calls() -> None:
    """Only a model's message, and only for its own calls."""
    assert calls_tool(ASKS, "x")
    assert not calls_tool(ASKS, "z")
    assert not calls_tool(HumanMessage("x"), "x")


def test_the_best_answer_so_far() -> None:
    """The newest text of the model since the last task; none of an earlier task."""
    old: list[AnyMessage] = [HumanMessage("1"), AIMessage("old")]
    assert last_text([*old, HumanMessage("2"), AIMessage("new"), AIMessage(" ")]) == "new"
    assert last_text([*old, HumanMessage("2"), SystemMessage("x")]) == ""
    assert last_text([]) == ""
