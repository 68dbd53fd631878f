"""The reducers are left folds: how writes are batched makes no difference."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall, ToolMessage

from loopwright.state import fold_messages, fold_trail
from loopwright.testing import call


def human(text: str, own: str | None) -> HumanMessage:
    """Something that a user says."""
    return HumanMessage(text, id=own)


def asking(calls: list[ToolCall], own: str | None) -> AIMessage:
    """Something that a model asks for."""
    return AIMessage("", tool_calls=calls, id=own)


def answering(call_id: str, own: str | None) -> ToolMessage:
    """A result."""
    return ToolMessage("x", tool_call_id=call_id, id=own)


def asked(ids: list[str]) -> list[ToolCall]:
    """Calls with these ids."""
    return [call("f", call_id=name) for name in ids]


IDS = st.sampled_from(["a", "b", "c", "d"])
CALLS = st.lists(IDS, max_size=3, unique=True).map(asked)
MESSAGES: Any = st.one_of(
    st.builds(human, st.text(max_size=3), st.none() | IDS),
    st.builds(asking, CALLS, st.none() | IDS),
    st.builds(answering, IDS, st.none() | IDS),
    IDS.map(RemoveMessage),
    st.just(RemoveMessage("__remove_all__")),
    st.text(max_size=2),
    st.tuples(st.sampled_from(["user", "ai"]), st.text(max_size=2)),
)
WRITES = st.lists(MESSAGES | st.lists(MESSAGES, max_size=3), max_size=12)


@given(WRITES, st.lists(st.integers(0, 12), max_size=4))
def test_batching_makes_no_difference(writes: list[Any], cuts: list[int]) -> None:
    """All writes at once, or in any batches one after the other: the same transcript, ids included."""
    places = [0, *sorted(cut for cut in cuts if cut <= len(writes)), len(writes)]
    batched: list[Any] = []
    for begin, end in pairwise(places):
        batched = fold_messages(batched, writes[begin:end])
    assert fold_messages([], writes) == batched


@given(WRITES)
def test_ids_never_repeat(writes: list[Any]) -> None:
    """Whatever came and went."""
    ids = [message.id for message in fold_messages([], writes)]
    assert len(ids) == len(set(ids))
    assert all(ids)


@given(st.lists(st.lists(st.integers(), max_size=3), max_size=8), st.integers(0, 8))
def test_the_trail_as_well(writes: list[list[int]], cut: int) -> None:
    """Appending in one go or in two is the same."""
    assert fold_trail(fold_trail(None, writes[:cut]), writes[cut:]) == fold_trail([], writes)
