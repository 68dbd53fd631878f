"""What is read is what LangGraph's own serializer reads, messages above all."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name

from loopwright.checkpoints.serializer import Serializer
from loopwright.testing import call

CALLS = [call("look", number=1)]
USAGE: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
MESSAGES = [
    HumanMessage("Look.", id="m0"),
    HumanMessage([{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "data:,x"}}]),
    SystemMessage("Be brief."),
    AIMessage("", id="m1", tool_calls=CALLS, usage_metadata=USAGE, response_metadata={"model": "m"}),
    AIMessage("Done.", from_elsewhere={"x": [1]}),
    AIMessageChunk(content="Do"),
    ToolMessage("seen", tool_call_id="c1", name="look", artifact={"rows": [1, 2]}, status="error"),
    RemoveMessage("m0"),
]


def both(value: Any) -> tuple[Any, Any]:
    """Return what LangGraph's serializer and ours read of one stored value."""
    stored = JsonPlusSerializer().dumps_typed(value)
    assert stored == Serializer().dumps_typed(value)
    return JsonPlusSerializer().loads_typed(stored), Serializer().loads_typed(stored)


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_messages(message: BaseMessage) -> None:
    """Alike in class, fields, what was set, and what came beside the fields."""
    theirs, ours = both(message)
    assert theirs == ours == message
    assert type(theirs) is type(ours)
    assert (theirs.model_fields_set, theirs.model_extra) == (ours.model_fields_set, ours.model_extra)
    assert theirs.model_dump() == ours.model_dump()
    assert theirs == ours.model_copy(deep=True)


@pytest.mark.parametrize(
    "value", [None, b"x", {"a": [1, 2.5, "x"]}, [*MESSAGES, {"in": MESSAGES[3]}], _DeltaSnapshot(MESSAGES)]
)
def test_other_values(value: Any) -> None:
    """Messages within something else too, and what is no message."""
    theirs, ours = both(value)
    assert theirs == ours == value


def test_a_message_of_another_shape_is_judged() -> None:
    """One that lacks a field, as an older LangChain wrote it, is built as LangGraph builds it, defaults and all."""
    stored = JsonPlusSerializer().dumps_typed(MESSAGES[3])
    # `name` is the only field of that length: as `nama` it is none of the class's.
    older = (stored[0], stored[1].replace(b"\xa4name", b"\xa4nama", 1))
    theirs, ours = JsonPlusSerializer().loads_typed(older), Serializer().loads_typed(older)
    assert theirs == ours
    assert ours.name is None


def test_two_readers_share_nothing() -> None:
    """What one changes, the other does not see."""
    stored = JsonPlusSerializer().dumps_typed(MESSAGES[4])
    first, second = (Serializer().loads_typed(stored) for _ in range(2))
    first.response_metadata["changed"] = True
    first.from_elsewhere["x"].append(2)
    first.id = "changed"
    assert second == MESSAGES[4]
