"""A till that lives in memory: for tests in which nothing is killed."""

from __future__ import annotations

from typing import Any, Literal

from loopwright import Effect, tool
from loopwright.tools import Tool


class Till:
    """Keeps what was paid out, in order."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.paid: list[tuple[str, int]] = []
        self.keys: list[str] = []
        self.looked: list[str] = []

    def pay(self, *, effect: Literal["idempotent", "write"] = "write", **options: Any) -> Tool:
        """Build the tool that pays; it asks unless a rule says otherwise."""

        @tool(effect=effect, name="pay", **options)
        def pay(order_id: str, amount: int, handle: Effect) -> str:
            """Pay money back for an order, by its code. Use it only after the policy was checked."""
            self.paid.append((order_id, amount))
            self.keys.append(handle.key)
            return f"paid {amount} for {order_id}"

        return pay

    def look(self) -> Tool:
        """Build the tool that looks up an order; it runs without asking."""

        @tool(effect="read", name="look")
        def look(order_id: str) -> str:
            """Look up an order by its code. Returns its status."""
            self.looked.append(order_id)
            return "DELIVERED"

        return look
