"""The guard's rules: pure functions, without a graph and without a database."""

from __future__ import annotations

from .bounds import Bounds, bounds_of, name_limit
from .limits import calls_are_used_up, limit_met, over_limit, refuse_call, seconds_left
from .loops import IN_A_ROW, is_loop, next_window
from .people import describe_requirement, refuse_person
from .room import SMALLEST_REPLY, Left, Room, Wanted, find_room, least, left_of
from .rules import Predicate, ProposedCall, Rule, Screening, allow, ask, check_rules, deny, screen

__all__ = [
    "IN_A_ROW",
    "SMALLEST_REPLY",
    "Bounds",
    "Left",
    "Predicate",
    "ProposedCall",
    "Room",
    "Rule",
    "Screening",
    "Wanted",
    "allow",
    "ask",
    "bounds_of",
    "calls_are_used_up",
    "check_rules",
    "deny",
    "describe_requirement",
    "find_room",
    "is_loop",
    "least",
    "left_of",
    "limit_met",
    "name_limit",
    "next_window",
    "over_limit",
    "refuse_call",
    "refuse_person",
    "screen",
    "seconds_left",
]
