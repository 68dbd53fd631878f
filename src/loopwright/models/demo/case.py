"""One task with all that is known of it, and what the policy says of its orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from .observation import Observation, OrderFacts, PolicyFacts, read_order, read_policy
from .request import Request

LOOKUP, POLICY, REFUND, ESCALATE = "lookup_order", "refund_policy", "issue_refund", "escalate"
"""The tools that the stand-in knows how to use, where they are bound."""


class Finding(StrEnum):
    """What the policy says of an order."""

    REFUNDABLE = "refundable"
    PAST_WINDOW = "past_window"
    WRONG_STATUS = "wrong_status"
    NOT_YET = "not_yet"
    NO_DATE = "no_date"
    SETTLED = "settled"
    NO_POLICY = "no_policy"


@dataclass(frozen=True, slots=True)
class Case:
    """What the stand-in decides from; all of it stands in the transcript, but for the clock."""

    request: Request
    seen: Sequence[Observation]
    tools: Mapping[str, frozenset[str]]
    """The bound tools, each with the names of its arguments."""
    today: date

    def seen_of(self, tool: str) -> list[Observation]:
        """Return what this tool brought back in this task."""
        return [observation for observation in self.seen if observation.tool == tool]

    def may_call(self, tool: str) -> bool:
        """Tell whether a tool is there and was not called yet: nothing is called twice in a task."""
        return tool in self.tools and not self.seen_of(tool)

    def lookup(self, code: str) -> Observation | None:
        """Return what was seen of an order."""
        found = [
            seen for seen in self.seen_of(LOOKUP) if str(seen.args.get("order_id", "")).casefold() == code.casefold()
        ]
        return found[-1] if found else None

    def order(self, code: str) -> OrderFacts | None:
        """Return an order that was looked up and found."""
        seen = self.lookup(code)
        return None if seen is None else read_order(seen.facts)

    @property
    def orders(self) -> list[OrderFacts]:
        """The orders of the request that were found."""
        found = map(self.order, self.request.codes)
        return [order for order in found if order is not None]

    @property
    def policy(self) -> PolicyFacts | None:
        """The policy, once it was read."""
        seen = self.seen_of(POLICY)
        return read_policy(seen[-1].facts) if seen else None

    @property
    def proposals(self) -> list[tuple[str, int]]:
        """The refunds that the request asks for and the policy allows: order code and amount."""
        amount = self.request.amount
        fit = [order for order in self.orders if self.find(order) is Finding.REFUNDABLE]
        return [(order.code, order.left if amount is None else amount) for order in fit]

    def find(self, order: OrderFacts) -> Finding:
        """Hold an order against the policy."""
        return Finding.NO_POLICY if self.policy is None else _judge(order, self.policy, self.today)


def _judge(order: OrderFacts, policy: PolicyFacts, today: date) -> Finding:
    if order.status != policy.status:
        return Finding.WRONG_STATUS
    if order.delivered is None:
        return Finding.NO_DATE
    if order.delivered > today:
        return Finding.NOT_YET
    if (today - order.delivered).days > policy.within_days:
        return Finding.PAST_WINDOW
    return Finding.REFUNDABLE if order.left > 0 else Finding.SETTLED
