"""Opening a model by its name."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright import open_model
from loopwright.errors import ConfigurationError
from loopwright.models import default_model, hide_keys, model_name
from loopwright.models.demo import DemoModel
from loopwright.testing import ScriptedModel


@pytest.mark.parametrize("name", ["", "gpt-5-mini", "openai", "openai:", "demo:x", "llama:tiny"])
def test_an_unknown_name(name: str) -> None:
    """The message lists the forms."""
    with pytest.raises(ConfigurationError, match="the forms are"):
        open_model(name)


def test_a_missing_key() -> None:
    """The message names the variable."""
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        open_model("openai:gpt-5-mini")


def test_anthropic() -> None:
    """By name, with its own key, and known by its name in the ledger."""
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        open_model("anthropic:claude-haiku-4-5")
    with pytest.raises(ConfigurationError, match="ChatAnthropic has no option temprature"):
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
    ],
)
def test_what_is_secret_beside_the_key_stays_out_of_errors(options: dict[str, Any]) -> None:
    """Gateways take theirs in a header, in the query or in the address."""
    model = open_model("openai:m", api_key=SecretStr("another-secret"), **options)
    assert "refused: ***" in hide_keys("refused: quite-secret-1", model)
