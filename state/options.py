"""Options that are given by name: what is none of them is refused, never dropped."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from typing import Any

from loopwright.errors import ConfigurationError


def refuse_unknown(owner: str, given: Iterable[str], known: Collection[str], **facts: Any) -> None:
    """Refuse an option that there is none of; the message names the one that was meant, or all that there are.

    >>> refuse_unknown("a run", ["run_id"], ["run_id", "labels"])

    Raises:
        ConfigurationError: With the option, and these facts.
    """
    unknown = [name for name in given if name not in known]
    if not unknown:
        return
    close = get_close_matches(unknown[0], known, 1)
    hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known) or 'none'}"
    raise ConfigurationError(f"{owner} has no option {', '.join(unknown)}; {hint}", option=unknown[0], **facts)
