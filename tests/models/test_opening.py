"""Opening a model by its name."""

from __future__ import annotations

import pytest
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from loopwright import open_model
from loopwright.errors import ConfigurationError
from loopwright.models import default_model, model_name
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
