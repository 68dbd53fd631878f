"""Rates in the ledger: when something was called, over all runs and processes."""

from __future__ import annotations

from collections.abc import Callable

from loopwright.state import Rate

from .database import Database

SHORTEST = 0.001
"""Seconds that a call which does not get through waits at least."""


class Rates:
    """A sliding window for each name: a row for each call that was let through, deleted when it is too old to count."""

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Put them over their table."""
        self._database = database
        self._clock = clock

    def take(self, name: str, rate: Rate) -> float:
        """Let a call through, if the rate allows one more now; committed before this returns.

        Returns:
            0 when it may be made; else the seconds until the next one may, and nothing was counted.
        """
        with self._database.serial():
            now = self._clock()
            since = now - rate.per_seconds
            full = self._database.query("rate_is_full", name=name, since=since, others=rate.calls - 1)
            if full:
                return max(SHORTEST, float(full[0]["at"]) - since)
            self._database.write("count_rate", name=name, now=now)
            self._database.write("forget_rate", name=name, since=since)
            return 0.0

    def next_free(self, name: str, rate: Rate) -> float:
        """Return when a call that is parked now may be tried again, in seconds since the epoch.

        Nothing is kept for it: it is let through then only if the rate allows it. Those who are parked come back one
        after the other, as places become free, lest all come for each of them.
        """
        with self._database.serial():
            now = self._clock()
            ahead = int(self._database.query("parked_ahead", name=name, now=now)[0]["number"])
            rounds, place = divmod(ahead, rate.calls)
            others = rate.calls - 1 - place
            full = self._database.query("rate_is_full", name=name, since=now - rate.per_seconds, others=others)
            begin = float(full[0]["at"]) if full else now - rate.per_seconds
            return max(now + SHORTEST, begin + rate.per_seconds * (rounds + 1))
