"""Where runs are kept: LangGraph's checkpoints, and the ledger beside them."""

from __future__ import annotations

from .approvals import ROLES, Answered, Approval, Approvals, Decided, NewApproval
from .budgets import Budgets, Drawn
from .effects import Brought, Claim, ClaimRequest, ClaimStatus, EffectRow, Effects, EffectStatus
from .ledger import LEASE_SECONDS, NEWER, Clock, Ledger
from .listing import ALL
from .log import LogRecord, LogReport
from .metadata import FORK_KEY
from .opening import Checkpoints, OpeningOptions, aopen_checkpoints, open_checkpoints
from .pruning import PruneReport
from .rates import Rates
from .resealing import ResealReport
from .run_table import PLAIN_INVOKE, Begun, Lease, RunRow, extensions_of, labels_of
from .saver import RING_KEY, Saver
from .spend import Attempt, GiveBack, Opened
from .threads import check_thread_id

__all__ = [
    "ALL",
    "FORK_KEY",
    "LEASE_SECONDS",
    "NEWER",
    "PLAIN_INVOKE",
    "RING_KEY",
    "ROLES",
    "Answered",
    "Approval",
    "Approvals",
    "Attempt",
    "Begun",
    "Brought",
    "Budgets",
    "Checkpoints",
    "Claim",
    "ClaimRequest",
    "ClaimStatus",
    "Clock",
    "Decided",
    "Drawn",
    "EffectRow",
    "EffectStatus",
    "Effects",
    "GiveBack",
    "Lease",
    "Ledger",
    "LogRecord",
    "LogReport",
    "NewApproval",
    "Opened",
    "OpeningOptions",
    "PruneReport",
    "Rates",
    "ResealReport",
    "RunRow",
    "Saver",
    "aopen_checkpoints",
    "check_thread_id",
    "extensions_of",
    "labels_of",
    "open_checkpoints",
]
