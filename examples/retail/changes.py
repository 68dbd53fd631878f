"""What may be done to an order, and what it becomes: the rules of the shop as pure functions.

Each takes the order as it stands and returns a `Change`, or raises `Refused` with the reason in words for the customer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from .records import Address, Item, Method, Order, Payment, User, Variant, money

Variants = Mapping[str, Variant]
"""What is sold, by item id."""
CANCEL_REASONS = ("no longer needed", "ordered by mistake")


class Refused(Exception):
    """The shop does not do it; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Change:
    """What becomes of an order, and of gift cards."""

    order: Order
    balances: Mapping[str, int] = field(default_factory=dict[str, int])
    """By gift card, the cents that are added to it."""


@dataclass(frozen=True, slots=True)
class Swap:
    """Other variants in the place of items."""

    item_ids: Sequence[str]
    new_item_ids: Sequence[str]
    """One for each, in the same order."""
    method_id: str
    """Pays the difference, or gets it back."""


def cancel(order: Order, user: User, reason: str) -> Change:
    """Cancel a pending order: all that was paid goes back the way it came."""
    _require_status(order, "pending", "cancelled")
    if reason not in CANCEL_REASONS:
        raise Refused(f"{reason!r} is no reason to cancel; it is one of: {', '.join(CANCEL_REASONS)}")
    refunds = [Payment("refund", amount, method_id) for method_id, amount in _paid(order).items()]
    cancelled = replace(
        order,
        status="cancelled",
        payments=(*order.payments, *refunds),
        notes={**order.notes, "cancel_reason": reason},
    )
    back = [(refund.method_id, refund.amount) for refund in refunds]
    return Change(cancelled, _on_gift_cards(user, back))


def change_address(order: Order, address: Address) -> Change:
    """Send a pending order elsewhere."""
    _require_status(order, "pending", "sent elsewhere")
    return Change(replace(order, address=address))


def change_payment(order: Order, user: User, method_id: str) -> Change:
    """Pay for a pending order in another way: the first payment goes back."""
    _require_status(order, "pending", "paid in another way")
    paid = _only_payment(order)
    if paid.method_id == method_id:
        raise Refused(f"the order is paid by {method_id} already")
    method = _method(user, method_id)
    _require_balance(method, paid.amount)
    moved = (Payment("payment", paid.amount, method_id), Payment("refund", paid.amount, paid.method_id))
    changed = replace(order, payments=(*order.payments, *moved))
    return Change(changed, _on_gift_cards(user, [(method_id, -paid.amount), (paid.method_id, paid.amount)]))


def change_items(order: Order, user: User, variants: Variants, swap: Swap) -> Change:
    """Put other variants into a pending order, once: the difference is paid, or paid back, at once."""
    _require_status(order, "pending", "changed")
    method = _method(user, swap.method_id)
    pairs = _pairs(order, variants, swap)
    difference = sum(new.price - old.price for old, new in pairs)
    _require_balance(method, difference)
    moved = [Payment("payment" if difference > 0 else "refund", abs(difference), swap.method_id)] if difference else []
    changed = replace(
        order,
        status="pending (items modified)",
        items=_with_new_items(order.items, pairs),
        payments=(*order.payments, *moved),
    )
    return Change(changed, _on_gift_cards(user, [(swap.method_id, -difference)]))


def return_items(order: Order, user: User, item_ids: Sequence[str], method_id: str) -> Change:
    """Take back items of a delivered order; the money goes back the way it came, or onto a gift card."""
    _require_status(order, "delivered", "returned")
    method = _method(user, method_id)
    if method.source != "gift_card" and method_id not in _paid(order):
        raise Refused(f"{method_id} did not pay for this order: the refund goes to what did, or to a gift card")
    _require_items(order, item_ids)
    notes = {**order.notes, "return_items": sorted(item_ids), "return_payment_method_id": method_id}
    return Change(replace(order, status="return requested", notes=notes))


