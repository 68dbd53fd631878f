"""Keys stay out of what is stored and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

_SHORTEST = 8
"""What is shorter is a local server's stand-in for a key, and would blot out half the text."""

_HOLDERS = ("default_headers", "default_query", "extra_headers", "extra_query")
_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")


def hide_keys(text: str, model: BaseChatModel) -> str:
    """Take a model's own keys out of a text: servers quote them when they refuse one."""
    for key in sorted(set(_keys(model)), key=len, reverse=True):
        if len(key) >= _SHORTEST:
            text = text.replace(key, "***")
    return text


def _keys(value: Any) -> Iterator[str]:
    """Yield the secrets of a model, of the models inside it, and what it sends as headers."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseChatModel):
        for name, part in vars(value).items():
            yield from _sent(name, part)
    elif isinstance(value, list | tuple):
        for part in cast("list[Any]", value):
            yield from _keys(part)


def _sent(name: str, part: Any) -> Iterator[str]:
    """Yield the secrets of one field: of headers and queries all that they hold, of an address its password."""
    if name in _HOLDERS:
        yield from _headers(part)
    elif name == "model_kwargs" and isinstance(part, Mapping):
        for own, value in cast("Mapping[str, object]", part).items():
            yield from _sent(own, value)
    elif isinstance(part, str):
        yield from _PASSWORD.findall(part)
    else:
        yield from _keys(part)


def _headers(value: object) -> Iterator[str]:
    """Yield what headers hold, and the part of it behind a word such as `Bearer`."""
    if isinstance(value, Mapping):
        for sent in cast("Mapping[str, object]", value).values():
            yield str(sent)
            yield str(sent).rpartition(" ")[2]
