"""Calls that were given up, and that go on: Python can end no thread, and a coroutine can swallow its cancellation."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class LeftBehind:
    """Those of one node."""

    def __init__(self) -> None:
        """Begin with none."""
        self._going: set[Future[Any]] = set()
        self._follows: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def add(self, call: Future[Any]) -> None:
        """Remember one, until it is over."""
        with self._lock:
            self._going.add(call)
        call.add_done_callback(self._over)

    @property
    def is_going(self) -> bool:
        """Whether one of them is not over yet."""
        with self._lock:
            return bool(self._going)

    def follow(self, then: Callable[[], None]) -> bool:
        """Have something done, in a thread, once all of them are over; False, and nothing, if they are already."""
        with self._lock:
            self._follows = then if self._going else None
            return bool(self._going)

    def _over(self, call: Future[Any]) -> None:
        with self._lock:
            self._going.discard(call)
            then = None if self._going else self._follows
            if then is not None:
                self._follows = None
        if then is not None:
            then()
