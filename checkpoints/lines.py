"""Who comes next, among the calls of this process that must not run at once."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

Ticket = tuple[str, int, int]
"""A call's run, step and place in its turn: within a turn, its order."""


@dataclass(slots=True)
class _Line:
    waiting: list[Ticket] = field(default_factory=list[Ticket])
    inside: Ticket | None = None
    is_late: bool = False
    """Whether the call inside was given up, and goes on."""


class Lines:
    """One line a key; in memory. What other processes do is settled by a lease."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._lines: dict[str, _Line] = {}
        self._lock = threading.Lock()

    def join(self, key: str, ticket: Ticket) -> None:
        """Stand in line."""
        with self._lock:
            self._lines.setdefault(key, _Line()).waiting.append(ticket)

    def enter(self, key: str, ticket: Ticket) -> bool:
        """Go in, if nobody is inside and it is this one's turn; of one turn, the earlier call is first."""
        with self._lock:
            line = self._lines[key]
            if line.inside is not None:
                return line.inside == ticket and not line.is_late
            run, step, _ = line.waiting[0]
            if ticket != min(one for one in line.waiting if one[:2] == (run, step)):
                return False
            line.waiting.remove(ticket)
            line.inside = ticket
            return True

    def stay(self, key: str) -> None:
        """Keep the place inside for a call that was given up, and goes on; `leave` it as `late`."""
        with self._lock:
            self._lines[key].is_late = True

    def is_late(self, key: str) -> bool:
        """Tell whether the call inside was given up: nobody knows when it ends."""
        with self._lock:
            return key in self._lines and self._lines[key].is_late

    def leave(self, key: str, ticket: Ticket, *, late: bool = False) -> None:
        """Go, from inside or out of the line; the last one takes the line away."""
        with self._lock:
            line = self._lines[key]
            if line.inside == ticket and line.is_late == late:
                line.inside, line.is_late = None, False
            elif ticket in line.waiting:
                line.waiting.remove(ticket)
            if not line.waiting and line.inside is None:
                del self._lines[key]
