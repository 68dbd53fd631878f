"""The shop's tools: what an agent may look up, and what it may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Literal

from loopwright import Effect, NotDone, happened, not_happened, tool
from loopwright.state import Happened, NotHappened
from loopwright.tools import Tool
from loopwright.tools import calculate as calculated

from . import changes
from .books import Books, KeyReused
from .records import Address, Item, Method, Order, Product, User, Variant, money

Shop = Callable[[], Books]
"""Opens the books; called at each use, so that a process that is killed leaves nothing open."""

CHANGES = (
    "cancel_pending_order",
    "modify_pending_order_address",
    "modify_pending_order_items",
    "modify_pending_order_payment",
    "modify_user_address",
    "return_delivered_order_items",
    "exchange_delivered_order_items",
)
"""The tools that change what the shop holds."""


class NotFound(LookupError):
    """The shop has no such thing."""


def retail_tools(shop: Shop) -> list[Tool]:
    """Build the tools over a shop."""
    return [*_finding(shop), *_looking(shop), *_changing_orders(shop), *_exchanging(shop), *_around(shop)]


def _finding(shop: Shop) -> list[Tool]:
    @tool(effect="read")
    def find_user_id_by_email(email: str) -> str:
        """Find a customer's user id by e-mail address.

        Use it first, to know who you talk to; not when the customer has no e-mail at hand: then find them by name.
        """
        return shop().user_by_email(email) or _missing("there is no customer with this e-mail address")

    @tool(effect="read")
    def find_user_id_by_name_zip(first_name: str, last_name: str, zip: str) -> str:  # noqa: A002 -- what customers call it
        """Find a customer's user id by first name, last name and postal code.

        Use it first, to know who you talk to, when the customer can't be found by e-mail; not for other people.
        """
        return shop().user_by_name(first_name, last_name, zip) or _missing("there is no such customer at this zip")

    return [find_user_id_by_email, find_user_id_by_name_zip]


def _looking(shop: Shop) -> list[Tool]:
    @tool(effect="read")
    def get_user_details(user_id: str) -> dict[str, Any]:
        """Look up a customer: name, e-mail, default address, ways to pay, and the ids of their orders.

        Use it once you know who you talk to; not for anybody else.
        """
        return _show_user(shop().user(user_id) or _missing(f"there is no user {user_id}"))

    @tool(effect="read")
    def get_order_details(order_id: str) -> dict[str, Any]:
        """Look up an order by its id, which begins with #W: status, address, items, payments, shipments.

        Use it before you say anything about an order, or change it; not to search: it finds one order only.
        """
        return _show_order(shop().order(order_id) or _missing(f"there is no order {order_id}"))

    @tool(effect="read")
    def get_product_details(product_id: str) -> dict[str, Any]:
        """Look up a product by its product id: its name, and each variant with its options, price and availability.

        Use it to find the item id of a variant; not with an item id, which is another kind of number.
        """
        return _show_product(shop().product(product_id) or _missing(f"there is no product {product_id}"))

    @tool(effect="read")
    def get_item_details(item_id: str) -> dict[str, Any]:
        """Look up one variant by its item id: its options, price and availability.

        Use it for an item of an order; not with a product id, which is another kind of number.
        """
        return _show_variant(shop().item(item_id) or _missing(f"there is no item {item_id}"))

    @tool(effect="read")
    def list_all_product_types() -> dict[str, str]:
        """List the products that the shop sells: their product ids by name.

        Use it when the customer asks what there is; not for the variants of a product.
        """
        return shop().product_ids()

    return [get_user_details, get_order_details, get_product_details, get_item_details, list_all_product_types]


def _changing_orders(shop: Shop) -> list[Tool]:
    did_it = _verifier(shop)

    @tool(effect="write", verify=did_it)
    def cancel_pending_order(
        order_id: str, reason: Literal["no longer needed", "ordered by mistake"], *, effect: Effect
    ) -> dict[str, Any]:
        """Cancel a pending order; all of it is paid back.

        Use it when the customer has confirmed the order and the reason; not for an order that was processed.
        """
        args = {"order_id": order_id, "reason": reason}
        return _change(shop, effect, "cancel_pending_order", args, lambda o, u, _: changes.cancel(o, u, reason))

    @tool(effect="write", verify=did_it)
    def modify_pending_order_address(
        *,
        order_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,  # noqa: A002 -- what customers call it
        effect: Effect,
    ) -> dict[str, Any]:
        """Send a pending order to another address.

        Use it when the customer has confirmed the whole address; not for the customer's own default address.
        """
        to = Address(address1, address2, city, state, country, zip)
        args = {"order_id": order_id, **asdict(to)}
        name = "modify_pending_order_address"
        return _change(shop, effect, name, args, lambda o, _u, _v: changes.change_address(o, to))

    @tool(effect="write", verify=did_it)
    def modify_pending_order_payment(order_id: str, payment_method_id: str, *, effect: Effect) -> dict[str, Any]:
        """Pay for a pending order in another of the customer's ways.

        Use it when the customer has confirmed the order and the way to pay; not for a part of the order.
        """
        args = {"order_id": order_id, "payment_method_id": payment_method_id}
        name = "modify_pending_order_payment"
        return _change(shop, effect, name, args, lambda o, u, _: changes.change_payment(o, u, payment_method_id))

    @tool(effect="write", verify=did_it)
    def return_delivered_order_items(
        order_id: str, item_ids: list[str], payment_method_id: str, *, effect: Effect
    ) -> dict[str, Any]:
        """Take back items of a delivered order; an item that is there twice is named twice.

        Use it when the customer has confirmed the items and where the money goes; not to exchange them.
        """
        args = {"order_id": order_id, "item_ids": item_ids, "payment_method_id": payment_method_id}
        name = "return_delivered_order_items"
        return _change(
            shop, effect, name, args, lambda o, u, _: changes.return_items(o, u, item_ids, payment_method_id)
        )

    return [
        cancel_pending_order,
        modify_pending_order_address,
        modify_pending_order_payment,
        return_delivered_order_items,
    ]


def _exchanging(shop: Shop) -> list[Tool]:
    did_it = _verifier(shop)

    @tool(effect="write", verify=did_it)
    def modify_pending_order_items(
        order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str, *, effect: Effect
    ) -> dict[str, Any]:
        """Put other variants into a pending order; can be done once, and nothing of the order can be changed after it.

        Use it when the customer has confirmed that these are all items to be changed; not for another product.
        """
        swap = changes.Swap(item_ids, new_item_ids, payment_method_id)
        name = "modify_pending_order_items"
        return _change(
            shop, effect, name, _swapped(order_id, swap), lambda o, u, v: changes.change_items(o, u, v, swap)
        )

    @tool(effect="write", verify=did_it)
    def exchange_delivered_order_items(
        order_id: str, item_ids: list[str], new_item_ids: list[str], payment_method_id: str, *, effect: Effect
    ) -> dict[str, Any]:
        """Exchange items of a delivered order for other variants of the same products; can be done once.

        Use it when the customer has confirmed that these are all items to be exchanged; not for another product.
        """
        swap = changes.Swap(item_ids, new_item_ids, payment_method_id)
        name = "exchange_delivered_order_items"
        return _change(
            shop, effect, name, _swapped(order_id, swap), lambda o, u, v: changes.exchange_items(o, u, v, swap)
        )

    return [modify_pending_order_items, exchange_delivered_order_items]


def _around(shop: Shop) -> list[Tool]:
    did_it = _verifier(shop)

    @tool(effect="write", verify=did_it)
    def modify_user_address(
        *,
        user_id: str,
        address1: str,
        address2: str,
        city: str,
        state: str,
        country: str,
        zip: str,  # noqa: A002 -- what customers call it
        effect: Effect,
    ) -> dict[str, Any]:
        """Change a customer's default address.

        Use it when the customer has confirmed the whole address; not for an order that is on its way already.
        """
        to = Address(address1, address2, city, state, country, zip)
        name, args = "modify_user_address", {"user_id": user_id, **asdict(to)}
        try:
            return shop().change_user_address(effect.key, name, args, to)
        except (changes.Refused, KeyReused) as refusal:
            raise NotDone(f"nothing was changed: {refusal}") from refusal

    @tool(effect="idempotent", hands_over=True)
    def transfer_to_human_agents(summary: str, *, effect: Effect) -> str:
        """Hand the conversation over to a person, with a summary of what the customer wants.

        Use it only when no other tool can do what is asked; not before you have tried.
        """
        shop().hand_over(effect.key, summary)
        return "A person takes over."

    @tool(effect="read")
    def calculate(expression: str) -> str:
        """Calculate an arithmetic expression exactly, such as `3131.10 + 4777.75`.

        Use it for every sum and difference of prices instead of doing it yourself; not for anything but numbers.
        """
        return calculated(expression)

    return [modify_user_address, transfer_to_human_agents, calculate]


def _verifier(shop: Shop) -> Callable[[Effect, Mapping[str, Any]], Happened | NotHappened | None]:
    """Return a hook that looks into the books whether a change was made, when nobody knows."""

    def was_changed(effect: Effect, args: Mapping[str, Any]) -> Happened | NotHappened | None:
        change = shop().change(effect.key)
        if change is None:
            return not_happened()
        return happened(change["result"]) if change["args"] == dict(args) else None

    return was_changed


def _change(
    shop: Shop,
    effect: Effect,
    name: str,
    args: Mapping[str, Any],
    rule: Callable[[Order, User, Mapping[str, Variant]], changes.Change],
) -> dict[str, Any]:
    try:
        return shop().change_order(effect.key, name, args, rule)
    except (changes.Refused, KeyReused) as refusal:
        raise NotDone(f"nothing was changed: {refusal}") from refusal


def _swapped(order_id: str, swap: changes.Swap) -> dict[str, Any]:
    """Return the arguments of a swap as the books keep them."""
    items = {"item_ids": swap.item_ids, "new_item_ids": swap.new_item_ids}
    return {"order_id": order_id, **items, "payment_method_id": swap.method_id}


def _missing(text: str) -> Any:
    raise NotFound(text)


def _show_user(user: User) -> dict[str, Any]:
    return {
        "user_id": user.user_id,
        "name": {"first_name": user.first_name, "last_name": user.last_name},
        "email": user.email,
        "address": asdict(user.address),
        "payment_methods": {name: _show_method(method) for name, method in user.methods.items()},
        "orders": [*user.orders],
    }


def _show_method(method: Method) -> dict[str, Any]:
    told = {"source": method.source, "brand": method.brand, "last_four": method.last_four}
    if method.balance is not None:
        told["balance"] = money(method.balance)
    return {name: value for name, value in told.items() if value is not None}


def _show_order(order: Order) -> dict[str, Any]:
    return {
        "order_id": order.order_id,
        "user_id": order.user_id,
        "status": order.status,
        "address": asdict(order.address),
        "items": [_show_item(item) for item in order.items],
        "payments": [
            {"kind": paid.kind, "amount": money(paid.amount), "payment_method_id": paid.method_id}
            for paid in order.payments
        ],
        "fulfillments": [*order.fulfillments],
        **order.notes,
    }


def _show_item(item: Item) -> dict[str, Any]:
    return {
        "name": item.name,
        "item_id": item.item_id,
        "product_id": item.product_id,
        "options": dict(item.options),
        "price": money(item.price),
    }


def _show_product(product: Product) -> dict[str, Any]:
    variants = [_show_variant(variant) for variant in product.variants.values()]
    return {"product_id": product.product_id, "name": product.name, "variants": variants}


def _show_variant(variant: Variant) -> dict[str, Any]:
    return {
        "item_id": variant.item_id,
        "options": dict(variant.options),
        "available": variant.available,
        "price": money(variant.price),
    }
