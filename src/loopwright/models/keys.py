"""Keys stay out of what is stored and shown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

_SHORTEST = 8
"""What is shorter is a local server's stand-in for a key, and would blot out half the text."""

_HOLDERS = re.compile(r"headers|query$", re.IGNORECASE)
"""Fields that hold what is sent beside a request's body: all of it can be a secret."""
_NAMES = re.compile(r"api[_-]?key|auth|cookie|credential|password|secret|(^|[_-])(key|token)$", re.IGNORECASE)
"""Names of what is secret, within all else that is sent."""
_CLIENTS = ("root_client", "root_async_client", "client", "async_client", "_client", "_async_client")
_CLIENTS_KEYS = ("api_key", "auth_token", "azure_ad_token")
"""Where a provider's client keeps the key that it has sent: also one that a function brought."""
_HTTP_CLIENTS = ("http_client", "http_async_client")
_PASSWORD = re.compile(r"://[^/@\s]*:([^/@\s]+)@")
_LOOKS = re.compile(
    r"\b(?:sk|pk|xai|xox[abp])-[\w-]{16,}|\b(?:gsk|hf)_\w{20,}|\bAIza[\w-]{30,}"
    r"|\beyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+|(?<=Bearer )[\w.~+/-]{8,}"
)
"""What has the form of a key. A function may have brought another one since."""


def hide_keys(text: str, model: BaseChatModel) -> str:
    """Take a model's own keys, and what looks like one, out of a text: servers quote them when they refuse one."""
    for key in sorted(set(_keys(model)), key=len, reverse=True):
        if len(key) >= _SHORTEST:
            text = text.replace(key, "***")
    return _LOOKS.sub("***", text)


def _keys(value: Any) -> Iterator[str]:
    """Yield the secrets of a model, of the models inside it, and what it sends as headers."""
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseChatModel):
        for name, part in vars(value).items():
            yield from _of_field(name, part)
    elif isinstance(value, list | tuple):
        for part in cast("list[Any]", value):
            yield from _keys(part)
    elif isinstance(value, Mapping):
        for key, part in cast("Mapping[object, Any]", value).items():
            yield from _of_field(str(key), part)


def _of_field(name: str, part: Any) -> Iterator[str]:
    """Yield the secrets of one field: of headers and queries all that they hold, of an address its password."""
    if name in _CLIENTS:
        yield from (key for own in _CLIENTS_KEYS if isinstance(key := getattr(part, own, None), str))
    elif name in _HTTP_CLIENTS:
        headers: object = getattr(part, "headers", None)
        yield from _keys(dict(cast("Mapping[str, str]", headers)) if isinstance(headers, Mapping) else {})
    elif _HOLDERS.search(name) and isinstance(part, Mapping):
        for value in cast("Mapping[str, object]", part).values():
            yield from _words(str(value))
    elif isinstance(part, str):
        yield from _PASSWORD.findall(part)
        if _NAMES.search(name):
            yield from _words(part)
    else:
        yield from _keys(part)


def _words(sent: str) -> Iterator[str]:
    """Yield a value, and the part of it behind a word such as `Bearer`."""
    yield sent
    yield sent.rpartition(" ")[2]
