"""What an error of a model's client means: what helps against it, and whether it may have cost something. Pure.

Clients raise classes of their own, so the signs are read that they share: an HTTP status, the provider's code for the
error, LangChain's classes, and for what has none of them the names of the classes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Any, cast

from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelConnectionError,
    ModelRateLimitError,
    ModelRefusalError,
    ModelTimeoutError,
)
from langchain_core.messages import AIMessage
from pydantic import BaseModel, ValidationError

from loopwright.state import Tokens

from .usage import reported, tokens_of


class Cure(StrEnum):
    """What helps against a failed attempt."""

    AGAIN = "again"
    """The same request can succeed a moment later; where it does not, another model's may."""
    ELSEWHERE = "elsewhere"
    """This model cannot take it, however often it is asked; another one can."""
    NONE = "none"
    """The request, the reply or the program is at fault, for any model."""


_PASSING_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529})
_ELSEWHERE_STATUS = frozenset({401, 402, 403, 404})
"""A key, an account, a right or a model: each belongs to this model alone."""
_SERVER_STATUS = range(500, 600)
_TOO_LARGE, _TOO_MANY_REQUESTS = 413, 429
_ERROR_STATUS = range(400, 600)

_FILTERED = frozenset({"content_filter", "content_policy_violation", "refusal"})
_FULL = frozenset(
    {
        "context_length_exceeded",
        "context_window_exceeded",
        "exceed_context_size_error",
        "request_too_large",
        "string_above_max_length",
    }
)
_UNPAID = frozenset({"insufficient_quota", "billing_error", "billing_hard_limit_reached", "billing_not_active"})
_UNSUPPORTED = frozenset({"unsupported_parameter", "unsupported_value", "model_not_found", "unsupported_model"})
_PASSING = frozenset(
    {
        "api_error",
        "engine_overloaded",
        "internal_server_error",
        "overloaded_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "server_error",
        "slow_down",
        "timeout_error",
        "ThrottlingException",
        "ServiceUnavailableException",
    }
)
_FULL_SAYS = (
    *("context length", "context window", "context size", "context limit", "prompt is too long", "too many tokens"),
    *("maximum number of tokens", "reduce the length"),
)
_UNPAID_SAYS = ("credit balance", "exceeded your current quota")
_UNSUPPORTED_SAYS = ("unsupported parameter", "unsupported value", "does not support", "not supported with this model")

_PASSING_KINDS = (ModelConnectionError, ModelTimeoutError, ModelRateLimitError, ModelAPIError)
_PASSING_NAMES = frozenset(
    {
        "APIConnectionError",
        "TransportError",
        "ClientConnectionError",
        "ServerDisconnectedError",
        "IncompleteRead",
        "ProtocolError",
        "RateLimitError",
        "OverloadedError",
        "ServiceUnavailable",
        "TooManyRequests",
        "DeadlineExceeded",
        "EndpointConnectionError",
        "ReadTimeoutError",
        "ConnectTimeoutError",
        "ThrottlingException",
    }
)
_LOCAL = (FileNotFoundError, PermissionError, FileExistsError, IsADirectoryError, NotADirectoryError)
"""`OSError`s that are no matter of the wire."""
_UNSENT_NAMES = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError", "gaierror"})
"""No connection came about, so nothing was asked of the provider."""
_MOST_CAUSES = 8
_REPLIES = ("AIMessage", "AIMessageChunk")
"""What clients make of a reply."""


def cure_of(error: BaseException) -> Cure:
    """Tell what helps against an error that a model's client has raised.

    The provider's code counts more than the status: a quota that is used up comes as 429, an overload within a stream
    as 200.
    """
    codes, said = {*_codes(error)}, str(error).lower()
    if isinstance(error, ModelRefusalError) or "ContentFilterFinishReasonError" in _names(error) or codes & _FILTERED:
        return Cure.NONE
    if is_too_long(error) or codes & (_UNPAID | _UNSUPPORTED):
        return Cure.ELSEWHERE
    status = _status(error)
    if _is_refused(status) and any(sign in said for sign in (*_UNPAID_SAYS, *_UNSUPPORTED_SAYS)):
        return Cure.ELSEWHERE
    if status in _ERROR_STATUS:
        return _cure_of_status(cast("int", status))
    if codes & _PASSING or isinstance(error, _PASSING_KINDS) or _is_of_wire(error) or _is_no_reply(error):
        return Cure.AGAIN
    return Cure.NONE


def is_too_long(error: BaseException) -> bool:
    """Tell whether a model could not take what was sent since there is too much of it.

    A rate limit is not meant, though some are told in the same words (`Too many tokens, please wait`).
    """
    if isinstance(error, ContextOverflowError) or {*_codes(error)} & _FULL:
        return True
    status, said = _status(error), str(error).lower()
    if status == _TOO_LARGE:
        return True
    return _is_refused(status) and status != _TOO_MANY_REQUESTS and any(sign in said for sign in _FULL_SAYS)


