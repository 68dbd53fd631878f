"""What lists can be asked for: checked here, since stores would each take what is none in their own way."""

from __future__ import annotations

import math

from loopwright.errors import ConfigurationError
from loopwright.state import RunStatus, is_count

ALL = 1_000_000_000
"""More rows than there can be."""


def check_limit(limit: int) -> None:
    """Refuse what is no number of rows: SQLite takes -1 for all of them.

    Raises:
        ConfigurationError: Saying what is wanted.
    """
    if not is_count(limit) or limit > ALL:
        raise ConfigurationError(f"limit is {limit!r}; give a whole number from 0 on", option="limit")


def check_status(status: object) -> None:
    """Refuse what is no status: no run would have it. Empty means any.

    Raises:
        ConfigurationError: Saying which there are.
    """
    if status not in ("", *RunStatus):
        text = f"status is {status!r}; there are {', '.join(RunStatus)}"
        raise ConfigurationError(text, option="status")


def check_moment(option: str, moment: object) -> None:
    """Refuse what is no time.

    Raises:
        ConfigurationError: Naming the option.
    """
    if not isinstance(moment, int | float) or isinstance(moment, bool) or math.isnan(moment):
        text = f"{option} is {moment!r}; give seconds since the epoch, as datetime.timestamp() returns them"
        raise ConfigurationError(text, option=option)
