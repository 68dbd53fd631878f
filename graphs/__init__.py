"""The ring, and the agents that come ready-made."""

from __future__ import annotations

from .agent import Agent, build_ring, compile_agent, create_agent
from .checking import CheckReport, Finding, check

__all__ = ["Agent", "CheckReport", "Finding", "build_ring", "check", "compile_agent", "create_agent"]
