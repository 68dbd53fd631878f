"""Spend: a row for each attempt at a model, opened before the call is made."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from loopwright.state import Share, Tokens

from .budgets import Budgets
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
class GiveBack:
    """What an attempt has reserved of budgets."""

    shares: Sequence[Share]
    tokens: int
    cost_nano: int

    def charges(self, tokens: Tokens, cost_nano: int) -> tuple[tuple[str, int, int], ...]:
        """Return by how much each share changes when this was really taken."""
        more = (tokens.input + tokens.output - self.tokens, cost_nano - self.cost_nano)
        return tuple((share.id, *more) for share in self.shares)


@dataclass(frozen=True, slots=True)
class _Settlement:
    """The real figures of an attempt, until they are stored."""

    run_id: str
    step: int
    number: int
    tokens: Tokens
    cost_nano: int
    charges: tuple[tuple[str, int, int], ...]
    """By budget share, tokens and nano-dollars beside what was reserved."""

    def values(self) -> dict[str, Any]:
        """Return what its query takes."""
        return {
            "run_id": self.run_id,
            "step": self.step,
            "attempt": self.number,
            "input_tokens": self.tokens.input,
            "output_tokens": self.tokens.output,
            "cost_nano": self.cost_nano,
        }


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening an attempt brought."""

    number: int
    lost: Sequence[Attempt]
    """Earlier attempts at the same step, whose replies never reached a checkpoint: they count as spent."""
    cancelled_by: str
    """Who cancelled the run meanwhile; then no row was opened and no call may be made."""
    full: Share | None = None
    """The budget that had less left than was asked for; then no row was opened either."""


class Spend:
    """The attempts. A settlement waits in memory for the next transaction that this object opens, which saves a commit.

    A process that dies in between leaves its row open: the attempt counts as its worst case, never as nothing.
    """

    def __init__(self, database: Database, clock: Callable[[], float], budgets: Budgets) -> None:
        """Put the attempts over their table."""
        self._database = database
        self._clock = clock
        self._budgets = budgets
        self._waiting: list[_Settlement] = []
        # Not the database's lock: an event loop that settles would wait for another thread's commit.
        self._waiting_lock = threading.Lock()

    def open(
        self,
        run_id: str,
        step: int,
        *,
        model: str,
        estimate: Tokens,
        cost_nano: int,
        shares: Sequence[Share] = (),
        call: str = "",
    ) -> Opened:
        """Open a row for an attempt that is about to be made, and reserve its worst case of the budgets.

        Both are one transaction, committed before this returns.

        Args:
            run_id: Of the run.
            step: Of the run.
            model: Or the tool.
            estimate: The worst case, in tokens.
            cost_nano: Likewise, in nano-dollars.
            shares: Of the budgets that the attempt is charged to.
            call: The place of a tool call; empty for an attempt at a model.
        """
        ordered = sorted(shares, key=lambda share: share.id)
        attempt = {
            "run_id": run_id,
            "step": step,
            "model": model,
            "input_tokens": estimate.input,
            "output_tokens": estimate.output,
            "cost_nano": cost_nano,
            "call": call,
            "charges": json.dumps([share.id for share in ordered]) if shares else "",
            "now": self._clock(),
        }
        # The calls of a turn are opened at one time, and each counts the rows that are there: one after the other.
        is_alone = not (shares or call)
        full, opened = (None, self._open_alone(attempt)) if is_alone else self._open_charged(ordered, attempt)
        if full is not None:
            return Opened(0, (), "", full)
        number = opened[0]["attempt"] if opened else 0
        if number == 1:
            return Opened(1, (), "")
        rows = self._database.query("attempts_of_step", run_id=run_id, step=step, call=call)
        lost = [one for one in map(_attempt, rows) if one.number != number]
        return Opened(number, lost, "" if opened else self._cancelled_by(run_id))

    def _open_alone(self, attempt: dict[str, Any]) -> list[Row]:
        """Open the attempt; where two workers count the same rows at one time, the second counts again."""
        while True:
            opened = self._with_waiting(attempt)
            if opened or self._cancelled_by(attempt["run_id"]):
                return opened

    def _cancelled_by(self, run_id: str) -> str:
        rows = self._database.query("find_run", id=run_id)
        return str(rows[0]["cancel_by"]) if rows else ""

    def _open_charged(self, shares: Sequence[Share], attempt: dict[str, Any]) -> tuple[Share | None, list[Row]]:
        """Reserve of budgets and open the attempt, or neither; returns the share that is full, and the rows."""
        tokens, cost = attempt["input_tokens"] + attempt["output_tokens"], attempt["cost_nano"]
        waiting = self._take()
        try:
            with self._database.serial():  # so that no two wait for each other's budgets
                self._store(waiting)
                full = self._budgets.reserve(shares, tokens, cost)
                if full is not None:
                    return full, []
                opened = self._database.write("open_attempt", **attempt)
                if not opened:
                    for share in shares:
                        self._budgets.change(share.id, -tokens, -cost)
                return None, opened
        except BaseException:
            self._put_back(waiting)
            raise

    def settle(
        self, run_id: str, step: int, number: int, *, tokens: Tokens, cost_nano: int, back: GiveBack | None = None
    ) -> None:
        """Keep the real figures of an attempt; stored with the next transaction, at the latest by `flush`.

        Args:
            run_id: Of the run.
            step: Of the run.
            number: Of the attempt.
            tokens: What it really took.
            cost_nano: What it really cost.
            back: What was reserved of which budgets; what was not used is given back.
        """
        charges = back.charges(tokens, cost_nano) if back is not None else ()
        with self._waiting_lock:
            self._waiting.append(_Settlement(run_id, step, number, tokens, cost_nano, charges))

    def flush(self) -> None:
        """Store the settlements that wait; joins the open transaction."""
        self._with_waiting(None)

    @contextmanager
    def flushed(self) -> Generator[None]:
        """Run a block in one transaction with the settlements that wait; when it fails, they wait on."""
        waiting = self._take()
        try:
            with self._database.serial():
                self._store(waiting)
                yield
        except BaseException:
            self._put_back(waiting)
            raise

    def _with_waiting(self, attempt: dict[str, Any] | None) -> list[Row]:
        """Store the settlements that wait, then open an attempt if there is one, in one transaction."""
        waiting = self._take()
        opening: list[Call] = [("open_attempt", attempt)] if attempt is not None else []
        if not (waiting or opening):
            return []
        try:
            if any(one.charges for one in waiting):
                with self._database.serial():
                    self._store(waiting)
                    return self._database.together(opening)[-1] if opening else []
            settling: list[Call] = [("settle_attempt", one.values()) for one in waiting]
            return self._database.together([*settling, *opening])[-1]
        except BaseException:
            self._put_back(waiting)
            raise

    def _take(self) -> list[_Settlement]:
        with self._waiting_lock:
            waiting, self._waiting = self._waiting, []
        return waiting

    def _put_back(self, waiting: list[_Settlement]) -> None:
        with self._waiting_lock:
            self._waiting = waiting + self._waiting

    def _store(self, waiting: Sequence[_Settlement]) -> None:
        for one in waiting:
            settled = self._database.write("settle_attempt", **one.values())
            for share_id, tokens, cost_nano in one.charges if settled else ():
                self._budgets.change(share_id, tokens, cost_nano)

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
