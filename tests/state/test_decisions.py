"""Decisions: what is stored comes back as what it was."""

from __future__ import annotations

import json

import pytest

from loopwright.state import (
    CallTools,
    Decision,
    FinalAnswer,
    Malformed,
    Refused,
    RequestedCall,
    dump_decision,
    load_decision,
)

DECISIONS: list[Decision] = [
    CallTools((RequestedCall("c1", "pay", {"amount": 1, "to": ["ä"]}), RequestedCall("c2", "", {}, "cut")), "Let me."),
    FinalAnswer("It is 4."),
    Malformed("empty"),
    Malformed("truncated", "It is"),
    Malformed("unreadable", "Hm.", "It holds no object."),
    Refused("I cannot."),
]


@pytest.mark.parametrize("decision", DECISIONS)
def test_a_decision_round_trips_through_json(decision: Decision) -> None:
    """As the decision channel holds it."""
    assert decision == load_decision(json.loads(json.dumps(dump_decision(decision))))
