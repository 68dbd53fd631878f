"""Opening a model by its name."""

from __future__ import annotations

import asyncio
import re
import sys
import traceback
from typing import Any

import httpx2
import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.world.wires import KEY, OPENAI, STREAM

from loopwright import RunResult, Runs, create_agent, open_checkpoints, open_model
from loopwright.errors import ConfigurationError
from loopwright.models import default_model, hide_keys, model_name
from loopwright.models.demo import DemoModel
from loopwright.models.protocol import JsonProtocol
from loopwright.testing import Failure, ScriptedModel


@pytest.mark.parametrize("name", ["", "gpt-5-mini", "openai", "openai:", "demo:x", "llama:tiny"])
def test_an_unknown_name(name: str) -> None:
    """The message lists the forms."""
    with pytest.raises(ConfigurationError, match="the forms are"):
        open_model(name)


def test_a_missing_key() -> None:
    """The message names the variable."""
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        open_model("openai:gpt-5-mini")


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_a_name_can_say_that_a_model_writes_json(provider: str) -> None:
    """It opens the same model, known by the same name, with or without the option that says so too."""
    for protocol in ("tools", "json"):
        model = open_model(f"{provider}-json:some-json:0.6b", api_key=KEY, protocol=protocol)
        assert isinstance(model, JsonProtocol)
        assert "some-json:0.6b" == model_name(model)
    for wrong in ("demo-json", "-json:m", f"{provider}-json", f"{provider}-jsn:m"):
        with pytest.raises(ConfigurationError, match="no model is known"):
            open_model(wrong, api_key=KEY)


def test_the_environment_can_choose_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no program is there to say it."""
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "openai-json:smollm2")
    assert isinstance(default_model(), JsonProtocol)


def test_anthropic() -> None:
    """By name, with its own key, and known by its name in the ledger."""
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        open_model("anthropic:claude-haiku-4-5")
    with pytest.raises(ConfigurationError, match="ChatAnthropic has no option temprature; did you mean temperature"):
        open_model("anthropic:claude-haiku-4-5", api_key=SecretStr("k"), temprature=1)
    assert "claude-haiku-4-5" == model_name(open_model("anthropic:claude-haiku-4-5", api_key=SecretStr("k")))


def test_a_client_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the extra."""
    monkeypatch.setitem(sys.modules, "langchain_anthropic", None)
    monkeypatch.delitem(sys.modules, "loopwright.models.anthropic_chat", raising=False)
    with pytest.raises(ConfigurationError, match=r"loopwright\[anthropic\]"):
        open_model("anthropic:claude-haiku-4-5", api_key=SecretStr("k"))


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("demo", {"temperature": 0}, "temperature"),
        (ScriptedModel([]), {"temperature": 0}, "temperature"),
        ("demo", {"protocol": "xml"}, "protocol"),
        ("demo", {"constrain": "json_schema"}, "protocol='json'"),
        ("demo", {"protocol": "json", "constrain": "yaml"}, "json_schema"),
    ],
)
def test_options_that_fit_nothing_are_refused(name: Any, options: dict[str, Any], match: str) -> None:
    """No option is dropped without a word."""
    with pytest.raises(ConfigurationError, match=match):
        open_model(name, **options)


def test_an_unknown_option() -> None:
    """A misspelt one is not dropped."""
    with pytest.raises(ConfigurationError, match="temprature"):
        open_model("openai:gpt-5-mini", api_key=SecretStr("k"), temprature=1)


def test_openai() -> None:
    """By name, with options handed on, and known by its name in the ledger."""
    model = open_model("openai:gpt-5-mini", api_key=SecretStr("k"), max_retries=5)
    assert isinstance(model, ChatOpenAI)
    assert ("gpt-5-mini", 5) == (model_name(model), model.max_retries)


def test_a_model_object_is_taken_as_it_is() -> None:
    """Any LangChain chat model."""
    model = ScriptedModel([])
    assert open_model(model) is model