def exchange_items(order: Order, user: User, variants: Variants, swap: Swap) -> Change:
    """Take back items of a delivered order and send other variants of them, once."""
    _require_status(order, "delivered", "exchanged")
    method = _method(user, swap.method_id)
    pairs = _pairs(order, variants, swap)
    difference = sum(new.price - old.price for old, new in pairs)
    _require_balance(method, difference)
    notes = {
        **order.notes,
        "exchange_items": sorted(swap.item_ids),
        "exchange_new_items": sorted(swap.new_item_ids),
        "exchange_payment_method_id": swap.method_id,
        "exchange_price_difference": money(difference),
    }
    return Change(replace(order, status="exchange requested", notes=notes))


def _require_status(order: Order, status: str, done: str) -> None:
    if order.status != status:
        raise Refused(f"order {order.order_id} is {order.status}: only a {status} one can be {done}")


def _only_payment(order: Order) -> Payment:
    if len(order.payments) != 1 or order.payments[0].kind != "payment":
        raise Refused(f"order {order.order_id} was paid in more than one part; its payment cannot be changed")
    return order.payments[0]


def _paid(order: Order) -> dict[str, int]:
    """Return the ways in which the order is paid, with their cents, less what went back already."""
    paid: Counter[str] = Counter()
    for one in order.payments:
        paid[one.method_id] += one.amount if one.kind == "payment" else -one.amount
    return {method_id: amount for method_id, amount in paid.items() if amount > 0}


def _method(user: User, method_id: str) -> Method:
    method = user.methods.get(method_id)
    if method is None:
        raise Refused(f"{user.user_id} has no payment method {method_id}")
    return method


def _require_balance(method: Method, amount: int) -> None:
    if method.balance is not None and method.balance < amount:
        text = f"gift card {method.method_id} holds {money(method.balance)}, which does not cover {money(amount)}"
        raise Refused(text)


def _require_items(order: Order, item_ids: Sequence[str]) -> None:
    if not item_ids:
        raise Refused("name at least one item")
    there = Counter(item.item_id for item in order.items)
    missing = Counter(item_ids) - there
    if missing:
        raise Refused(f"order {order.order_id} does not have so many of: {', '.join(missing)}")


def _pairs(order: Order, variants: Variants, swap: Swap) -> list[tuple[Item, Variant]]:
    """Return each item with the variant that takes its place."""
    olds, news = swap.item_ids, swap.new_item_ids
    _require_items(order, olds)
    if len(olds) != len(news):
        raise Refused(f"{len(olds)} items, but {len(news)} new ones: give one new item for each")
    if same := next((old for old, new in zip(olds, news, strict=True) if old == new), ""):
        raise Refused(f"{same} would be changed into itself")
    items = [_item(order, old) for old in olds]
    return [(item, _variant(item, variants, new)) for item, new in zip(items, news, strict=True)]


def _item(order: Order, item_id: str) -> Item:
    return next(item for item in order.items if item.item_id == item_id)


def _variant(item: Item, variants: Variants, new_id: str) -> Variant:
    new = variants.get(new_id)
    if new is None or new.product_id != item.product_id:
        raise Refused(f"{new_id} is no variant of {item.name}, and one product cannot be changed into another")
    if not new.available:
        raise Refused(f"{new_id} is not available")
    return new


def _with_new_items(items: Iterable[Item], pairs: Sequence[tuple[Item, Variant]]) -> tuple[Item, ...]:
    waiting = [*pairs]
    changed: list[Item] = []
    for item in items:
        pair = next((pair for pair in waiting if pair[0].item_id == item.item_id), None)
        if pair is None:
            changed.append(item)
            continue
        waiting.remove(pair)
        new = pair[1]
        changed.append(replace(item, item_id=new.item_id, options=new.options, price=new.price))
    return tuple(changed)


def _on_gift_cards(user: User, moves: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return what is added to gift cards: money on them moves at once, all else takes its days at a bank."""
    added: Counter[str] = Counter()
    for method_id, amount in moves:
        if user.methods[method_id].source == "gift_card":
            added[method_id] += amount
    return {method_id: amount for method_id, amount in added.items() if amount}
