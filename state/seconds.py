"""Spans of time, in seconds."""

from __future__ import annotations

import math


def is_span(value: object) -> bool:
    """Tell whether a value is a finite number of seconds above 0; a bool or a text is none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value > 0
