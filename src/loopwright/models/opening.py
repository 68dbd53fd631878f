"""`open_model`: a chat model by its name."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Literal

from langchain_core.language_models import BaseChatModel
from pydantic import ValidationError

from loopwright.errors import ConfigurationError

from .protocol import Constraint, speak_json

DEFAULT_OPENAI_MODEL = "openai:gpt-5-mini"
_NO_RETRIES: Mapping[str, Any] = {"max_retries": 0}
"""An agent tries again by itself, where each attempt is reserved and counted; the client's own ones nobody sees."""
FORMS = (
    "'openai:MODEL' (such as 'openai:gpt-5-mini'), 'anthropic:MODEL' (such as 'anthropic:claude-haiku-4-5'), "
    "'openai-json:MODEL' or 'anthropic-json:MODEL' for one that writes its calls as JSON, "
    "or 'demo' for the rule-based stand-in"
)
_SPEAKING_JSON = {"openai-json": "openai", "anthropic-json": "anthropic"}
"""Providers in a name that says what `protocol="json"` says in a program."""


def open_model(
    name: str | BaseChatModel,
    /,
    *,
    protocol: Literal["tools", "json"] = "tools",
    constrain: Constraint | None = None,
    **options: Any,
) -> BaseChatModel:
    """Open a chat model.

    Args:
        name: `"openai:gpt-5-mini"` (any server that speaks OpenAI's protocol, by `base_url` or `OPENAI_BASE_URL`),
            `"anthropic:claude-haiku-4-5"` (needs the extra `loopwright[anthropic]`), `"demo"`, or a chat model object
            of LangChain's, which is returned as it is. `"openai-json:smollm2"` is `"openai:smollm2"` with
            `protocol="json"`, for where only a name can be given.
        protocol: `"tools"`: the model calls tools by its provider's own means. `"json"`: it writes its decisions as
            JSON objects, for models and servers that know no tools.
        constrain: With `"json"`, what is sent as `response_format`, so that the server lets nothing else through:
            `"json_schema"` (a schema of all decisions), `"json_object"`, or None: nothing is sent.
        **options: Handed to `ChatOpenAI` or `ChatAnthropic` as they are; nothing optional is sent unless it stands
            here. A model object, and the demo, take none. The client's own retries are off: an agent has its own.

    Raises:
        ConfigurationError: If the name has none of these forms, an option is unknown, the key is missing, or the
            provider's client is not installed.
    """
    provider, colon, model = name.partition(":") if isinstance(name, str) else ("", "", "")
    if provider in _SPEAKING_JSON and model:
        name, protocol = f"{_SPEAKING_JSON[provider]}{colon}{model}", "json"
    opened = _open(name, options)
    if protocol == "json":
        return speak_json(opened, constrain=constrain)
    if protocol != "tools":
        raise ConfigurationError(f"protocol is {protocol!r}; give 'tools' or 'json'", option="protocol")
    if constrain is not None:
        text = f"constrain={constrain!r} shapes the JSON protocol; give protocol='json' with it"
        raise ConfigurationError(text, option="constrain")
    return opened


def _open(name: str | BaseChatModel, options: dict[str, Any]) -> BaseChatModel:
    if isinstance(name, BaseChatModel):
        _refuse("a model object", options)
        return name
    provider, _, model = name.partition(":")
    if provider == "demo" and not model:
        from .demo import DemoModel

        _refuse("the demo", options)
        return DemoModel()
    if provider == "openai" and model:
        return _openai(model, options)
    if provider == "anthropic" and model:
        return _anthropic(model, options)
    raise ConfigurationError(f"no model is known by the name {name!r}; the forms are {FORMS}", model=name)


def _refuse(what: str, options: Mapping[str, Any]) -> None:
    if options:
        raise ConfigurationError(f"{what} takes no option {', '.join(sorted(options))}", options=sorted(options))


def _openai(model: str, options: dict[str, Any]) -> BaseChatModel:
    if not (options.get("api_key") or os.environ.get("OPENAI_API_KEY")):
        text = f"the model 'openai:{model}' needs a key; set OPENAI_API_KEY (any text will do for a local server)"
        raise ConfigurationError(text, model=model, variable="OPENAI_API_KEY")
    from .openai_chat import OpenAIChat  # imported late: it costs a second

    _check_options("ChatOpenAI", OpenAIChat, model, options)
    return _built("ChatOpenAI", model, lambda: OpenAIChat(model=model, **{**_NO_RETRIES, **options}))


def _anthropic(model: str, options: dict[str, Any]) -> BaseChatModel:
    if not (options.get("api_key") or os.environ.get("ANTHROPIC_API_KEY")):
        text = f"the model 'anthropic:{model}' needs a key; set ANTHROPIC_API_KEY"
        raise ConfigurationError(text, model=model, variable="ANTHROPIC_API_KEY")
    try:
        from .anthropic_chat import AnthropicChat
    except ImportError as error:
        text = f"the model 'anthropic:{model}' needs its client; install it with: pip install 'loopwright[anthropic]'"
        raise ConfigurationError(text, model=model, extra="anthropic") from error
    _check_options("ChatAnthropic", AnthropicChat, model, options)
    return _built("ChatAnthropic", model, lambda: AnthropicChat(model_name=model, **{**_NO_RETRIES, **options}))


def _check_options(client: str, kind: type[BaseChatModel], model: str, options: Mapping[str, Any]) -> None:
    aliases = {field.alias for field in kind.model_fields.values() if field.alias}
    known = {*kind.model_fields, *aliases}
    unknown = sorted(set(options) - known)
    if unknown:
        close = get_close_matches(unknown[0], sorted(known), 1)
        hint = f"; did you mean {close[0]}?" if close else ""
        raise ConfigurationError(f"{client} has no option {', '.join(unknown)}{hint}", model=model, options=unknown)
    if twice := sorted({"model", "model_name"} & {*options}):
        text = f"the model is {model!r} by its name, and {twice[0]}={options[twice[0]]!r}; leave the option out"
        raise ConfigurationError(text, model=model, options=twice)


def _built(client: str, model: str, build: Callable[[], BaseChatModel]) -> BaseChatModel:
    """Build a client.

    Raises:
        ConfigurationError: If it refuses an option. Values are not told, as pydantic would: a key is among them.
    """
    try:
        return build()
    except ValidationError as error:
        found = {str(item["loc"][0]) if item["loc"] else "its options": item["msg"] for item in error.errors()}
        wrong = "; ".join(f"{option}: {said}" for option, said in found.items())
        raise ConfigurationError(f"{client} refuses {wrong}", model=model, options=sorted(found)) from None


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
