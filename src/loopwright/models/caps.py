"""How long a model's reply can be, and how it is told to be shorter."""

from __future__ import annotations

from typing import Any

from langchain_core.language_models import BaseChatModel

UNKNOWN_OUTPUT = 32_768
"""Output tokens that a reply is taken to have at most, where neither the user nor LangChain's list says."""

UNKNOWN_WINDOW = 128_000
"""Tokens of a context window, where LangChain's list does not say."""

_PARAMETERS = ("max_tokens", "max_output_tokens", "num_predict")
"""What clients call the longest reply. OpenAI's takes `max_tokens` and sends what the model wants."""


def most_output(model: BaseChatModel) -> int:
    """Return the longest reply of a model, in tokens: as the user set it, else as listed, else a guess."""
    model = innermost(model)
    given = getattr(model, _parameter(model), None)
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return given
    profile: dict[str, Any] = dict(getattr(model, "profile", None) or {})
    listed = profile.get("max_output_tokens")
    return listed if isinstance(listed, int) and listed > 0 else UNKNOWN_OUTPUT


def context_window(model: BaseChatModel) -> int:
    """Return how many tokens of input a model takes, as listed, else as most do."""
    profile: dict[str, Any] = dict(getattr(innermost(model), "profile", None) or {})
    listed = profile.get("max_input_tokens")
    return listed if isinstance(listed, int) and listed > 0 else UNKNOWN_WINDOW


def cap_options(model: BaseChatModel, tokens: int) -> dict[str, Any]:
    """Return the option that tells the model's provider to stop after so many output tokens."""
    return {_parameter(innermost(model)): tokens}


def innermost(model: BaseChatModel) -> BaseChatModel:
    """Return the model that talks to a provider: others are wrapped around it, and hand on what they are given."""
    while isinstance(inner := getattr(model, "inner", None), BaseChatModel):
        model = inner
    return model


def _parameter(model: BaseChatModel) -> str:
    """Name the parameter by the client's own fields; one without any gets LangChain's standard name."""
    fields = type(model).model_fields
    return next((name for name in _PARAMETERS if name in fields), _PARAMETERS[0])