def test_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the environment names; OpenAI with a key; else the stand-in that needs none."""
    assert isinstance(default_model(), DemoModel)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert isinstance(default_model(), ChatOpenAI)
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "demo")
    assert isinstance(default_model(), DemoModel)
    monkeypatch.setenv("LOOPWRIGHT_MODEL", "openai:")
    with pytest.raises(ConfigurationError):
        default_model()


@pytest.mark.parametrize(
    "options",
    [
        {"default_headers": {"X-Key": "Bearer quite-secret-1"}},
        {"model_kwargs": {"extra_headers": {"X-Key": "quite-secret-1"}}},
        {"default_query": {"api-key": "quite-secret-1"}},
        {"base_url": "http://ana:quite-secret-1@localhost:9/v1"},
        {"extra_body": {"api_key": "quite-secret-1"}},
        {"extra_body": {"routes": [{"provider": "x", "auth": {"token": "quite-secret-1"}}]}},
        {"model_kwargs": {"gateway": {"authorization": "Basic quite-secret-1"}}},
        {"http_client": httpx2.Client(headers={"X-Api-Key": "quite-secret-1"})},
    ],
)
def test_what_is_secret_beside_the_key_stays_out_of_errors(options: dict[str, Any]) -> None:
    """Gateways take theirs in a header, in the query or in the address."""
    model = open_model("openai:m", api_key=SecretStr("another-secret"), **options)
    said = "refused for provider x and json_object: quite-secret-1"
    assert "refused for provider x and json_object: ***" == hide_keys(said, model)


@pytest.mark.parametrize("wire", [{**OPENAI, "options": {}}, {**OPENAI, "options": STREAM}])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_key_that_a_function_brings_stays_out_of_errors(wire: dict[str, Any], *, is_async: bool) -> None:
    """The server quotes what it was sent; nothing of it is in the result, the ledger, or the log."""
    keys = iter(["the-first-one-of-many", "the-second-one-of-many"])

    def fresh() -> str:
        return next(keys)

    async def afresh() -> str:
        return next(keys)

    refusals = [Failure(401, f"Wrong key: the-{number}-one-of-many.") for number in ("first", "second")]
    with wire["server"](refusals) as server:
        model = open_model(wire["name"], api_key=afresh if is_async else fresh, base_url=server.base_url)
        with open_checkpoints("memory:") as checkpoints:

            async def main() -> list[RunResult]:
                async with Runs(create_agent(model, []), checkpoints) as runs:
                    return [await runs.run("Hi.", thread_id=thread) for thread in "ab"]

            results = asyncio.run(main())
    assert ["Bearer the-first-one-of-many", "Bearer the-second-one-of-many"] == [
        request.headers["authorization"] for request in server.requests
    ]
    assert "one-of-many" not in str(results)
    assert all("Wrong key: ***" in result.error for result in results)


@pytest.mark.parametrize(
    "key",
    [
        "sk-proj-abcdefghijklmnop",
        "gsk_abcdefghijklmnopqrstuv",
        "AIzaSyA0123456789abcdefghijklmnopqrstu",
        "Bearer abcdef.ghi",
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.SflKxwRJ",
    ],
)
def test_what_looks_like_a_key_stays_out_of_errors(key: str) -> None:
    """Whosever it is."""
    said = hide_keys(f"refused ({key}).", DemoModel())
    assert "***" in said
    assert key.removeprefix("Bearer ") not in said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"temperature": "hot"}, "ChatOpenAI refuses temperature: Input should be a valid number"),
        ({"n": 2, "streaming": True}, "ChatOpenAI refuses its options: Value error, n must be 1 when streaming."),
        ({"model": "other"}, "the model is 'm' by its name, and model='other'"),
    ],
)
def test_what_a_client_refuses_is_told_without_values(options: dict[str, Any], said: str) -> None:
    """Its own message would show all options, the key and the headers among them."""
    secret: dict[str, Any] = {"api_key": KEY, "model_kwargs": {"extra_headers": {"x": "quite-secret-1"}}}
    with pytest.raises(ConfigurationError, match=re.escape(said)) as caught:
        open_model("openai:m", **secret, **options)
    told = "".join(traceback.format_exception(caught.value))
    assert KEY not in told
    assert "quite-secret" not in told
