"""The guard's rules: pure functions, without a graph and without a database."""

from __future__ import annotations

from .answers import (
    FORM,
    REFLECTION,
    AnswerCheck,
    AnswerRules,
    Check,
    Judgement,
    ProposedAnswer,
    Reflect,
    build_answer_rules,
    objection_of,
    reflection_of,
)
from .bounds import Bounds, bounds_of, name_limit
from .conditions import Condition, check_conditions, confirmed, from_user, known, plain
from .limits import calls_are_used_up, limit_met, over_limit, refuse_call, refuse_price, seconds_left
from .loops import Loops, check_loops
from .people import describe_requirement, refuse_person
from .room import SMALLEST_REPLY, Left, Room, Wanted, find_room, least, left_of
from .rules import Observed, Predicate, ProposedCall, Rule, Screening, allow, ask, check_rules, deny, screen
from .taint import passages, tighten
from .window import FORBID_AT, Kind, Rung, Seen, Window, call_key, is_loop, next_window, result_key, rung_of, way_of

__all__ = [
    "FORBID_AT",
    "FORM",
    "REFLECTION",
    "SMALLEST_REPLY",
    "AnswerCheck",
    "AnswerRules",
    "Bounds",
    "Check",
    "Condition",
    "Judgement",
    "Kind",
    "Left",
    "Loops",
    "Observed",
    "Predicate",
    "ProposedAnswer",
    "ProposedCall",
    "Reflect",
    "Room",
    "Rule",
    "Rung",
    "Screening",
    "Seen",
    "Wanted",
    "Window",
    "allow",
    "ask",
    "bounds_of",
    "build_answer_rules",
    "call_key",
    "calls_are_used_up",
    "check_conditions",
    "check_loops",
    "check_rules",
    "confirmed",
    "deny",
    "describe_requirement",
    "find_room",
    "from_user",
    "is_loop",
    "known",
    "least",
    "left_of",
    "limit_met",
    "name_limit",
    "next_window",
    "objection_of",
    "over_limit",
    "passages",
    "plain",
    "reflection_of",
    "refuse_call",
    "refuse_person",
    "refuse_price",
    "result_key",
    "rung_of",
    "screen",
    "seconds_left",
    "tighten",
    "way_of",
]
