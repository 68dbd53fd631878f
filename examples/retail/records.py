"""What the shop's books hold: users, products, orders. Amounts are whole cents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Address:
    """Where somebody lives, or something goes."""

    address1: str
    address2: str
    city: str
    state: str
    country: str
    zip: str


@dataclass(frozen=True, slots=True)
class Method:
    """A way to pay that a user has stored."""

    method_id: str
    source: str
    """`credit_card`, `gift_card` or `paypal`."""
    brand: str | None = None
    last_four: str | None = None
    balance: int | None = None
    """Of a gift card."""


@dataclass(frozen=True, slots=True)
class User:
    """A customer."""

    user_id: str
    first_name: str
    last_name: str
    email: str
    address: Address
    methods: Mapping[str, Method]
    orders: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Variant:
    """One item that is sold: a product with its options chosen."""

    item_id: str
    product_id: str
    options: Mapping[str, str]
    available: bool
    price: int


@dataclass(frozen=True, slots=True)
class Product:
    """A type of product, and its variants by item id."""

    product_id: str
    name: str
    variants: Mapping[str, Variant]


@dataclass(frozen=True, slots=True)
class Item:
    """A position of an order, at the price that was paid."""

    item_id: str
    product_id: str
    name: str
    options: Mapping[str, str]
    price: int


@dataclass(frozen=True, slots=True)
class Payment:
    """Money that moved for an order."""

    kind: str
    """`payment` or `refund`."""
    amount: int
    method_id: str


@dataclass(frozen=True, slots=True)
class Order:
    """An order as the books have it."""

    order_id: str
    user_id: str
    status: str
    address: Address
    items: tuple[Item, ...]
    payments: tuple[Payment, ...]
    fulfillments: tuple[Mapping[str, object], ...] = ()
    notes: Mapping[str, object] = field(default_factory=dict[str, object])


def money(cents: int) -> str:
    """Write an amount as dollars: `47.84`."""
    sign, cents = ("-", -cents) if cents < 0 else ("", cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"
