"""Measuring the ring against sets of tasks that others have made."""

from __future__ import annotations

from .agentdojo import RULE_SETS, Bench, RuleSet, Score, open_bench, table
from .services import SERVICES, Service

__all__ = ["RULE_SETS", "SERVICES", "Bench", "RuleSet", "Score", "Service", "open_bench", "table"]
