"""Spend: a row for each attempt at a model, opened before the call is made."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.state import Tokens

from .database import Call, Database, Row


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a model, as the ledger has it."""

    run_id: str
    step: int
    number: int
    """Counts the attempts at this step, from 1."""
    tokens: Tokens
    cost_nano: int
    settled: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening an attempt brought."""

    number: int
    lost: Sequence[Attempt]
    """Earlier attempts at the same step, whose replies never reached a checkpoint: they count as spent."""
    cancelled_by: str
    """Who cancelled the run meanwhile; then no row was opened and no call may be made."""


class Spend:
    """The attempts. A settlement waits in memory for the next transaction that this object opens, which saves a commit.

    A process that dies in between leaves its row open: the attempt counts as its estimate, never as nothing.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Put the attempts over their table."""
        self._database = database
        self._clock = clock
        self._waiting: list[dict[str, Any]] = []
        # Not the database's lock: an event loop that settles would wait for another thread's commit.
        self._waiting_lock = threading.Lock()

    def open(self, run_id: str, step: int, *, model: str, estimate: Tokens, cost_nano: int) -> Opened:
        """Open a row for an attempt that is about to be made; committed before this returns."""
        attempt = {
            "run_id": run_id,
            "step": step,
            "model": model,
            "input_tokens": estimate.input,
            "output_tokens": estimate.output,
            "cost_nano": cost_nano,
            "now": self._clock(),
        }
        opened = self._with_waiting(("open_attempt", attempt))
        number = opened[0]["attempt"] if opened else 0
        if number == 1:
            return Opened(1, (), "")
        made = [_attempt(row) for row in self._database.query("attempts_of_step", run_id=run_id, step=step)]
        run = [] if opened else self._database.query("find_run", id=run_id)
        lost = [attempt for attempt in made if attempt.number != number]
        return Opened(number, lost, run[0]["cancel_by"] if run else "")

    def settle(self, run_id: str, step: int, number: int, *, tokens: Tokens, cost_nano: int) -> None:
        """Keep the real figures of an attempt; stored with the next transaction, at the latest by `flush`."""
        with self._waiting_lock:
            self._waiting.append(
                {
                    "run_id": run_id,
                    "step": step,
                    "attempt": number,
                    "input_tokens": tokens.input,
                    "output_tokens": tokens.output,
                    "cost_nano": cost_nano,
                }
            )

    def flush(self) -> None:
        """Store the settlements that wait; joins the open transaction."""
        self._with_waiting()

    def _with_waiting(self, *calls: Call) -> list[Row]:
        """Store the settlements that wait, then run these queries, in one transaction; returns the last one's rows."""
        with self._waiting_lock:
            waiting, self._waiting = self._waiting, []
        if not (waiting or calls):
            return []
        try:
            return self._database.together([*(("settle_attempt", values) for values in waiting), *calls])[-1]
        except BaseException:
            with self._waiting_lock:
                self._waiting = waiting + self._waiting
            raise

    def forget(self, thread_id: str) -> None:
        """Delete the attempts of a thread whose runs have all ended; their sums stand in its last state."""
        self.flush()
        self._database.write("delete_spend_of_thread", thread_id=thread_id)

    def of_run(self, run_id: str) -> list[Attempt]:
        """Return all attempts of a run, in order."""
        self.flush()
        return [_attempt(row) for row in self._database.query("attempts_of_run", run_id=run_id)]


def _attempt(row: Row) -> Attempt:
    settled = row["status"] == "settled"
    tokens = Tokens(row["input_tokens"], row["output_tokens"], estimated=not settled)
    return Attempt(row["run_id"], row["step"], row["attempt"], tokens, row["cost_nano"], settled)
