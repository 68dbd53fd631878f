"""Which failures of a tool are worth another try, and how long to wait before it. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from loopwright.errors import ConfigurationError

PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Of HTTP: all else, above all 400, 401, 403 and 404, says the same the next time."""
_PASSING_NAMES = frozenset({"TransportError", "ClientConnectionError", "ServerDisconnectedError"})
"""Of clients whose errors are no `OSError`: httpx and aiohttp."""
_FINAL = (FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a failed call is tried, within its timeout; for tools that are `read` or `idempotent`.

    Tried again is what can pass: connections that fail, time-outs of the service, HTTP statuses such as 429 and 503,
    and what `on` names. Arguments or code that are wrong fail once.

    Raises:
        ConfigurationError: If a number is none, or makes no try.
    """

    tries: int = 3
    """In all, the first one included; 1 for none but the first."""
    base: float = 1.0
    """Seconds before the second try; doubled before each further one. Up to half of it is added, by chance."""
    longest: float = 30.0
    """Seconds that are never exceeded, unless the service asks for more (`Retry-After`)."""
    on: tuple[type[Exception], ...] = ()
    """More kinds of error that can pass, such as those of the service's own client."""

    def __post_init__(self) -> None:
        """Refuse what cannot be meant."""
        _check_tries(self.tries)
        for name, seconds in (("base", self.base), ("longest", self.longest)):
            if not _is_seconds(seconds):
                text = f"Retry: {name} is {seconds!r}; give seconds from 0 on"
                raise ConfigurationError(text, option="retry")

    def can_pass(self, error: BaseException) -> bool:
        """Tell whether the same call could succeed a moment later."""
        if isinstance(error, self.on):
            return True
        status = _status(error)
        if status is not None:
            return status in PASSING_STATUS
        if isinstance(error, OSError):
            return not isinstance(error, _FINAL)
        return any(kind.__name__ in _PASSING_NAMES for kind in type(error).__mro__)

    def pause(self, tried: int, error: BaseException, chance: Callable[[], float]) -> float:
        """Return the seconds to wait after `tried` tries; `chance` returns a number from 0 to 1."""
        growing = min(self.base * 2.0 ** min(tried - 1, 60), self.longest)
        return max(growing * (1 + chance() / 2), asked_pause(error))


def _check_tries(tries: object) -> None:
    if not isinstance(tries, int) or isinstance(tries, bool) or tries < 1:
        raise ConfigurationError(f"Retry: tries is {tries!r}; give a whole number, at least 1", option="retry")


def asked_pause(error: BaseException) -> float:
    """Return the seconds for which a service asks to be left alone; 0 where it says nothing."""
    hint: Any = getattr(error, "retry_after", None)
    headers: Any = getattr(getattr(error, "response", None), "headers", None)
    if hint is None and isinstance(headers, Mapping):
        given = cast("Mapping[str, Any]", headers)
        hint = given.get("retry-after", given.get("Retry-After"))
    try:
        seconds = float(str(hint))
    except (TypeError, ValueError):
        return 0.0
    return seconds if _is_seconds(seconds) else 0.0


def _status(error: BaseException) -> int | None:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status"):
            status: object = getattr(holder, name, None)
            if isinstance(status, int):
                return status
    return None


def _is_seconds(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