def _is_refused(status: int | None) -> bool:
    return status is not None and status in _ERROR_STATUS and status not in _SERVER_STATUS


def _cure_of_status(status: int) -> Cure:
    if status in _PASSING_STATUS:
        return Cure.AGAIN
    return Cure.ELSEWHERE if status in _ELSEWHERE_STATUS or status in _SERVER_STATUS else Cure.NONE


def may_have_cost(error: BaseException) -> bool:
    """Tell whether the provider may have worked on a request that failed, without a report of what it took.

    A request that was refused costs nothing, nor does one that never left. One that was sent, and whose reply did not
    come whole, may.
    """
    if _status(error) in _ERROR_STATUS or any(_is_unsent(cause) for cause in _causes(error)):
        return False
    is_passing = bool({*_codes(error)} & _PASSING) or isinstance(error, _PASSING_KINDS)
    return is_passing or _is_of_wire(error) or _is_no_reply(error)


def usage_of_error(error: BaseException) -> Tokens | None:
    """Return what a failed attempt reports to have taken; None where it reports nothing."""
    for holder in (getattr(error, "completion", None), error, getattr(error, "body", None)):
        usage = _mapping(holder).get("usage") or getattr(holder, "usage", None)
        dumped = _mapping(usage.model_dump() if isinstance(usage, BaseModel) else usage)
        if dumped:
            message = AIMessage("", response_metadata={"usage": {**dumped}})
            tokens = tokens_of(message, 0)
            if reported(message) and not tokens.estimated:
                return tokens
    return None


def asked_pause(error: BaseException, now: float) -> float:
    """Return the seconds for which a provider asks to be left alone (`Retry-After`); 0 where it says nothing.

    Args:
        error: What the client raised.
        now: Seconds since the epoch; the header may hold a date.
    """
    headers = _mapping(getattr(getattr(error, "response", None), "headers", None))
    named = {name.lower(): str(value) for name, value in headers.items()}
    waits = [_number(named.get("retry-after-ms")) / 1000, _number(named.get("retry-after"))]
    waits += [_number(getattr(error, "retry_after", None)), _until(named.get("retry-after"), now)]
    return max(0.0, *waits)


def _number(given: object) -> float:
    try:
        seconds = float(str(given))
    except ValueError:
        return 0.0
    return seconds if math.isfinite(seconds) else 0.0


def _until(given: str | None, now: float) -> float:
    try:
        return parsedate_to_datetime(given or "").timestamp() - now
    except (TypeError, ValueError, OverflowError):
        return 0.0


def _status(error: BaseException) -> int | None:
    """Return the HTTP status, by whichever name a client gives it."""
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            status: object = getattr(holder, name, None)
            if isinstance(status, int) and not isinstance(status, bool):
                return int(status)
    status = _told(error).get("code")
    return status if isinstance(status, int) and not isinstance(status, bool) else None


def _told(error: BaseException) -> Mapping[str, Any]:
    """Return an error that came in a body with status 200, as gateways send it, and LangChain raises it."""
    first = error.args[0] if isinstance(error, ValueError) and error.args else None
    return _mapping(first.model_dump() if isinstance(first, BaseModel) else first)


def _codes(error: BaseException) -> Iterator[str]:
    """Yield what the provider calls the error."""
    own = {"code": getattr(error, "code", None), "type": getattr(error, "type", None)}
    told = _told(error)
    body, response = _mapping(getattr(error, "body", None)), _mapping(getattr(error, "response", None))
    for holder in (own, told, body, _mapping(body.get("error")), _mapping(response.get("Error"))):
        yield from (value for name in ("code", "type", "Code") if isinstance(value := holder.get(name), str))


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _is_of_wire(error: BaseException) -> bool:
    """Tell whether a connection failed, or what came over it was not what was sent."""
    if isinstance(error, OSError):  # `TimeoutError` and `ConnectionError` are some
        return not isinstance(error, _LOCAL)
    return isinstance(error, json.JSONDecodeError) or bool(_names(error) & _PASSING_NAMES)


def _is_no_reply(error: BaseException) -> bool:
    """Tell whether a client got what is no reply by its provider's protocol: no text for the content, say."""
    return isinstance(error, ValidationError) and error.title in _REPLIES


def _is_unsent(error: BaseException) -> bool:
    return isinstance(error, ConnectionRefusedError) or bool(_names(error) & _UNSENT_NAMES)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and what it was raised from."""
    cause: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        if cause is None:
            return
        yield cause
        cause = cause.__cause__ or cause.__context__
