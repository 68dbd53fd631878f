"""Spans of time, in seconds, and moments."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Final

_LAST: Final = 253_402_300_799.0
"""The last second of the year 9999: `datetime` has none after it."""


def is_span(value: object) -> bool:
    """Tell whether a value is a finite number of seconds above 0; a bool or a text is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0


def in_utc(moment: float) -> str:
    """Write a moment, given in seconds since the epoch, as people read it; a later one than there is as the last."""
    return f"{datetime.fromtimestamp(min(moment, _LAST), UTC):%Y-%m-%d %H:%M:%S} UTC"
