"""The heartbeat: keeps the leases and claims of this process alive while their work goes on."""

from __future__ import annotations

import itertools
import logging
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from .renewals import Held

logger = logging.getLogger(__name__)

Renew = Callable[[Sequence[Held]], Sequence[bool]]
"""Moves the ends of all leases and claims into the future; False for each that another has now."""


class Heart:
    """One background thread that renews everything at once; it ends when there is nothing to renew."""

    def __init__(self, interval: float, renew: Renew) -> None:
        """Take the seconds between two beats: a third of a lease leaves room for two missed ones."""
        self.interval = interval
        self._renew = renew
        self._numbers = itertools.count()
        self._held: dict[int, Held] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @contextmanager
    def keep(self, held: Held) -> Generator[None]:
        """Renew a lease or a claim until the block ends."""
        number = next(self._numbers)
        with self._lock:
            self._held[number] = held
            if self._thread is None:
                self._thread = threading.Thread(target=self._loop, name="loopwright-heartbeat", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._held.pop(number, None)

    def beat(self) -> None:
        """Renew everything once."""
        with self._lock:
            due = dict(self._held)
        if not due:
            return
        try:
            kept = self._renew([*due.values()])
        except Exception:  # a database that is away for a moment must not end the heartbeat
            logger.warning("no lease could be renewed", exc_info=True, extra={"action": "lease_not_renewed"})
            return
        for number in [number for number, is_kept in zip(due, kept, strict=True) if not is_kept]:
            with self._lock:
                is_lost = self._held.pop(number, None) is not None  # one that was given back meanwhile is not
            if is_lost:
                logger.warning("a lease was lost to another worker", extra={"action": "lease_lost"})

    def _loop(self) -> None:
        while not self._stop.wait(self.interval):
            with self._lock:
                if not self._held:  # the next lease or claim starts another thread
                    self._thread = None
                    return
            self.beat()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=self.interval + 1)
