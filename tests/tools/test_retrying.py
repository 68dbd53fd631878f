"""Which failures of a tool are worth another try."""

from __future__ import annotations

import urllib.error
from email.message import Message
from typing import Any

import httpx
import pytest

from loopwright import NotDone
from loopwright.errors import ConfigurationError
from loopwright.tools import Retry


def answered(status: int, **headers: str) -> httpx.HTTPStatusError:
    """Build what a client raises for an answer."""
    request = httpx.Request("GET", "http://localhost")
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.HTTPStatusError("no", request=request, response=httpx.Response(status, headers=named))


class Busy(Exception):
    """What a service's own client raises."""


@pytest.mark.parametrize(
    ("error", "passes"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (httpx.ConnectError("refused"), True),
        (answered(429), True),
        (answered(503), True),
        (Busy(), True),
        (answered(400), False),
        (answered(401), False),
        (answered(404), False),
        (urllib.error.HTTPError("http://localhost", 403, "no", Message(), None), False),
        (FileNotFoundError(), False),
        (PermissionError(), False),
        (TypeError(), False),
        (ValueError(), False),
        (KeyError(), False),
        (RuntimeError(), False),
        (NotDone(), False),
    ],
    ids=repr,
)
def test_what_can_pass(error: Exception, passes: bool) -> None:  # noqa: FBT001 -- a column of the table
    """Connections and busy services; never what says the same the next time (C50)."""
    assert passes == Retry(on=(Busy,)).can_pass(error)


def test_pauses_double_up_to_a_bound() -> None:
    """With up to half as much by chance."""
    retry = Retry(base=1.0, longest=5.0)
    assert [1.0, 2.0, 4.0, 5.0, 5.0] == [retry.pause(tried, OSError(), lambda: 0.0) for tried in (1, 2, 3, 4, 400)]
    assert 1.5 == retry.pause(1, OSError(), lambda: 1.0)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (answered(429, retry_after="7"), 7.0),
        (answered(429, retry_after="Wed, 21 Oct 2026 07:28:00 GMT"), 1.0),
        (answered(429, retry_after="-3"), 1.0),
        (answered(429, retry_after="inf"), 1.0),
    ],
)
def test_a_service_may_ask_for_more(error: Exception, seconds: float) -> None:
    """`Retry-After` in seconds is kept; what cannot be read is no hint."""
    assert seconds == Retry(base=1.0, longest=5.0).pause(1, error, lambda: 0.0)


@pytest.mark.parametrize(
    "options", [{"tries": 0}, {"tries": True}, {"tries": 1.5}, {"base": -1}, {"base": float("nan")}, {"longest": "1"}]
)
def test_numbers_that_cannot_be_meant(options: dict[str, Any]) -> None:
    """They fail where they are written."""
    with pytest.raises(ConfigurationError, match="Retry"):
        Retry(**options)
