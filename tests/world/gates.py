"""Tools that wait for a test, and tests that wait for a condition."""

from __future__ import annotations

import threading
from collections.abc import Callable

PATIENCE = 20.0
"""Seconds after which a test that waits has failed."""


class Gate:
    """A place in a tool where it stops until the test lets it go on."""

    def __init__(self) -> None:
        """Begin closed."""
        self._reached = threading.Event()
        self._opened = threading.Event()

    def pass_through(self) -> None:
        """Say that the gate is reached, and wait until it opens; in the tool."""
        self.reach()
        assert self._opened.wait(PATIENCE), "nobody opened the gate"

    def reach(self) -> None:
        """Say that the gate is reached; in a tool that must not block."""
        self._reached.set()

    def wait_until_reached(self) -> None:
        """Wait until the tool stands at the gate; in the test."""
        assert self._reached.wait(PATIENCE), "nobody came to the gate"

    def open(self) -> None:
        """Let the tool go on; in the test."""
        self._opened.set()


def wait_until(holds: Callable[[], bool]) -> None:
    """Look again and again until something holds that no event tells of."""
    for _ in range(int(PATIENCE / 0.01)):
        if holds():
            return
        threading.Event().wait(0.01)
    raise AssertionError("it never came to be")
