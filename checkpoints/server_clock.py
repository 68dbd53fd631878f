"""The time of a database server: what all machines that share it go by."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

STEP_SECONDS = 0.25
"""What the server says is on its way for less than this; by more, its clock was set back."""
FRESH_SECONDS = 60.0
"""How long what the server said is preferred to something later that took longer to arrive."""


class ServerClock:
    """Tells the server's time by what it said last, and by how much time has passed here since.

    The clock of this machine counts for nothing, whether it is wrong or is set meanwhile: leases and claims of two
    machines are compared by one clock. Telling the time asks nobody.
    """

    def __init__(self, passed: Callable[[], float] = time.monotonic) -> None:
        """Take what counts seconds from anywhere, and never back."""
        self._passed = passed
        self._lock = threading.Lock()
        self._ahead = 0.0
        self._heard_at: float | None = None

    def hear(self, said: float) -> None:
        """Note what the server says that time it is, in seconds since the epoch.

        It is late by as long as it was on its way; so of two that nearly agree, the one that is ahead is right.
        """
        now = self._passed()
        ahead = said - now
        with self._lock:
            is_first = self._heard_at is None or now - self._heard_at > FRESH_SECONDS
            if is_first or ahead > self._ahead or self._ahead - ahead > STEP_SECONDS:
                self._ahead, self._heard_at = ahead, now

    def __call__(self) -> float:
        """Return seconds since the epoch."""
        with self._lock:
            return self._passed() + self._ahead
