"""Spend: a row for each attempt at a model, opened before the call is made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from loopwright.state import Tokens

from .database import Database, Row


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

    def open(self, run_id: str, step: int, *, model: str, estimate: Tokens, cost_nano: int) -> Opened:
        """Open a row for an attempt that is about to be made; committed before this returns."""
        with self._database.transaction():
            self.flush()
            run = self._database.query("find_run", id=run_id)
            lost = [_attempt(row) for row in self._database.query("attempts_of_step", run_id=run_id, step=step)]
            if run and run[0]["cancel_by"]:
                return Opened(0, lost, run[0]["cancel_by"])
            number = len(lost) + 1
            self._database.write(
                "open_attempt",
                run_id=run_id,
                step=step,
                attempt=number,
                model=model,
                input_tokens=estimate.input,
                output_tokens=estimate.output,
                cost_nano=cost_nano,
                now=self._clock(),
            )
        return Opened(number, lost, "")

    def settle(self, run_id: str, step: int, number: int, *, tokens: Tokens, cost_nano: int) -> None:
        """Keep the real figures of an attempt; stored with the next transaction, at the latest by `flush`."""
        with self._database.lock:
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
        with self._database.lock:
            waiting, self._waiting = self._waiting, []
            if not waiting:
                return
            with self._database.transaction():
                for values in waiting:
                    self._database.write("settle_attempt", **values)

    def of_run(self, run_id: str) -> list[Attempt]:
        """Return all attempts of a run, in order."""
        self.flush()
        return [_attempt(row) for row in self._database.query("attempts_of_run", run_id=run_id)]


def _attempt(row: Row) -> Attempt:
    settled = row["status"] == "settled"
    tokens = Tokens(row["input_tokens"], row["output_tokens"], estimated=not settled)
    return Attempt(row["run_id"], row["step"], row["attempt"], tokens, row["cost_nano"], settled)
