"""A clock that a test moves, so that nothing has to be waited for."""

from __future__ import annotations

import threading


class ManualClock:
    """Stands still until it is moved; hand it to `open_checkpoints(…, clock=…)`.

    Calling it returns the time, in seconds since the epoch. Safe to share between threads.

    >>> clock = ManualClock(100.0)
    >>> clock.advance(10)
    >>> clock()
    110.0
    """

    def __init__(self, now: float = 1_800_000_000.0) -> None:
        """Begin at `now`: early in 2027, where nothing is said."""
        self._now = now
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the time."""
        with self._lock:
            return self._now

    def advance(self, seconds: float) -> None:
        """Move on; a negative figure moves back, as a clock that is set right does."""
        with self._lock:
            self._now += seconds
