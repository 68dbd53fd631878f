"""Who may change what: the shop's policy as rules.

Each change asks a person, unless its customer has just said yes to a message that listed all of it; nothing of another
customer is ever changed.
"""

from __future__ import annotations

import re

from loopwright import ProposedCall, allow, ask, deny
from loopwright.policy import Rule

from .tools import CHANGES, Shop

_YES = re.compile(r"\s*(yes|yep|yeah|sure|ok|okay|correct|i confirm|please do|go ahead)\b", re.IGNORECASE)
_BUT = re.compile(r"\b(but|except|instead|wait|not|don't|only|rather|change)\b", re.IGNORECASE)
_FINDERS = ("find_user_id_by_email", "find_user_id_by_name_zip")


def retail_permissions(shop: Shop) -> list[Rule]:
    """Build the rules over the tools of a shop."""

    def is_anothers(call: ProposedCall) -> bool:
        customer = identified(call)
        return customer != "" and _owner(shop, call) not in ("", customer)

    def is_unidentified(call: ProposedCall) -> bool:
        return identified(call) == ""

    rules: list[Rule] = []
    for name in CHANGES:
        rules.append(ask(name, when=is_unidentified, reason="nobody has found out yet who the customer is"))
        rules.append(deny(name, when=is_anothers, reason="this belongs to another customer than the one who was found"))
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
