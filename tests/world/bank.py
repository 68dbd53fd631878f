"""A bank that would pay twice if it were asked twice: what crosses it is counted, in a file of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

from loopwright import Effect, happened, not_happened, tool
from loopwright.state import Happened, NotHappened
from loopwright.tools import Tool


class Bank:
    """Every payment adds a row, whatever its key, so that a second one can be seen; unless the caller wants it once."""

    def __init__(self, path: Path) -> None:
        """Open the bank, and build it if it is not there."""
        self.path = path
        with closing(self._connect()) as connection:
            connection.execute("create table if not exists payments (key text, order_id text, amount integer)")
            connection.execute("create table if not exists requests (key text)")

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=30, isolation_level=None)

    def pay(self, key: str, order_id: str, amount: int, *, once: bool = False) -> None:
        """Pay, or, for one who wants it once, find that this key was paid; committed before this returns."""
        with closing(self._connect()) as connection:
            connection.execute("begin immediate")
            connection.execute("insert into requests values (?)", (key,))
            paid = connection.execute("select 1 from payments where key = ?", (key,)).fetchone()
            if not (once and paid):
                connection.execute("insert into payments values (?, ?, ?)", (key, order_id, amount))
            connection.execute("commit")

    def payments(self) -> list[tuple[str, int]]:
        """Return what was paid: order and amount."""
        with closing(self._connect()) as connection:
            return connection.execute("select order_id, amount from payments order by rowid").fetchall()

    def keys(self) -> list[str]:
        """Return the idempotency key of each request, also of one that paid nothing."""
        with closing(self._connect()) as connection:
            return [row[0] for row in connection.execute("select key from requests order by rowid")]

    def verify(self, effect: Effect, args: Mapping[str, Any]) -> Happened | NotHappened | None:
        """Look whether a payment happened."""
        found = effect.key in self.keys()
        return happened(f"paid {args['amount']} for {args['order_id']}") if found else not_happened()


def nothing() -> None:
    """Do nothing."""


def build_pay(
    bank: Bank,
    *,
    effect: Literal["idempotent", "write"] = "write",
    verify: bool = False,
    before: Callable[[], None] = nothing,
    after: Callable[[], None] = nothing,
    timeout: float = 30.0,
    key: str = "",
) -> Tool:
    """Build the tool that pays; `before` and `after` stand around the row that it writes."""

    @tool(effect=effect, verify=bank.verify if verify else None, timeout=timeout, key=key)
    def pay(order_id: str, amount: int, effect_handle: Effect) -> str:
        """Pay money back for an order, by its code. Use it only after the policy was checked."""
        before()
        bank.pay(effect_handle.key, order_id, amount, once=effect == "idempotent")
        after()
        return f"paid {amount} for {order_id}"

    return pay


@tool(effect="read")
def look_up(order_id: str) -> dict[str, str]:
    """Look up an order by its code. Returns its status."""
    return {"order_id": order_id, "status": "DELIVERED"}
