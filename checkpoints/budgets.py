"""Budgets in the ledger: what is reserved and spent of each, over all runs and processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from loopwright.state import Share

from .database import Database

UNBOUNDED = 2**62
"""Stands for no limit where the database compares."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """What is reserved and spent of a budget's share."""

    tokens: int = 0
    cost_nano: int = 0


class Budgets:
    """The budgets' shares, each a row that appears with its first reservation."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Put them over their table."""
        self._database = database
        self._clock = clock

    def drawn(self, shares: Sequence[Share]) -> list[Drawn]:
        """Return what is reserved and spent of each, in their order."""
        return [self._drawn(share) for share in shares]

    def _drawn(self, share: Share) -> Drawn:
        rows = self._database.query("find_budget", id=share.id)
        return Drawn(rows[0]["tokens"], rows[0]["cost_nano"]) if rows else Drawn()

    def reserve(self, shares: Sequence[Share], tokens: int, cost_nano: int) -> Share | None:
        """Reserve of all, or of none; within the caller's transaction.

        Returns:
            The share that does not have so much left; None when it is done.
        """
        done: list[Share] = []
        for share in shares:
            if not self._fits(share, tokens, cost_nano):
                for before in done:
                    self.change(before.id, -tokens, -cost_nano)
                return share
            done.append(share)
        return None

    def _fits(self, share: Share, tokens: int, cost_nano: int) -> bool:
        max_tokens = UNBOUNDED if share.max_tokens is None else share.max_tokens
        max_cost = UNBOUNDED if share.max_cost_nano is None else share.max_cost_nano
        if tokens > max_tokens or cost_nano > max_cost:
            return False
        reserved = self._database.write(
            "reserve_budget",
            id=share.id,
            name=share.name,
            label=share.label,
            since=share.since,
            tokens=tokens,
            cost_nano=cost_nano,
            max_tokens=max_tokens,
            max_cost=max_cost,
            now=self._clock(),
        )
        return bool(reserved)

    def change(self, share_id: str, tokens: int, cost_nano: int) -> None:
        """Add to what is drawn, or give back; within the caller's transaction."""
        self._database.write("change_budget", id=share_id, tokens=tokens, cost_nano=cost_nano, now=self._clock())
