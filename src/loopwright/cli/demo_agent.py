"""The agent of both stories of the demo: order support's tools, over a shop at which the process can die."""

from __future__ import annotations

import os

from loopwright.crash import CrashPoint, reached
from loopwright.graphs.shop import Refund, Shop
from loopwright.graphs.support import build_support_agent
from loopwright.models.demo import DemoModel


class MortalShop(Shop):
    """A shop that kills the process right after a refund is in its books, if `LOOPWRIGHT_CRASH_AT` says so."""

    def refund(self, key: str, order_id: str, amount: int, account: str = "") -> Refund:
        """Pay; then die, if that is what was ordered."""
        paid = super().refund(key, order_id, amount, account)
        reached(CrashPoint.AFTER_EFFECT)
        return paid


class StandIn(DemoModel):
    """The demo model; what it is, is said at the beginning of the demo instead of by each process."""


shop = MortalShop(os.environ.get("LOOPWRIGHT_SHOP", "shop.db"))
agent = build_support_agent(StandIn(), shop)
