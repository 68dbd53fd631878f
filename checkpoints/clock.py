"""The clock that checkpoint ids are made of: ids are ordered by time, and so are the checkpoints of a thread."""

from __future__ import annotations

import time
from uuid import UUID

CLOCK_SECONDS = 2.0
"""How far a clock may be behind to be waited out."""
_UUID_EPOCH = 0x01B21DD213814000
"""Hundreds of nanoseconds between the beginning of UUID time and of Unix time (RFC 9562, 5.1)."""


def await_clock(checkpoint_id: str) -> None:
    """Wait until the clock has passed the newest checkpoint; one that is far behind is refused when it writes."""
    made = _time_of(checkpoint_id)
    ahead = 0.0 if made is None else made - time.time()
    if 0 < ahead <= CLOCK_SECONDS:
        time.sleep(ahead)


def _time_of(checkpoint_id: str) -> float | None:
    """Return when a checkpoint id was made, in seconds since the epoch; None when it is no UUID of version 6."""
    try:
        value = UUID(checkpoint_id)
    except ValueError:
        return None
    if value.version != 6:  # noqa: PLR2004 -- the version
        return None
    digits = value.hex
    return (int(digits[:12] + digits[13:16], 16) - _UUID_EPOCH) / 1e7


def explain_behind(thread_id: str) -> str:
    """Say why a checkpoint with an id older than its parent's is refused, and what to do."""
    return (
        f"the clock of this machine is behind the newest checkpoint of thread {thread_id!r}, so what it stores would "
        "count as older; set the clock right (NTP), or let another machine carry the thread on"
    )
