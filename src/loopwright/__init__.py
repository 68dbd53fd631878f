"""An agent you can leave alone with a refund button: bounded, approvable, durable, visible.

Names are loaded when they are first used: `import loopwright` costs a few milliseconds.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopwright.checkpoints import Approval, Checkpoints, aopen_checkpoints, open_checkpoints
    from loopwright.errors import LoopwrightError, NotDone
    from loopwright.graphs import Agent, check, create_agent
    from loopwright.models import Native, Price, open_model
    from loopwright.policy import (
        Compaction,
        Loops,
        ProposedAnswer,
        ProposedCall,
        Reflect,
        allow,
        ask,
        confirmed,
        deny,
        from_user,
        known,
        plain,
    )
    from loopwright.runs import Event, EventKind, Receipt, Run, RunResult, Runs, SyncRuns
    from loopwright.state import (
        AgentState,
        Budget,
        Limits,
        Person,
        Rate,
        RunStatus,
        Secret,
        StopReason,
        Usage,
        approve,
        edit,
        happened,
        not_happened,
        reject,
        respond,
    )
    from loopwright.tools import Effect, Retry, annotate, tool

__all__ = [
    "Agent",
    "AgentState",
    "Approval",
    "Budget",
    "Checkpoints",
    "Compaction",
    "Effect",
    "Event",
    "EventKind",
    "Limits",
    "Loops",
    "LoopwrightError",
    "Native",
    "NotDone",
    "Person",
    "Price",
    "ProposedAnswer",
    "ProposedCall",
    "Rate",
    "Receipt",
    "Reflect",
    "Retry",
    "Run",
    "RunResult",
    "RunStatus",
    "Runs",
    "Secret",
    "StopReason",
    "SyncRuns",
    "Usage",
    "allow",
    "annotate",
    "aopen_checkpoints",
    "approve",
    "ask",
    "check",
    "confirmed",
    "create_agent",
    "deny",
    "edit",
    "from_user",
    "happened",
    "known",
    "not_happened",
    "open_checkpoints",
    "open_model",
    "plain",
    "reject",
    "respond",
    "tool",
]

_ROOMS = {
    "checkpoints": ("Approval", "Checkpoints", "aopen_checkpoints", "open_checkpoints"),
    "errors": ("LoopwrightError", "NotDone"),
    "graphs": ("Agent", "check", "create_agent"),
    "models": ("Native", "Price", "open_model"),
    "policy": (
        "Compaction",
        "Loops",
        "ProposedAnswer",
        "ProposedCall",
        "Reflect",
        "allow",
        "ask",
        "confirmed",
        "deny",
        "from_user",
        "known",
        "plain",
    ),
    "runs": ("Event", "EventKind", "Receipt", "Run", "RunResult", "Runs", "SyncRuns"),
    "state": (
        "AgentState",
        "Budget",
        "Limits",
        "Person",
        "Rate",
        "RunStatus",
        "Secret",
        "StopReason",
        "Usage",
        "approve",
        "edit",
        "happened",
        "not_happened",
        "reject",
        "respond",
    ),
    "tools": ("Effect", "Retry", "annotate", "tool"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a name from its room."""
    if name not in _HOME:
        raise AttributeError(f"module 'loopwright' has no attribute {name!r}")
    found: object = getattr(import_module(f"loopwright.{_HOME[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """Show the public names."""
    return sorted(__all__)
