"""The ledger: what must be atomic across processes, one small object a table."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from loopwright.state import NOT_HAPPENED, Happened, NotHappened, Question, RunStatus, StopReason

from .approvals import Answered, Approval, Approvals, Decided, NewApproval
from .budgets import Budgets
from .database import Database
from .effects import Brought, EffectRow, Effects, EffectStatus
from .heart import Heart
from .lines import Lines
from .log import Log
from .rates import Rates
from .renewals import Renewals
from .run_table import Begun, Leases, Presence, RunRow, RunTable
from .spend import Spend

Clock = Callable[[], float]
"""Returns seconds since the epoch."""

NEWER = "a newer message"
"""Who withdraws the questions of a run that another took the place of."""
LEASE_SECONDS = 10.0
"""How long a lease or a claim outlives its last heartbeat."""


class Ledger:
    """Runs, leases, approvals, effects, spend and log, in one database.

    Every method of its tables commits before it returns, unless it says otherwise. All are safe to call from any
    thread; none may be called in an event loop's own thread (they block), save on a database in memory.
    """

    def __init__(self, database: Database, clock: Clock, *, lease_seconds: float = LEASE_SECONDS) -> None:
        """Put the tables over a database.

        Args:
            database: Opened; the ledger does not close it.
            clock: Seconds since the epoch.
            lease_seconds: How long a claim or lease outlives its last heartbeat.
        """
        self.database = database
        self.clock = clock
        self.lease_seconds = lease_seconds
        self.owner = f"{os.getpid()}-{uuid.uuid4().hex[:8]}"
        """Names this process, and this opening of the ledger, as the holder of leases and claims."""
        self.lines = Lines()
        self.log = Log(database, clock)
        self.runs = RunTable(database, self.log, clock)
        self.leases = Leases(database, clock, self.owner, lease_seconds)
        self.approvals = Approvals(database, self.log, clock)
        self.effects = Effects(database, self.log, clock, self.owner, lease_seconds)
        self.renewals = Renewals(database, clock, self.leases, self.owner, lease_seconds)
        self.heart = Heart(lease_seconds / 3, self.renewals.renew)
        self.budgets = Budgets(database, clock)
        self.rates = Rates(database, clock)
        self.spend = Spend(database, clock, self.budgets)

    @property
    def is_memory(self) -> bool:
        """Whether it lives in memory only: private to this process, gone with it."""
        return self.database.is_memory

    def begin_run(
        self,
        run_id: str,
        *,
        thread_id: str,
        agent: str,
        task: str,
        requester: str = "",
        labels: Mapping[str, str] | None = None,
        begun: Begun | None = None,
    ) -> None:
        """Note that a task was taken in; what the thread left unfinished ends, and what it asked is withdrawn."""
        who = {"thread_id": thread_id, "agent": agent, "task": task, "requester": requester}
        with self.database.serial():
            for ended in self.runs.begin(run_id, labels=labels, begun=begun, **who):
                self.approvals.withdraw(ended, NEWER)

    def end_run(self, run_id: str, reason: StopReason, *, thread_id: str, cost_nano: int, error: str = "") -> None:
        """Note a run's end, with the settlements that wait, in one transaction; the first end counts.

        What a cancelled run asks is withdrawn: an answer could not count. An error is for a run that was never taken
        in: any other has it in its state.
        """
        with self.spend.flushed():
            if reason is StopReason.CANCELLED:
                self.approvals.withdraw(run_id, NEWER)
            said = {"thread_id": thread_id, "reason": reason.value, "error": error}
            self.runs.end(run_id, reason.status, cost_nano=cost_nano, **said)

    def ask(self, run_id: str, thread_id: str, questions: Sequence[NewApproval]) -> None:
        """Open questions; one about an outcome that has become known meanwhile is answered in the same transaction."""
        with self.database.serial():
            self.approvals.open(run_id, thread_id, questions)
            for question in questions:
                effect = self.effects.find(question.effect_id) if question.effect_id else None
                if effect is not None:
                    self._answer(effect)

    def settle(self, claim: EffectRow, status: EffectStatus, result: Any, brought: Brought | None = None) -> EffectRow:
        """Say what became of a claimed effect, and answer the question about it if there is one; see `Effects.settle`.

        There is one when a worker that was thought dead comes back after all.
        """
        with self.database.serial():
            row = self.effects.settle(claim, status, result, brought)
            self._answer(row)
            return row

    def _answer(self, effect: EffectRow, by: str = "") -> None:
        """Answer the open questions about an effect whose outcome is known, all alike: by its worker, or by `by`."""
        said = {EffectStatus.DONE: "respond", EffectStatus.FAILED: "reject"}.get(EffectStatus(effect.status))
        for asked in self.approvals.of_effect(effect.id) if said else ():
            self.approvals.decide(asked.id, {"type": said, "message": str(effect.result)}, by or effect.owner)

    def decide(self, approval_id: str, decision: dict[str, Any], by: str, roles: Collection[str] = ()) -> Decided:
        """Take a decision; one about an outcome settles the effect in the same transaction. See `Approvals.decide`.

        While somebody runs the effect again, as its hook said that nothing had happened, the outcome is not for a
        person to say: the question stays open, and is answered by what comes of it.

        Raises:
            ApprovalNotFound: If nothing was ever asked under that id.
        """
        with self.database.serial():
            asked = self.approvals.get(approval_id)
            if asked.question != Question.OUTCOME or asked.decision is not None:
                return self.approvals.decide(approval_id, decision, by, roles)
            status = EffectStatus.DONE if decision["type"] == "respond" else EffectStatus.FAILED
            won, effect = self.effects.resolve(asked.effect_id, status, decision.get("message", ""), by)
            if not won and effect.status in (EffectStatus.DONE, EffectStatus.FAILED):
                self._answer(effect)
                return Decided(accepted=False, approval=self.approvals.get(approval_id))
            if not won:
                return Decided(accepted=False, approval=asked)
            decided = self.approvals.decide(approval_id, decision, by, roles)
            self._answer(effect, by)
            return decided

    def take(
        self, run_id: str, approval_ids: Sequence[str], used_at: str, answers: Mapping[str, Answered]
    ) -> tuple[dict[str, Approval], dict[str, Decided]]:
        """Take in what was answered at a pause, and the decisions that count for it, in one transaction.

        Where nothing is left to decide, the run goes on, and its row says so.

        Args:
            run_id: The run that paused.
            approval_ids: All that it waits for.
            used_at: The checkpoint of the pause.
            answers: By approval, what was answered there; judged before. See `decide`.

        Returns:
            The questions as they stand for this pause (see `Approvals.use`), and what came of each answer.

        Raises:
            ApprovalNotFound: If an answer is to a question that was never asked.
        """
        with self.database.serial():
            decided = {name: self.decide(name, *answer) for name, answer in answers.items()}
            standing = self.approvals.use(approval_ids, used_at)
            if len(standing) == len(approval_ids) and all(asked.decision for asked in standing.values()):
                self.runs.set_status(run_id, RunStatus.RUNNING)
            return standing, decided

    def resolve(self, effect_id: str, outcome: Happened | NotHappened, text: str, by: str) -> tuple[bool, EffectRow]:
        """Say what became of an unknown effect, and answer the question about it, in one transaction.

        Returns:
            Whether this counts (else it was known before), and the effect as it stands now.

        Raises:
            EffectNotFound: If there is none with that id.
        """
        happened = isinstance(outcome, Happened)
        with self.database.serial():
            status = EffectStatus.DONE if happened else EffectStatus.FAILED
            won, row = self.effects.resolve(effect_id, status, text, by)
            said = {"type": "respond", "message": text} if happened else {"type": NOT_HAPPENED}
            for asked in self.approvals.of_effect(effect_id) if won else ():
                self.approvals.decide(asked.id, said, by)
            return won, row

    def cancel(self, run_id: str, by: str) -> bool:
        """Ask for a run's end and withdraw its questions, in one transaction; False when somebody was faster.

        A run whose caller drove it and is gone ends here: nobody else would end it.
        """
        with self.database.serial():
            row = self.runs.find(run_id)
            is_abandoned = row is not None and self.is_abandoned(row)
            won = self.runs.cancel(run_id, by)
            if won:
                self.approvals.withdraw(run_id, by)
            if row is not None and won and is_abandoned:
                self._end_abandoned(row)
            return won

    def is_abandoned(self, row: RunRow) -> bool:
        """Tell whether a run's caller, who drove it himself, is gone: nothing was heard of him for a lease's time."""
        silent = self.clock() - row.updated_at
        is_driven = row.is_plain and row.status == RunStatus.RUNNING
        return is_driven and silent >= self.lease_seconds and self.leases.holder(row.thread_id) is None

    def end_abandoned(self, row: RunRow) -> bool:
        """End a run whose caller is gone, if somebody has cancelled it; else he may come back. False if it goes on."""
        with self.database.serial():
            if not row.cancel_by or not self.is_abandoned(row):
                return False
            self._end_abandoned(row)
            return True

    def _end_abandoned(self, row: RunRow) -> None:
        self.end_run(row.id, StopReason.CANCELLED, thread_id=row.thread_id, cost_nano=row.cost_nano)

    @contextmanager
    def present(self, thread_id: str) -> Generator[None]:
        """Be seen as a caller who drives a thread himself, until the block ends."""
        presence = Presence(self.leases, thread_id)
        with self.heart.keep(presence):
            try:
                yield
            finally:
                presence.leave()

    def reopen(self, run_id: str, thread_id: str) -> None:
        """Note that a run goes on which may have ended: a branch of its thread was asked for.

        What else waits on the thread is over: its pause is no longer where the thread stands.
        """
        with self.database.serial():
            for row in self.runs.others(run_id, thread_id):
                self.approvals.withdraw(row.id, "a branch of the thread")
                self.runs.set_status(row.id, RunStatus.CANCELLED, reason=StopReason.CANCELLED.value)
            self.runs.reopen(run_id, thread_id)

    def forget(self, run_id: str) -> None:
        """Drop all that is known of a run that nothing can be resumed from; only for a ledger in memory."""
        with self.database.serial():
            for name in ("forget_run", "forget_effects", "forget_spend", "forget_log"):
                self.database.write(name, id=run_id)

    def close(self) -> None:
        """Stop the heartbeat and store what waits for the next transaction."""
        self.heart.stop()
        self.spend.flush()
