"""The guard's rules: pure functions, without a graph and without a database."""

from __future__ import annotations

from .bounds import Bounds, bounds_of, name_limit
from .limits import calls_are_used_up, limit_met, over_limit, refuse_call, seconds_left
from .loops import Loops, check_loops
from .people import describe_requirement, refuse_person
from .room import SMALLEST_REPLY, Left, Room, Wanted, find_room, least, left_of
from .rules import Predicate, ProposedCall, Rule, Screening, allow, ask, check_rules, deny, screen
from .window import FORBID_AT, Kind, Rung, Seen, Window, call_key, is_loop, next_window, result_key, rung_of, way_of

__all__ = [
    "FORBID_AT",
    "SMALLEST_REPLY",
    "Bounds",
    "Kind",
    "Left",
    "Loops",
    "Predicate",
    "ProposedCall",
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
    "call_key",
    "calls_are_used_up",
    "check_loops",
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
    "result_key",
    "rung_of",
    "screen",
    "seconds_left",
    "way_of",
]
