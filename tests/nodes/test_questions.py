"""Answers in every shape that clients send, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.nodes import parse_answer, payload_of
from loopwright.nodes.questions import question_meant
from loopwright.state import Question, new_call

APPROVE = {"type": "approve"}
EDIT = {"type": "edit", "args": {"amount": 1}}
ACTION = {"name": "pay", "args": {"amount": 1}}
EDIT_TOOL = {**EDIT, "tool": "pay"}
TAKEN: list[tuple[Any, dict[str, Any]]] = [
    (APPROVE, APPROVE),
    ([APPROVE], APPROVE),
    ({"decisions": [APPROVE]}, APPROVE),
    ({"type": "accept", "args": None}, APPROVE),
    ([{"type": "accept", "args": None}], APPROVE),
    (EDIT, EDIT),
    ({"type": "edit", "edited_action": ACTION}, EDIT_TOOL),
    ({"decisions": [{"type": "edit", "edited_action": ACTION}]}, EDIT_TOOL),
    ([{"type": "edit", "args": {"action": "pay", "args": {"amount": 1}}}], EDIT_TOOL),
    ({"type": "edit", "args": {"amount": 1}, "tool": "pay"}, EDIT_TOOL),
    ({"type": "edit", "args": {"name": "ana"}}, {"type": "edit", "args": {"name": "ana"}}),
    ({"type": "edit", "args": {"action": "x", "args": "y"}}, {"type": "edit", "args": {"action": "x", "args": "y"}}),
    ({"type": "reject"}, {"type": "reject", "message": ""}),
    ({"type": "reject", "message": "no"}, {"type": "reject", "message": "no"}),
    ([{"type": "ignore", "args": None}], {"type": "reject", "message": ""}),
    ({"type": "respond", "message": "hi"}, {"type": "respond", "message": "hi"}),
    ([{"type": "response", "args": "hi"}], {"type": "respond", "message": "hi"}),
]
REFUSED: list[Any] = [
    None,
    True,
    "approve",
    [],
    {},
    [APPROVE, APPROVE],
    {"decisions": []},
    {"decisions": None},
    {"decisions": "approve"},
    {"type": "Approve"},
    {"type": ["approve"]},
    {"type": "edit"},
    {"type": "edit", "args": "amount=1"},
    {"type": "respond"},
    {"type": "respond", "message": ""},
    {"type": "reject", "message": 5},
    {"type": "wake"},
    {"type": "expire"},
    {"type": "cancel"},
    {"type": "not_happened"},
    {"approve": True},
]


@pytest.mark.parametrize(("answer", "decision"), TAKEN)
def test_taken(answer: Any, decision: dict[str, Any]) -> None:
    """LangChain's, Agent Inbox's and our own shapes mean the same."""
    assert decision == parse_answer(answer)


@pytest.mark.parametrize("answer", REFUSED)
def test_refused(answer: Any) -> None:
    """Anything else is no decision, least of all a yes; nor are the words that are ours to write."""
    assert parse_answer(answer) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["approve", "edit", "type", "args"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["type", "args", "decisions", "message"]), inner),
)


@given(JSON)
def test_no_answer_can_make_it_raise(answer: Any) -> None:
    """Code behind a pause must be total: an exception there would freeze a wrong answer for good."""
    decision = parse_answer(answer)
    assert decision is None or decision["type"] in {"approve", "edit", "reject", "respond"}


def test_the_payload_has_the_keys_that_clients_read() -> None:
    """LangChain's request, the alias of Agent Inbox, and the form for one call; and our own."""
    call = new_call("c1", "pay", {"amount": 1}, thought="They asked.")
    asked = {
        **call,
        "question": Question.APPROVAL,
        "approval": "q1",
        "why": "no rule allows this write",
        "by": "default",
    }
    payload = payload_of(asked, "r1")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # a call, spread
    (action,) = payload["action_requests"]
    assert {"name": "pay", "args": {"amount": 1}, "arguments": {"amount": 1}} == {
        name: action[name] for name in ("name", "args", "arguments")
    }
    assert [{"action_name": "pay", "allowed_decisions": ["approve", "edit", "reject", "respond"]}] == (
        payload["review_configs"]
    )
    assert ("tool_approval", "c1", "pay", "q1", "r1") == tuple(
        payload[name] for name in ("type", "tool_call_id", "name", "approval_id", "run_id")
    )
    assert "They asked." in payload["description"]
    assert "no rule allows this write" in payload["description"]


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ({"type": "approve", "approval_id": "q"}, "q"),
        ([{"type": "accept", "args": None, "approval_id": "q"}], "q"),
        ({"decisions": [APPROVE], "approval_id": "q"}, "q"),
        ({"approval_id": "what a tool has asked for"}, ""),
        ({"type": "approve", "approval_id": 5}, ""),
        (APPROVE, ""),
        ([], ""),
        ("q", ""),
    ],
)
def test_which_question_an_answer_is_for(answer: Any, meant: str) -> None:
    """Where a decision says so."""
    assert meant == question_meant(answer)
