"""Order support's own small database: orders, the refunds paid on them, and what was handed to a person.

It stands for the shop that an agent works for. Nothing of loopwright's is stored in it.
"""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import astuple
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from .shop_rows import (
    Escalation,
    KeyReused,
    Order,
    Policy,
    Refund,
    Refused,
    ShopError,
    as_order,
    find_order,
    find_refund,
    order_values,
    same_row,
    sum_refunded,
)

__all__ = ["Escalation", "KeyReused", "Order", "Policy", "Refund", "Refused", "Shop", "ShopError", "open_shop"]

_SCHEMA_VERSION = 1
_BUSY_SECONDS = 10.0
_POLL_SECONDS = 0.02


class Shop:
    """The shop in one SQLite file; its first use creates and fills the file.

    Each call opens a connection of its own, so one object serves any number of threads and processes.
    """

    def __init__(self, path: str | Path, *, now: Callable[[], datetime] | None = None) -> None:
        self.path = Path(path)
        self._now = now or (lambda: datetime.now(UTC))

    @classmethod
    def default(cls) -> Shop:
        """The shop that `LOOPWRIGHT_SHOP` names, else `.loopwright/shop.db` of the current folder."""
        named = os.environ.get("LOOPWRIGHT_SHOP")
        if named:
            return cls(named)
        folder = Path.cwd() / ".loopwright"
        folder.mkdir(exist_ok=True)
        return cls(folder / "shop.db")

    def order(self, order_id: str) -> Order | None:
        """Find an order by its code, in any case of its letters."""
        with self._reading() as db:
            return find_order(db, order_id)

    def orders(self) -> list[Order]:
        """All orders, by code."""
        with self._reading() as db:
            return [as_order(row) for row in db.execute("SELECT * FROM orders ORDER BY order_id")]

    def policy(self) -> Policy:
        """The refund policy in force."""
        with self._reading() as db:
            return Policy(*db.execute("SELECT within_days, status FROM policy").fetchone())

    def refunds(self) -> list[Refund]:
        """All refunds, in the order in which they were paid."""
        with self._reading() as db:
            return [Refund(*row) for row in db.execute("SELECT * FROM refunds ORDER BY rowid")]

    def refund_by_key(self, key: str) -> Refund | None:
        """The refund that was paid under this key, if any."""
        with self._reading() as db:
            return find_refund(db, key)

    def refunded(self, order_id: str) -> int:
        """How much of an order was paid back so far."""
        with self._reading() as db:
            return sum_refunded(db, order_id)

    def escalations(self) -> list[Escalation]:
        """All that was handed to a person, oldest first."""
        with self._reading() as db:
            return [Escalation(*row) for row in db.execute("SELECT * FROM escalations ORDER BY rowid")]

    def refund(self, key: str, order_id: str, amount: int, account: str = "") -> Refund:
        """Pay money back, once a key: the same key and values again return the first receipt.

        Raises:
            Refused: if there is no such order, or the amount is not positive or more than what is left of the total.
            KeyReused: if the key stands for a refund with other values.
        """
        with self._writing() as db:
            order = find_order(db, order_id)
            if order is None:
                raise Refused(f"there is no order {order_id}")
            paid = find_refund(db, key)
            if paid is not None:
                return same_row(paid, Refund(key, order.order_id, amount, account, paid.paid_at))
            _check_amount(db, order, amount)
            refund = Refund(key, order.order_id, amount, account, self._now().isoformat())
            db.execute("INSERT INTO refunds VALUES (?, ?, ?, ?, ?)", astuple(refund))
            return refund

    def escalate(self, key: str, reason: str) -> Escalation:
        """Hand over to a person, once a key: the same key and reason again return the first row.

        Raises:
            KeyReused: if the key stands for another reason.
        """
        with self._writing() as db:
            fresh = Escalation(key, reason, self._now().isoformat())
            db.execute("INSERT INTO escalations VALUES (?, ?, ?) ON CONFLICT DO NOTHING", astuple(fresh))
            kept = Escalation(*db.execute("SELECT * FROM escalations WHERE key = ?", [key]).fetchone())
            return same_row(kept, Escalation(key, reason, kept.created_at))

    def add_order(self, order: Order) -> None:
        """Put a new order into the books.

        Raises:
            ShopError: if its code is taken, in any case of its letters.
        """
        with self._writing() as db:
            if find_order(db, order.order_id) is not None:
                raise ShopError(f"there is an order {order.order_id} already")
            db.execute("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?)", order_values(order))

    def update_order(self, order: Order) -> None:
        """Replace what the books say about an order.

        Raises:
            ShopError: if there is none with its code.
        """
        with self._writing() as db:
            if find_order(db, order.order_id) is None:
                raise ShopError(f"there is no order {order.order_id}")
            columns = "status = ?, total = ?, ordered_at = ?, delivered_at = ?, note = ?"
            db.execute(
                f"UPDATE orders SET {columns} WHERE order_id = ?",  # noqa: S608 -- a constant, no input
                [*order_values(order)[1:], order.order_id],
            )

    def set_policy(self, policy: Policy) -> None:
        """Put another refund policy in force."""
        with self._writing() as db:
            db.execute("UPDATE policy SET within_days = ?, status = ?", [policy.within_days, policy.status])

    @contextmanager
    def _reading(self) -> Generator[sqlite3.Connection]:
        try:
            with closing(self._connect()) as db:
                yield db
        except sqlite3.Error as error:
            raise ShopError(f"the shop's database {self.path} cannot be used: {error}") from error

    @contextmanager
    def _writing(self) -> Generator[sqlite3.Connection]:
        with self._reading() as db:
            db.execute("BEGIN IMMEDIATE")
            yield db
            db.execute("COMMIT")  # on an error the connection closes without it, and nothing was written

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            if _version(db) < _SCHEMA_VERSION:
                _use_wal(db)
                db.executescript(_schema())
        except BaseException:
            db.close()
            raise
        return db


def open_shop() -> Shop:
    """The default shop; where it lies is decided at the call (see `Shop.default`)."""
    return Shop.default()


def _use_wal(db: sqlite3.Connection) -> None:
    """Switch the file's journal; SQLite does not wait for other processes here, whatever its timeout says."""
    give_up = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > give_up:
                raise
            time.sleep(_POLL_SECONDS)
        else:
            return


@cache
def _schema() -> str:
    return Path(__file__).with_name("shop.sql").read_text(encoding="utf-8")


def _version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _check_amount(db: sqlite3.Connection, order: Order, amount: int) -> None:
    if amount <= 0:
        raise Refused(f"a refund must be more than 0, not {amount}")
    left = order.total - sum_refunded(db, order.order_id)
    if amount > left:
        raise Refused(f"{amount} is more than the {left} that is left to refund of order {order.order_id}")
