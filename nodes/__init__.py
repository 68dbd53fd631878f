"""The four nodes of the ring, each one `async def` over a port."""

from __future__ import annotations

from .act import act
from .attempts import FAILED_ATTEMPT, MODEL_TEXT, told_next
from .branches import reopen
from .channels import OpenChannels, open_channels
from .contexts import ContextShape, RestoreContext
from .extending import budget_met, extension_message
from .guard import Moment, guard, moment_of
from .ledgers import Ledgers
from .node import PLACES_KEY, Node, run_through
from .observe import observe
from .parking import waits_for_model
from .pausing import TOOL_KEY
from .place import BRANCH_KEY, LABELS_KEY, REQUESTER_KEY, RUN_ID_KEY, Own, own_text
from .port import HEARD_KEY, PROGRESS, TOKENS_KEY
from .questions import WAKE, parse_answer, payload_of, respond_with
from .reason import reason
from .screening import normal_decision, refuse_decision
from .spec import AgentSpec, Candidate
from .task import ActTask

__all__ = [
    "BRANCH_KEY",
    "FAILED_ATTEMPT",
    "HEARD_KEY",
    "LABELS_KEY",
    "MODEL_TEXT",
    "PLACES_KEY",
    "PROGRESS",
    "REQUESTER_KEY",
    "RUN_ID_KEY",
    "TOKENS_KEY",
    "TOOL_KEY",
    "WAKE",
    "ActTask",
    "AgentSpec",
    "Candidate",
    "ContextShape",
    "Ledgers",
    "Moment",
    "Node",
    "OpenChannels",
    "Own",
    "RestoreContext",
    "act",
    "budget_met",
    "extension_message",
    "guard",
    "moment_of",
    "normal_decision",
    "observe",
    "open_channels",
    "own_text",
    "parse_answer",
    "payload_of",
    "reason",
    "refuse_decision",
    "reopen",
    "respond_with",
    "run_through",
    "told_next",
    "waits_for_model",
]
