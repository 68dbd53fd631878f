"""What the shop's rows are, and how they are read and written. The tables stand in `shop.sql`."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

__all__ = [
    "Escalation",
    "KeyReused",
    "Order",
    "Policy",
    "Refund",
    "Refused",
    "ShopError",
    "as_order",
    "find_order",
    "find_refund",
    "order_values",
    "same_row",
    "sum_refunded",
]

_Row = TypeVar("_Row", "Refund", "Escalation")


class ShopError(Exception):
    """The shop cannot do what was asked."""


class Refused(ShopError):
    """The shop's books don't allow the refund: nothing was paid."""


class KeyReused(ShopError):
    """An earlier row stands under this key, with other values: nothing was written now."""


@dataclass(frozen=True, slots=True)
class Order:
    """One order. `total` is in the currency's smallest unit; `note` is text that a customer may have written."""

    order_id: str
    status: str
    total: int
    ordered_at: date
    delivered_at: date | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Refund:
    """Money paid back under one idempotency key. An empty `account` means the one that paid."""

    key: str
    order_id: str
    amount: int
    account: str
    paid_at: str


@dataclass(frozen=True, slots=True)
class Escalation:
    """Something handed over to a person, under one idempotency key."""

    key: str
    reason: str
    created_at: str


@dataclass(frozen=True, slots=True)
class Policy:
    """When an order may be refunded: in this status, and so many days after its delivery at most."""

    within_days: int
    status: str


def find_order(db: sqlite3.Connection, order_id: str) -> Order | None:
    """Find an order by its code, in any case of its letters."""
    row = db.execute("SELECT * FROM orders WHERE order_id = ?", [order_id]).fetchone()
    return None if row is None else as_order(row)


def as_order(row: tuple[str, str, int, str, str | None, str]) -> Order:
    """Read a row of `orders`."""
    order_id, status, total, ordered, delivered, note = row
    arrived = None if delivered is None else date.fromisoformat(delivered)
    return Order(order_id, status, total, date.fromisoformat(ordered), arrived, note)


def order_values(order: Order) -> list[str | int | None]:
    """Return an order as the columns of `orders`."""
    arrived = None if order.delivered_at is None else order.delivered_at.isoformat()
    return [order.order_id, order.status, order.total, order.ordered_at.isoformat(), arrived, order.note]


def find_refund(db: sqlite3.Connection, key: str) -> Refund | None:
    """Find the refund under a key."""
    row = db.execute("SELECT * FROM refunds WHERE key = ?", [key]).fetchone()
    return None if row is None else Refund(*row)


def sum_refunded(db: sqlite3.Connection, order_id: str) -> int:
    """Add up what was paid back of an order."""
    row = db.execute("SELECT COALESCE(SUM(amount), 0) FROM refunds WHERE order_id = ?", [order_id]).fetchone()
    return int(row[0])


def same_row(kept: _Row, asked: _Row) -> _Row:
    """Return the row that is kept, if it says what was asked.

    Raises:
        KeyReused: if it does not.
    """
    if kept != asked:
        raise KeyReused(f"key {kept.key} stands for {kept}")
    return kept
