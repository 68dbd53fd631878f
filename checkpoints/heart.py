"""The heartbeat: keeps the leases and claims of this process alive while their work goes on."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager

logger = logging.getLogger(__name__)

Renew = Callable[[], bool]
"""Moves the end of one lease or claim into the future; False when another has it now."""


class Heart:
    """One background thread for all renewals; it ends when there is nothing to renew."""

    def __init__(self, interval: float) -> None:
        """Take the seconds between two beats: a third of a lease leaves room for two missed ones."""
        self.interval = interval
        self._numbers = itertools.count()
        self._renewals: dict[int, Renew] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @contextmanager
    def keep(self, renew: Renew) -> Generator[None]:
        """Renew until the block ends."""
        number = next(self._numbers)
        with self._lock:
            self._renewals[number] = renew
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="loopwright-heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._renewals.pop(number, None)

    def beat(self) -> None:
        """Renew everything once."""
        with self._lock:
            due = list(self._renewals.items())
        for number, renew in due:
            try:
                kept = renew()
            except Exception:  # a database that is away for a moment must not end the heartbeat
                logger.warning("a lease could not be renewed", exc_info=True, extra={"action": "lease_not_renewed"})
                continue
            if not kept:
                logger.warning("a lease was lost to another worker", extra={"action": "lease_lost"})
                with self._lock:
                    self._renewals.pop(number, None)

    def _loop(self) -> None:
        while not self._stop.wait(self.interval):
            with self._lock:
                if not self._renewals:  # the next lease or claim starts another thread
                    self._thread = None
                    return
            self.beat()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=self.interval + 1)
