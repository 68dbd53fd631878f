"""Where runs are kept: LangGraph's checkpoints, and the ledger beside them."""

from __future__ import annotations

from .approvals import Approval, Approvals, Decided, NewApproval
from .effects import Claim, ClaimRequest, ClaimStatus, EffectRow, Effects, EffectStatus
from .ledger import LEASE_SECONDS, Clock, Ledger
from .log import LogRecord
from .opening import Checkpoints, aopen_checkpoints, open_checkpoints
from .run_table import Lease, RunRow
from .saver import Saver, check_thread_id
from .spend import Attempt, Opened

__all__ = [
    "LEASE_SECONDS",
    "Approval",
    "Approvals",
    "Attempt",
    "Checkpoints",
    "Claim",
    "ClaimRequest",
    "ClaimStatus",
    "Clock",
    "Decided",
    "EffectRow",
    "EffectStatus",
    "Effects",
    "Lease",
    "Ledger",
    "LogRecord",
    "NewApproval",
    "Opened",
    "RunRow",
    "Saver",
    "aopen_checkpoints",
    "check_thread_id",
    "open_checkpoints",
]
