"""Keys stay out of what is stored and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

_SHORTEST = 8
"""What is shorter is a local server's stand-in for a key, and would blot out half the text."""


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
            yield from _headers(part) if name == "default_headers" else _keys(part)
    elif isinstance(value, list | tuple):
        for part in cast("list[Any]", value):
            yield from _keys(part)


def _headers(value: object) -> Iterator[str]:
    """Yield what headers hold, and the part of it behind a word such as `Bearer`."""
    if isinstance(value, Mapping):
        for sent in cast("Mapping[str, object]", value).values():
            yield str(sent)
            yield str(sent).rpartition(" ")[2]
