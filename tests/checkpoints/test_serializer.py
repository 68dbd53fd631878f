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
from langgraph.types import Send

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


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)
UNSTORABLE: dict[str, tuple[Any, Any]] = {
    "above 64 bits": (2**64, str(2**64)),
    "below 64 bits": (-(2**63) - 1, str(-(2**63) - 1)),
    "more digits than Python writes": (16**9000, hex(16**9000)),
    "a surrogate": ({"\ud800": "a\ud800"}, {"\ufffd": "a\ufffd"}),
    "an object": ((object(), 1), ["(a object that cannot be stored)", 1]),
}


def message_in(value: Any) -> HumanMessage:
    """Return the message that a value holds."""
    if isinstance(value, HumanMessage):
        return value
    if isinstance(value, _DeltaSnapshot):
        return message_in(value.value)
    parts: Any = value.arg if isinstance(value, Send) else value
    return message_in(parts[0] if isinstance(parts, list) else parts["m"])


@pytest.mark.parametrize(("value", "kept"), UNSTORABLE.values(), ids=UNSTORABLE)
def test_what_cannot_be_stored_is_replaced(value: Any, kept: Any) -> None:
    """In messages, in a snapshot, in a task that is sent, and alone; everything else stays as it is."""
    serializer = Serializer()
    message = HumanMessage("Look.", id="m", additional_kwargs={"x": [value, 2**63]}, response_metadata={"y": value})
    for given in ([message], _DeltaSnapshot([message]), Send("act", {"m": message}), {"one": 1.5, "m": message}):
        read = serializer.loads_typed(serializer.dumps_typed(given))
        assert type(given) is type(read)
        one = message_in(read)
        assert (one.text, one.id, one.additional_kwargs) == ("Look.", "m", {"x": [kept, 2**63]})
        assert {"y": kept} == one.response_metadata


def test_what_has_no_end_is_replaced() -> None:
    """A value that holds itself is cut off, and so is one that no serializer follows so deep; nothing raises."""
    serializer = Serializer()
    deep: list[Any] = []
    for _ in range(300):
        deep = [deep]
    for value in (ENDLESS, deep):
        message = HumanMessage("Look.", additional_kwargs={"x": value})
        assert "Look." == serializer.loads_typed(serializer.dumps_typed(message)).text
