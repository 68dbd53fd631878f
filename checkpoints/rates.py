"""Rates in the ledger: when something was called, over all runs and processes."""

from __future__ import annotations

from collections.abc import Callable

from loopwright.state import Rate

from .database import Database

SHORTEST = 0.001
"""Seconds that a call which does not get through waits at least."""
AHEAD = 1.0
"""Seconds by which the clocks of those who share the ledger may differ."""
_TOOL = "tool:"
"""How the name of a tool's rate begins; what waits for it is known by the tool's own name."""


class Rates:
    """A sliding window for each name: a row for each call that was let through, deleted when it is too old to count.

    Rates of one name may differ, as two agents may have one model: a row is kept for as long as the longest counts it.
    """

    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        """Put them over their table."""
        self._database = database
        self._clock = clock
        self._known: set[tuple[str, float]] = set()
        """Names, and for how long it is known that their calls must be kept."""

    def take(self, name: str, rate: Rate) -> float:
        """Let a call through, if the rate allows one more now; committed before this returns.

        Returns:
            0 when it may be made; else the seconds until the next one may, and nothing was counted.
        """
        window = name, rate.per_seconds
        with self._database.serial():
            if window not in self._known:
                self._database.write("widen_rate", name=name, seconds=rate.per_seconds)
            wait = self._take(name, rate)
        self._known.add(window)
        return wait

    def _take(self, name: str, rate: Rate) -> float:
        now = self._clock()
        since = now - rate.per_seconds
        full = self._database.query("rate_is_full", name=name, since=since, others=rate.calls - 1)
        if full:
            wait = float(full[0]["at"]) - since
            if wait <= rate.per_seconds + AHEAD:
                return max(SHORTEST, wait)
            self._database.write("pull_rate", name=name, now=now)
            return rate.per_seconds
        self._database.write("count_rate", name=name, now=now)
        self._database.write("forget_rate", name=name, now=now)
        return 0.0

    def next_free(self, name: str, rate: Rate) -> float:
        """Return when a call that is parked now may be tried again, in seconds since the epoch.

        Nothing is kept for it: it is let through then only if the rate allows it. Those who are parked come back one
        after the other, as places become free, lest all come for each of them.
        """
        with self._database.serial():
            now = self._clock()
            called = name.removeprefix(_TOOL)
            ahead = int(self._database.query("parked_ahead", called=called, now=now)[0]["number"])
            rounds, place = divmod(ahead, rate.calls)
            others = rate.calls - 1 - place
            full = self._database.query("rate_is_full", name=name, since=now - rate.per_seconds, others=others)
            begin = float(full[0]["at"]) if full else now - rate.per_seconds
            return max(now + SHORTEST, begin + rate.per_seconds * (rounds + 1))
