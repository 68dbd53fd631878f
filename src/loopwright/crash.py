"""Named places at which a test, or the demo, kills the process for real.

`LOOPWRIGHT_CRASH_AT=after_effect` ends the process with SIGKILL the first time that place is reached;
`after_checkpoint:7` the seventh time. Unset, as it is in every service, a place costs one comparison. A setting that
names no place ends the process at once, in one line: a test that kills nothing would pass.
"""

from __future__ import annotations

import os
import signal
from enum import StrEnum


class CrashPoint(StrEnum):
    """Where a run can be killed; the crash tests go through every member."""

    BEFORE_MODEL = "before_model"
    """The attempt's row is open, the model was not called."""
    AFTER_MODEL = "after_model"
    """The reply is paid and in memory only."""
    BEFORE_CLAIM = "before_claim"
    """The call is allowed, nothing stands in the ledger."""
    AFTER_CLAIM = "after_claim"
    """The claim is committed, the tool was not called."""
    AFTER_EFFECT = "after_effect"
    """The tool has returned, its result is in memory only."""
    AFTER_SETTLE = "after_settle"
    """The result is in the ledger, not yet in a checkpoint."""
    AFTER_CHECKPOINT = "after_checkpoint"
    """A checkpoint was committed."""


class _Fuse:
    def __init__(self, setting: str) -> None:
        self.point, colon, count = setting.partition(":")
        count = count if colon else "1"
        is_count = count.isascii() and count.isdigit() and int(count) > 0
        if setting and not (self.point in {*CrashPoint} and is_count):
            forms = f"place or place:count, with one of the places {', '.join(CrashPoint)}"
            raise SystemExit(f"LOOPWRIGHT_CRASH_AT is {setting!r}; unset it, or give {forms}")
        self.left = int(count)

    def reached(self, point: CrashPoint) -> None:
        if point.value == self.point:
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


_fuse = _Fuse(os.environ.get("LOOPWRIGHT_CRASH_AT", ""))


def reached(point: CrashPoint) -> None:
    """Die here if the environment says so."""
    if _fuse.point:
        _fuse.reached(point)
