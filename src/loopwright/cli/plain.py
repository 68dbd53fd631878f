"""What `--json` writes: plain data with keys that stay. Times are seconds since the epoch, money is a string."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from pydantic_core import to_jsonable_python

from loopwright.checkpoints import Approval, Attempt, EffectRow, LogRecord, RunRow
from loopwright.runs import Receipt, RunResult
from loopwright.state import NANO

Plain = dict[str, Any]


def plain_result(result: RunResult) -> Plain:
    """Return how a run stands."""
    return {
        "run_id": result.run_id,
        "thread_id": result.thread_id,
        "status": result.status.value,
        "stop_reason": result.stop_reason.value if result.stop_reason else None,
        "answer": result.answer,
        "error": result.error,
        "over_limit": result.over_limit.value if result.over_limit else None,
        "limit": result.limit,
        "output": to_jsonable_python(result.output, by_alias=True, fallback=repr),
        "objections": [dict(objection) for objection in result.objections],
        "compactions": [dict(made) for made in result.compactions],
        "usage": asdict(result.usage),
        "trail": [dict(entry) for entry in result.trail],
        "failures": [dict(failure) for failure in result.failures],
        "approvals": [plain_approval(approval) for approval in result.approvals],
        "parked": None if result.parked is None else asdict(result.parked),
    }


def plain_run(row: RunRow) -> Plain:
    """Return a run as it is listed."""
    return {
        "id": row.id,
        "thread_id": row.thread_id,
        "task": row.task,
        "status": row.status,
        "stop_reason": row.reason or None,
        "agent": row.agent,
        "worker": row.worker,
        "cost": Decimal(row.cost_nano) / NANO,
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "requester": row.requester,
        "parked_until": row.parked_until,
    }


def plain_approval(approval: Approval) -> Plain:
    """Return a question, with its decision where there is one."""
    return {
        "id": approval.id,
        "run_id": approval.run_id,
        "thread_id": approval.thread_id,
        "question": approval.question,
        "tool": approval.tool,
        "args": approval.args,
        "why": approval.payload.get("why", ""),
        "rule": approval.payload.get("rule", ""),
        "description": approval.description,
        "allowed": list(approval.allowed),
        "effect_id": approval.effect_id,
        "needs": dict(approval.needs),
        "votes": list(approval.votes),
        "missing": approval.missing,
        "created_at": approval.created_at,
        "expires_at": approval.expires_at,
        "decision": approval.decision,
        "decided_by": approval.decided_by,
        "decided_at": approval.decided_at,
    }


def plain_receipt(receipt: Receipt, run: Mapping[str, Any]) -> Plain:
    """Return what became of a decision, and how its run stands now."""
    return {
        "accepted": receipt.accepted,
        "decision": dict(receipt.decision),
        "by": receipt.by,
        "at": receipt.at,
        "votes": list(receipt.votes),
        "missing": receipt.missing,
        "run": dict(run),
    }


def plain_effect(effect: EffectRow) -> Plain:
    """Return an effect."""
    return asdict(effect)


def plain_attempt(attempt: Attempt) -> Plain:
    """Return an attempt at a model."""
    return asdict(attempt)


def plain_record(record: LogRecord) -> Plain:
    """Return a record of the log."""
    return asdict(record)
