"""Who may change what: the shop's policy as rules.

Each change asks a person, unless its customer has just said yes to a message that listed all of it; nothing of another
customer is ever changed, or told.
"""

from __future__ import annotations

from loopwright import ProposedCall, allow, ask, confirmed, deny
from loopwright.policy import Rule

from .tools import Shop

_ADDRESS = ("address1", "address2", "city", "state", "country", "zip")
CONFIRMED = {
    "cancel_pending_order": ("order_id", "reason"),
    "modify_pending_order_address": ("order_id", *_ADDRESS),
    "modify_pending_order_items": ("order_id", "item_ids", "new_item_ids", "payment_method_id"),
    "modify_pending_order_payment": ("order_id", "payment_method_id"),
    "modify_user_address": _ADDRESS,
    "return_delivered_order_items": ("order_id", "item_ids", "payment_method_id"),
    "exchange_delivered_order_items": ("order_id", "item_ids", "new_item_ids", "payment_method_id"),
}
"""Of each change, what the customer must have been told before a yes counts."""
_TELLING = ("get_user_details", "get_order_details")
"""They tell what concerns one customer only."""
_ANOTHERS = "this belongs to another customer than the one who was found"
_FINDERS = ("find_user_id_by_email", "find_user_id_by_name_zip")


def retail_permissions(shop: Shop) -> list[Rule]:
    """Build the rules over the tools of a shop."""

    def is_anothers(call: ProposedCall) -> bool:
        customer = identified(call)
        return customer != "" and _owner(shop, call) not in ("", customer)

    def is_unidentified(call: ProposedCall) -> bool:
        return identified(call) == ""

    def is_identified(call: ProposedCall) -> bool:
        return identified(call) != ""

    rules: list[Rule] = []
    for name, shown in CONFIRMED.items():
        rules.append(allow(name, when=confirmed(*shown) & is_identified))
        rules.append(ask(name, when=is_unidentified, reason="nobody has found out yet who the customer is"))
        rules.append(deny(name, when=is_anothers, reason=_ANOTHERS))
    rules += [deny(name, when=is_anothers, reason=_ANOTHERS) for name in _TELLING]
    return [*rules, allow("transfer_to_human_agents")]


def identified(call: ProposedCall) -> str:
    """Return the user id that the first successful search of this conversation has found; empty when there is none."""
    found = (entry for entry in call.trail if entry["tool"] in _FINDERS and entry["outcome"] == "done")
    return next((entry["observation"] for entry in found), "")


def _owner(shop: Shop, call: ProposedCall) -> str:
    """Return whose thing would be changed; empty where the shop has none, so that the tool says so."""
    if "user_id" in call.args:
        return str(call.args["user_id"])
    order = shop().order(str(call.args["order_id"]))
    return order.user_id if order else ""
