"""The ring, and the agents that come ready-made."""

from __future__ import annotations

from .agent import DEFAULT_NAME, Agent, build_ring, change_agent, compile_agent, create_agent
from .alone import alone
from .calling import room_for_steps
from .checking import CheckReport, check
from .linting import Finding

__all__ = [
    "DEFAULT_NAME",
    "Agent",
    "CheckReport",
    "Finding",
    "alone",
    "build_ring",
    "change_agent",
    "check",
    "compile_agent",
    "create_agent",
    "room_for_steps",
]
