"""What an error of a model's client means, by the classes that the clients raise."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from langchain_core.exceptions import ContextOverflowError, ModelRefusalError, ModelTimeoutError
from langchain_core.messages import AIMessage
from openai.types.chat import ChatCompletion
from pydantic import ValidationError

from loopwright.models import Cure, asked_pause, cure_of, may_have_cost, usage_of_error

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
OPENAI = openai.OpenAI(api_key="k")
ANTHROPIC = anthropic.Anthropic(api_key="k")


def by_openai(status: int, message: str = "no", code: str | None = None, **headers: str) -> openai.APIStatusError:
    """Return what OpenAI's client raises for an answer."""
    body = {"message": message, "type": "some_error", "param": None, "code": code}
    response = httpx2.Response(status, request=REQUEST, headers=headers, json={"error": body})
    return OPENAI._make_status_error_from_response(response)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # as the client does it


def by_anthropic(status: int, kind: str = "api_error", message: str = "no", **headers: str) -> anthropic.APIStatusError:
    """Return what Anthropic's client raises for an answer."""
    body = {"type": "error", "error": {"type": kind, "message": message}}
    response = httpx2.Response(status, request=REQUEST, headers=headers, json=body)
    return ANTHROPIC._make_status_error(message, body=body, response=response)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # as above


def caused(error: Exception, cause: Exception) -> Exception:
    """Return an error that was raised from another."""
    error.__cause__ = cause
    return error


class NamedLikeAClients(Exception):
    """An exception of a client that is not installed here."""


def unreadable() -> ValidationError:
    """Return what clients raise for a reply whose content is no text."""
    with pytest.raises(ValidationError) as caught:
        AIMessage(content=5)  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]  # wrong on purpose
    return caught.value


def named(name: str, **fields: Any) -> Exception:
    """Return an exception of a class with this name."""
    kind: type[NamedLikeAClients] = type(name, (NamedLikeAClients,), fields)
    return kind("no")


@pytest.mark.parametrize(
    "error",
    [
        *(by_openai(status) for status in (408, 429, 500, 502, 503, 504)),
        *(by_anthropic(status) for status in (429, 500, 503, 529)),
        by_openai(429, code="rate_limit_exceeded"),
        by_openai(429, "Too many tokens, please wait before trying again."),
        unreadable(),
        ValueError({"message": "Upstream error", "code": 502}),
        ValueError({"message": "Overloaded", "code": "server_error"}),
        by_anthropic(200, "overloaded_error"),
        openai.APIError("An error occurred during streaming", REQUEST, body={"type": "server_error"}),
        openai.APIConnectionError(request=REQUEST),
        openai.APITimeoutError(REQUEST),
        anthropic.APIConnectionError(request=REQUEST),
        anthropic.APITimeoutError(REQUEST),
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx2.WriteError("reset"),
        httpx.RemoteProtocolError("cut"),
        ModelTimeoutError("slow"),
        ConnectionResetError("reset"),
        TimeoutError("slow"),
        OSError("no route"),
        json.JSONDecodeError("no JSON", "<html>", 0),
        named("ServiceUnavailable", code=503),
        named("ThrottlingException"),
        named("ClientConnectionError"),
    ],
    ids=repr,
)
def test_what_can_pass_is_tried_again(error: Exception) -> None:
    """Connections, time-outs, rate limits, overload and servers in trouble."""
    assert cure_of(error) is Cure.AGAIN


@pytest.mark.parametrize(
    "error",
    [
        *(by_openai(status) for status in (401, 402, 403, 404, 413, 501)),
        by_openai(429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
        by_openai(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
        by_openai(400, "Unsupported parameter: 'temperature' is not supported with this model."),
        by_openai(400, "Unsupported value", "unsupported_value"),
        by_anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
        by_anthropic(400, "invalid_request_error", "Your credit balance is too low to access the API."),
        by_anthropic(413, "request_too_large"),
        by_anthropic(400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 9 + 2 > 10"),
        by_openai(400, "the request exceeds the available context size", "exceed_context_size_error"),
        by_anthropic(404, "not_found_error"),
        ValueError({"message": "No credits", "code": 402}),
        by_anthropic(401, "authentication_error"),
        ContextOverflowError("too long"),
    ],
    ids=repr,
)
def test_what_is_this_models_alone_goes_to_another_one(error: Exception) -> None:
    """Quota, keys, windows, and what a model does not support: asking it again would change nothing."""
    assert cure_of(error) is Cure.ELSEWHERE


@pytest.mark.parametrize(
    "error",
    [
        by_openai(400),
        by_openai(422),
        by_openai(400, "The response was filtered.", "content_filter"),
        by_anthropic(400, "invalid_request_error", "messages: roles must alternate"),
        ModelRefusalError("I will not."),
        TypeError("a bug"),
        ValueError("a bug"),
        KeyError("a bug"),
        RuntimeError("no idea"),
        FileNotFoundError("a bug"),
        AssertionError("a script is over"),
    ],
    ids=repr,
)
def test_what_nothing_helps_against_is_shown_at_once(error: Exception) -> None:
    """Bad requests, filters, refusals and programming errors."""
    assert cure_of(error) is Cure.NONE


@pytest.mark.parametrize(
    ("error", "may"),
    [
        (by_openai(503), False),
        (by_openai(429), False),
        (by_anthropic(529), False),
        (TypeError("a bug"), False),
        (ConnectionRefusedError("refused"), False),
        (caused(openai.APIConnectionError(request=REQUEST), httpx2.ConnectError("refused")), False),
        (caused(openai.APITimeoutError(REQUEST), httpx2.ConnectTimeout("slow")), False),
        (caused(openai.APITimeoutError(REQUEST), httpx2.ReadTimeout("slow")), True),
        (caused(openai.APIConnectionError(request=REQUEST), httpx2.RemoteProtocolError("cut")), True),
        (by_anthropic(200, "overloaded_error"), True),
        (openai.APIError("failed", REQUEST, body={"type": "server_error"}), True),
        (ConnectionError("the stream broke off"), True),
        (json.JSONDecodeError("cut", "{", 0), True),
    ],
    ids=repr,
)
def test_what_may_have_cost_something(error: Exception, *, may: bool) -> None:
    """A request that was refused, or never sent, costs nothing; one whose reply got lost may."""
    assert may == may_have_cost(error)


def test_usage_that_an_error_reports() -> None:
    """It is taken as it is; what is no report is none."""
    completion = ChatCompletion.model_validate(
        {
            "id": "c",
            "choices": [],
            "created": 0,
            "model": "m",
            "object": "chat.completion",
            "usage": {"prompt_tokens": 70, "completion_tokens": 9, "total_tokens": 79},
        }
    )
    tokens = usage_of_error(openai.LengthFinishReasonError(completion=completion))
    assert tokens is not None
    assert (70, 9, False) == (tokens.input, tokens.output, tokens.estimated)
    assert usage_of_error(by_openai(500)) is None
    assert usage_of_error(TypeError("a bug")) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0.0),
        ({"retry-after": "2"}, 2.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Thu, 01 Jan 1970 00:01:30 GMT"}, 30.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:30 GMT"}, 0.0),
        ({"retry-after": "soon"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "nan"}, 0.0),
        ({"retry-after": "inf"}, 0.0),
    ],
)
def test_how_long_a_provider_asks_to_be_left_alone(headers: dict[str, str], seconds: float) -> None:
    """In seconds, in milliseconds or until a date; what makes no sense counts for nothing."""
    assert seconds == asked_pause(by_openai(429, **headers), 60.0)
