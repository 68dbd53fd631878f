"""Approvals: what is asked of a person, and the one decision that counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

from loopwright.errors import ApprovalNotFound
from loopwright.state import CANCEL, EXPIRE, Question, Requirement, RunStatus, canonical, name_key, require_nothing

from .database import Database, Row
from .listing import ALL, check_limit
from .log import Log

ROLES = "roles"
"""In the decision of who edits: what they may do. The rules for what they made of the call are asked when it is judged.
"""


@dataclass(frozen=True, slots=True)
class Approval:
    """One question that waits, or waited, for a person."""

    id: str
    """A digest over what is asked: tool, arguments, thread, run, step."""
    run_id: str
    thread_id: str
    question: str
    """A `Question`, such as `tool_approval` or `outcome_unknown`."""
    tool: str
    args: dict[str, Any]
    """Exactly what runs when it is approved."""
    description: str
    allowed: tuple[str, ...]
    """The decisions that can be taken."""
    payload: dict[str, Any] = field(repr=False)
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
    needs: Requirement
    """Who may decide, and how many must approve."""
    votes: tuple[str, ...]
    """Who has approved, in their order."""
    remind_at: float | None
    """When somebody is to be reminded, in seconds since the epoch."""
    used_at: str
    """The checkpoint of the pause that took the decision; another branch of the thread needs another decision."""

    @property
    def missing(self) -> int:
        """How many people must still approve; 0 when it is decided."""
        return 0 if self.decision is not None else max(self.needs["number"] - len(self.votes), 1)


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
    """Seconds from its opening on."""
    until: float | None = None
    """Seconds since the epoch: when it expires, where that was fixed before."""
    remind_after: float | None = None
    needs: Requirement | None = None
    """None: one person decides, whoever it is."""
    vote: str = ""
    """Who has approved by asking: the one whose edit it is."""


class Answered(NamedTuple):
    """What somebody answered to a question."""

    decision: dict[str, Any]
    """As plain data."""
    by: str
    roles: Collection[str]


@dataclass(frozen=True, slots=True)
class Decided:
    """What deciding brought."""

    accepted: bool
    """Whether this decision is the one that counts, or a vote that counts towards it."""
    approval: Approval
    """As it stands now; without a decision while more people must approve."""


class Approvals:
    """The questions. A decision is compare-and-set: whoever is second learns who was first."""

    def __init__(self, database: Database, log: Log, clock: Callable[[], float]) -> None:
        """Put the questions over their table."""
        self._database = database
        self._log = log
        self._clock = clock

    def open(self, run_id: str, thread_id: str, questions: Sequence[NewApproval]) -> None:
        """Open questions and note that the run waits, in one transaction; opening one again changes nothing.

        Those that are opened together are listed in their order.
        """
        with self._database.serial():
            now = self._clock()
            for ordinal, new in enumerate(questions):
                if not self._database.query("find_approval", id=new.id):
                    self._open(run_id, thread_id, new, ordinal, now)
            self._waiting(run_id, now)

    def _open(self, run_id: str, thread_id: str, new: NewApproval, ordinal: int, now: float) -> None:
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
            needs="" if new.needs is None else json.dumps(new.needs),
            ordinal=ordinal,
            now=now,
            expires_at=new.until if new.expires_in is None else now + new.expires_in,
            remind_at=None if new.remind_after is None else now + new.remind_after,
        )
        asked = {"approval": new.id, "question": new.question, "tool": new.tool, "args": new.args}
        self._log.append("asked", thread_id=thread_id, run_id=run_id, **asked)
        if new.vote:
            self._vote(self.get(new.id), new.vote, ())

    def _waiting(self, run_id: str, now: float) -> None:
        """Note that the run waits, since when it began to; the questions of one that was cancelled are withdrawn."""
        run = self._database.query("find_run", id=run_id)
        if run and run[0]["status"] != RunStatus.WAITING:
            values = {"status": RunStatus.WAITING.value, "reason": "", "cost_nano": 0}
            self._database.write("set_run_status", id=run_id, now=now, **values)
        if run and run[0]["cancel_by"]:
            self.withdraw(run_id, run[0]["cancel_by"])

    def decide(self, approval_id: str, decision: dict[str, Any], by: str, roles: Collection[str] = ()) -> Decided:
        """Take a decision if none was taken before; a question whose time is up is decided by that.

        An approval counts as a vote where several people must approve, and decides when it completes their number.

        Args:
            approval_id: Of the question.
            decision: As plain data; whether this person may take it was judged before.
            by: Who decides.
            roles: Theirs, for the log.

        Raises:
            ApprovalNotFound: If nothing was ever asked under that id.
        """
        with self._database.serial():
            self._expire(approval_id)
            asked = self.get(approval_id)
            if asked.decision is None and decision["type"] == "approve" and asked.needs["number"] > 1:
                return self._count(asked, decision, by, roles)
            won = self._decide(approval_id, decision, by, roles)
            return Decided(won, self.get(approval_id))

    def _count(self, asked: Approval, decision: dict[str, Any], by: str, roles: Collection[str]) -> Decided:
        """Take an approval as a vote, one a person; the last one that is needed decides, in the name of all."""
        voted = self._vote(asked, by, roles)
        now = self.get(asked.id)
        if voted and len(now.votes) >= now.needs["number"]:
            self._decide(asked.id, decision, ", ".join(now.votes))
        return Decided(voted, self.get(asked.id))

    def _vote(self, asked: Approval, by: str, roles: Collection[str]) -> bool:
        values = {"approval_id": asked.id, "voter": name_key(by), "name": by, "now": self._clock()}
        if not self._database.write("cast_vote", **values):
            return False
        said = {"approval": asked.id, "tool": asked.tool, "args": asked.args, "by": by, "roles": sorted(roles)}
        self._log.append("voted", thread_id=asked.thread_id, run_id=asked.run_id, **said)
        return True

    def get(self, approval_id: str) -> Approval:
        """Return a question.

        Raises:
            ApprovalNotFound: If nothing was ever asked under that id.
        """
        rows = self._database.query("find_approval", id=approval_id)
        if not rows:
            text = f"no approval {approval_id!r}; list what is open with Runs.approvals() or `loopwright inbox`"
            raise ApprovalNotFound(text, approval_id=approval_id)
        return self._approval(rows[0])

    def standing(self, approval_ids: Sequence[str]) -> dict[str, Approval]:
        """Return the questions as they stand now: those whose time is up are decided by that."""
        rows = self._rows(approval_ids)
        if any(self._is_due(row) for row in rows):
            with self._database.serial():
                for approval_id in approval_ids:
                    self._expire(approval_id)
                rows = self._rows(approval_ids)
        return {row["id"]: self._approval(row) for row in rows}

    def _rows(self, approval_ids: Sequence[str]) -> list[Row]:
        return [row for id_ in approval_ids for row in self._database.query("find_approval", id=id_)]

    def _is_due(self, row: Row) -> bool:
        """Tell whether a question is open and its time is up."""
        ends = row["expires_at"] if row["status"] == "open" else None
        return ends is not None and ends <= self._clock()

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
            for row in self._open_of_run(run_id):
                self._decide(row["id"], {"type": CANCEL}, by)

    def list_open(self, run_id: str = "", limit: int = 50) -> list[Approval]:
        """Return what waits for a person, oldest first: of one run, or of all.

        Raises:
            ConfigurationError: If the limit is no number of questions.
        """
        check_limit(limit)
        if run_id:
            rows = [row for row in self._open_of_run(run_id) if row["question"] != Question.PARKED][:limit]
        else:
            rows = self._database.query("open_approvals", limit=limit)
        return [self._approval(row) for row in rows]

    def list_parked(self, run_id: str = "", limit: int = 50) -> list[Approval]:
        """Return what waits for a rate, the next to go on first: of one run, or of all."""
        check_limit(limit)
        if run_id:
            rows = [row for row in self._open_of_run(run_id) if row["question"] == Question.PARKED]
            rows = sorted(rows, key=itemgetter("expires_at"))[:limit]
        else:
            rows = self._database.query("parked_approvals", limit=limit)
        return [self._approval(row) for row in rows]

    def parked_until(self, agent: str) -> dict[str, float]:
        """Return until when runs of one agent wait for a rate, by their ids."""
        return {row["run_id"]: row["until"] for row in self._database.query("parked_runs", agent=agent)}

    def _open_of_run(self, run_id: str) -> list[Row]:
        return self._database.query("open_approvals_of_run", run_id=run_id, limit=ALL)

    def of_run(self, run_id: str) -> list[Approval]:
        """Return all that was ever asked in a run."""
        return [self._approval(row) for row in self._database.query("approvals_of_run", run_id=run_id)]

    def of_effect(self, effect_id: str) -> list[Approval]:
        """Return the open questions about an effect's outcome: one a run that came upon it."""
        return [self._approval(row) for row in self._database.query("approvals_of_effect", effect_id=effect_id)]

    def matching(self, prefix: str) -> list[str]:
        """Return up to three ids that begin so."""
        return [row["id"] for row in self._database.query("find_approvals_by_prefix", prefix=prefix)]

    def expire(self, agent: str) -> list[Approval]:
        """Decide the questions of one agent's runs whose time is up; returns them."""
        with self._database.serial():
            due = [row["id"] for row in self._database.query("due_approvals", agent=agent, now=self._clock())]
            return [*self.standing(due).values()]

    def due_reminders(self, agent: str) -> list[Approval]:
        """Return the open questions of one agent's runs of which somebody is to be reminded."""
        return [self._approval(row) for row in self._database.query("due_reminders", agent=agent, now=self._clock())]

    def claim_reminder(self, approval_id: str) -> bool:
        """Note that somebody is reminded now; False when another worker was faster, or it is decided."""
        return bool(self._database.write("claim_reminder", id=approval_id, now=self._clock()))

    def return_reminder(self, approval_id: str) -> None:
        """Note that nobody could be reminded: the next pass tries again."""
        self._database.write("return_reminder", id=approval_id)

    def _expire(self, approval_id: str) -> None:
        if any(self._is_due(row) for row in self._rows([approval_id])):
            self._decide(approval_id, {"type": EXPIRE}, "expiry")

    def _decide(self, approval_id: str, decision: dict[str, Any], by: str, roles: Collection[str] = ()) -> bool:
        kept = {**decision, ROLES: sorted(roles)} if decision["type"] == "edit" and roles else decision
        values = {"id": approval_id, "decision": json.dumps(kept), "by": by, "now": self._clock()}
        if not self._database.write("decide_approval", **values):
            return False
        row = self._database.query("find_approval", id=approval_id)[0]
        said = {"approval": approval_id, "decision": decision, "by": by, "tool": row["tool"]}
        if roles:
            said["roles"] = sorted(roles)
        args = json.loads(row["args"])
        self._log.append("decided", thread_id=row["thread_id"], run_id=row["run_id"], args=args, **said)
        return True

    def _approval(self, row: Row) -> Approval:
        needs: Requirement = json.loads(row["needs"]) if row["needs"] else require_nothing()
        votes = self._database.query("votes_of", approval_id=row["id"]) if needs["number"] > 1 else ()
        return _approval(row, needs, tuple(vote["name"] for vote in votes))


def _approval(row: Row, needs: Requirement, votes: tuple[str, ...]) -> Approval:
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
        needs=needs,
        votes=votes,
        remind_at=row["remind_at"],
        used_at=row["used_at"],
    )
