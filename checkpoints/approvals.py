"""Approvals: what is asked of a person, and the one decision that counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.errors import ApprovalNotFound
from loopwright.state import CANCEL, EXPIRE, RunStatus, canonical

from .database import Database, Row
from .log import Log

ALL = 1_000_000_000
"""More rows than there can be."""


@dataclass(frozen=True, slots=True)
class Approval:
    """One question that waits, or waited, for a person."""

    id: str
    """A digest over what is asked: tool, arguments, thread, run, step."""
    run_id: str
    thread_id: str
    question: str
    """`tool_approval` or `outcome_unknown`."""
    tool: str
    args: dict[str, Any]
    """Exactly what runs when it is approved."""
    description: str
    allowed: tuple[str, ...]
    """The decisions that can be taken."""
    payload: dict[str, Any]
    """What clients of LangGraph are shown."""
    effect_id: str
    """The effect whose outcome is asked about; empty for an approval."""
    created_at: float
    expires_at: float | None
    """Seconds since the epoch; None: it waits for ever."""
    decision: dict[str, Any] | None
    """What was decided; None while it is open."""
    decided_by: str
    decided_at: float | None
    used_at: str
    """The checkpoint of the pause that took the decision; another branch of the thread needs another decision."""


@dataclass(frozen=True, slots=True)
class NewApproval:
    """A question to be opened."""

    id: str
    question: str
    tool: str
    args: dict[str, Any]
    payload: dict[str, Any]
    effect_id: str = ""
    expires_in: float | None = None


@dataclass(frozen=True, slots=True)
class Decided:
    """What deciding brought."""

    accepted: bool
    """Whether this decision is the one that counts."""
    approval: Approval


class Approvals:
    """The questions. A decision is compare-and-set: whoever is second learns who was first."""

    def __init__(self, database: Database, log: Log, clock: Callable[[], float]) -> None:
        """Put the questions over their table."""
        self._database = database
        self._log = log
        self._clock = clock

    def open(self, run_id: str, thread_id: str, questions: Sequence[NewApproval]) -> None:
        """Open questions and note that the run waits, in one transaction; opening one again changes nothing."""
        with self._database.serial():
            now = self._clock()
            for new in questions:
                known = bool(self._database.query("find_approval", id=new.id))
                self._database.write(
                    "open_approval",
                    id=new.id,
                    run_id=run_id,
                    thread_id=thread_id,
                    question=new.question,
                    tool=new.tool,
                    args=canonical(new.args),
                    payload=json.dumps(new.payload),
                    effect_id=new.effect_id,
                    now=now,
                    expires_at=None if new.expires_in is None else now + new.expires_in,
                )
                if not known:
                    asked = {"approval": new.id, "question": new.question, "tool": new.tool, "args": new.args}
                    self._log.append("asked", thread_id=thread_id, run_id=run_id, **asked)
            self._waiting(run_id, now)

    def _waiting(self, run_id: str, now: float) -> None:
        """Note that the run waits; one that waits already does so from when it began to."""
        run = self._database.query("find_run", id=run_id)
        if run and run[0]["status"] != RunStatus.WAITING:
            values = {"status": RunStatus.WAITING.value, "reason": "", "cost_nano": 0}
            self._database.write("set_run_status", id=run_id, now=now, **values)

    def decide(self, approval_id: str, decision: dict[str, Any], by: str) -> Decided:
        """Take a decision if none was taken before; a question whose time is up is decided by that.

        Raises:
            ApprovalNotFound: If nothing was ever asked under that id.
        """
        with self._database.serial():
            self._expire(approval_id)
            won = self._decide(approval_id, decision, by)
            return Decided(won, self.get(approval_id))

    def get(self, approval_id: str) -> Approval:
        """Return a question.

        Raises:
            ApprovalNotFound: If nothing was ever asked under that id.
        """
        rows = self._database.query("find_approval", id=approval_id)
        if not rows:
            text = f"no approval {approval_id!r}; list what is open with Runs.approvals() or `loopwright inbox`"
            raise ApprovalNotFound(text, approval_id=approval_id)
        return _approval(rows[0])

    def standing(self, approval_ids: Sequence[str]) -> dict[str, Approval]:
        """Return the questions as they stand now: those whose time is up are decided by that."""
        with self._database.serial():
            for approval_id in approval_ids:
                self._expire(approval_id)
            rows = [row for id_ in approval_ids for row in self._database.query("find_approval", id=id_)]
        return {row["id"]: _approval(row) for row in rows}

    def use(self, approval_ids: Sequence[str], used_at: str) -> dict[str, Approval]:
        """Take the decisions for one pause; returns the questions as they stand for it.

        A decision that another branch of the thread has taken shows in `used_at`; it does not count here. Called again
        for the same pause, as after a crash, it returns the same.
        """
        with self._database.serial():
            for approval_id in approval_ids:
                self._expire(approval_id)
                self._database.write("use_approval", id=approval_id, used_at=used_at)
            return self.standing(approval_ids)

    def withdraw(self, run_id: str, by: str) -> None:
        """Close what is open of a run: nobody's answer can count any more."""
        with self._database.serial():
            for row in self._database.query("open_approvals", run_id=run_id, limit=ALL):
                self._decide(row["id"], {"type": CANCEL}, by)

    def list_open(self, run_id: str = "", limit: int = 50) -> list[Approval]:
        """Return what is open, oldest first."""
        return [_approval(row) for row in self._database.query("open_approvals", run_id=run_id, limit=limit)]

    def of_run(self, run_id: str) -> list[Approval]:
        """Return all that was ever asked in a run."""
        return [_approval(row) for row in self._database.query("approvals_of_run", run_id=run_id)]

    def of_effect(self, effect_id: str) -> list[Approval]:
        """Return the open questions about an effect's outcome: one a run that came upon it."""
        return [_approval(row) for row in self._database.query("approvals_of_effect", effect_id=effect_id)]

    def matching(self, prefix: str) -> list[str]:
        """Return up to three ids that begin so."""
        return [row["id"] for row in self._database.query("find_approvals_by_prefix", prefix=prefix)]

    def _expire(self, approval_id: str) -> None:
        rows = self._database.query("find_approval", id=approval_id)
        ends = rows[0]["expires_at"] if rows and rows[0]["status"] == "open" else None
        if ends is not None and ends <= self._clock():
            self._decide(approval_id, {"type": EXPIRE}, "expiry")

    def _decide(self, approval_id: str, decision: dict[str, Any], by: str) -> bool:
        values = {"id": approval_id, "decision": json.dumps(decision), "by": by, "now": self._clock()}
        if not self._database.write("decide_approval", **values):
            return False
        row = self._database.query("find_approval", id=approval_id)[0]
        self._log.append(
            "decided",
            thread_id=row["thread_id"],
            run_id=row["run_id"],
            approval=approval_id,
            decision=decision,
            by=by,
            tool=row["tool"],
            args=json.loads(row["args"]),
        )
        return True


def _approval(row: Row) -> Approval:
    payload = json.loads(row["payload"])
    return Approval(
        id=row["id"],
        run_id=row["run_id"],
        thread_id=row["thread_id"],
        question=row["question"],
        tool=row["tool"],
        args=json.loads(row["args"]),
        description=payload.get("description", ""),
        allowed=tuple(payload.get("allowed", ())),
        payload=payload,
        effect_id=row["effect_id"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        decision=json.loads(row["decision"]) if row["decision"] else None,
        decided_by=row["decided_by"],
        decided_at=row["decided_at"],
        used_at=row["used_at"],
    )
