"""`open_model`: a chat model by its name."""

from __future__ import annotations

import os
from typing import Any

from langchain_core.language_models import BaseChatModel

from loopwright.errors import ConfigurationError

DEFAULT_OPENAI_MODEL = "openai:gpt-5-mini"
FORMS = "'openai:MODEL' (such as 'openai:gpt-5-mini'), or 'demo' for the rule-based stand-in"


def open_model(name: str | BaseChatModel, /, **options: Any) -> BaseChatModel:
    """Open a chat model.

    Args:
        name: `"openai:gpt-5-mini"` (any server that speaks OpenAI's protocol, by `base_url` or `OPENAI_BASE_URL`),
            `"demo"`, or a chat model object of LangChain's, which is returned as it is.
        **options: Handed to `ChatOpenAI` as they are; nothing optional is sent unless it stands here.

    Raises:
        ConfigurationError: If the name has none of these forms, an option is unknown, or the key is missing.
    """
    if isinstance(name, BaseChatModel):
        return name
    provider, _, model = name.partition(":")
    if provider == "demo" and not model:
        from .demo import DemoModel

        return DemoModel()
    if provider == "openai" and model:
        return _openai(model, options)
    raise ConfigurationError(f"no model is known by the name {name!r}; the forms are {FORMS}", model=name)


def _openai(model: str, options: dict[str, Any]) -> BaseChatModel:
    if not (options.get("api_key") or os.environ.get("OPENAI_API_KEY")):
        text = f"the model 'openai:{model}' needs a key; set OPENAI_API_KEY (any text will do for a local server)"
        raise ConfigurationError(text, model=model, variable="OPENAI_API_KEY")
    from .openai_chat import OpenAIChat  # imported late: it costs a second

    unknown = sorted(set(options) - set(OpenAIChat.model_fields) - _aliases(OpenAIChat))
    if unknown:
        raise ConfigurationError(f"ChatOpenAI has no option {', '.join(unknown)}", model=model, options=unknown)
    return OpenAIChat(model=model, **options)


def _aliases(kind: type[BaseChatModel]) -> set[str]:
    return {field.alias for field in kind.model_fields.values() if field.alias}


def default_model() -> BaseChatModel:
    """Open the model that the environment names.

    `LOOPWRIGHT_MODEL` if it is set, else OpenAI's default when `OPENAI_API_KEY` is set, else the demo model.

    Raises:
        ConfigurationError: If `LOOPWRIGHT_MODEL` names a model that cannot be opened.
    """
    named = os.environ.get("LOOPWRIGHT_MODEL")
    if named:
        return open_model(named)
    return open_model(DEFAULT_OPENAI_MODEL if os.environ.get("OPENAI_API_KEY") else "demo")


def model_name(model: BaseChatModel) -> str:
    """Return how the ledger names a model."""
    params: dict[str, Any] = dict(model._get_ls_params())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # LangChain's one way to ask what it is
    return str(params.get("ls_model_name") or getattr(model, "_llm_type", type(model).__name__))
