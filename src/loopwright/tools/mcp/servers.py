"""Where a server is, and the secrets that go there and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast
from urllib.parse import urlsplit

from pydantic import SecretStr
from typing_extensions import TypedDict

from loopwright.errors import ConfigurationError

Secret = str | SecretStr | Callable[[], str | SecretStr]
"""A value; or what returns one, called anew for each connection, so that a token can be fresh.

A plain text is hidden, too, where it is a header, or a variable whose name says that it is a secret.
"""
Transport = Literal["stdio", "http", "streamable_http", "sse"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_STDIO = ("command", "args", "env", "cwd")
_HTTP = ("url", "headers")
_SHORTEST = 6
"""Characters of a secret below which it is not looked for in texts: it would be found in words."""
_HIDDEN = "(secret)"
_SECRET_NAME = re.compile(r"token|secret|password|passwd|passphrase|credential|auth|key|dsn|cookie", re.IGNORECASE)
"""Of a variable whose value is taken for a secret, although it is given as a plain text."""


class McpServer(TypedDict, total=False):
    """How a server is reached: by a command that is started here, or at a URL."""

    command: str
    """Started as a process of its own, which ends with the tools; spoken to by its standard input and output."""
    args: Sequence[str]
    env: Mapping[str, Secret]
    """Laid over a few harmless variables of this process, such as PATH; the rest of them the server does not get."""
    cwd: str | Path
    url: str
    """`http://` or `https://`. Secrets belong into the headers: a URL lands in logs."""
    headers: Mapping[str, Secret]
    transport: Transport
    """`http` (streamable) for a URL, unless it is `sse`; `stdio` for a command."""


def check_server(name: object, given: object) -> McpServer:
    """Return a server's settings.

    Raises:
        ConfigurationError: Naming the server and the setting, never a value that can be a secret.
    """
    if not isinstance(name, str) or not _NAME.fullmatch(name) or "__" in name:
        text = f"the MCP server {name!r} needs a name of letters, digits, '-' and single '_', at most 40 characters"
        raise ConfigurationError(text, server=str(name))
    if not isinstance(given, Mapping):
        text = (
            f"the MCP server {name!r} is a {type(given).__name__}; give {{'command': …, 'args': […]}} or {{'url': …}}"
        )
        raise ConfigurationError(text, server=name)
    settings = dict(cast("Mapping[str, Any]", given))
    if unknown := sorted(set(settings) - set(McpServer.__annotations__)):
        known = ", ".join(McpServer.__annotations__)
        text = f"the MCP server {name!r} has no setting {', '.join(unknown)}; there are {known}"
        raise ConfigurationError(text, server=name)
    _check_kind(name, settings)
    _check_values(name, settings)
    return cast("McpServer", settings)


def _check_kind(name: str, settings: Mapping[str, Any]) -> None:
    transport = settings.get("transport")
    is_local = "command" in settings
    if is_local == ("url" in settings):
        raise ConfigurationError(f"the MCP server {name!r} needs either a command or a url", server=name)
    wanted = ("stdio",) if is_local else ("http", "streamable_http", "sse")
    if transport is not None and transport not in wanted:
        text = f"the MCP server {name!r}: transport is {transport!r}; here it can be {', '.join(wanted)}"
        raise ConfigurationError(text, server=name)
    if foreign := [one for one in (_HTTP if is_local else _STDIO) if one in settings]:
        text = f"the MCP server {name!r}: {', '.join(foreign)} means nothing for a {'command' if is_local else 'url'}"
        raise ConfigurationError(text, server=name)


def _check_values(name: str, settings: Mapping[str, Any]) -> None:
    where = f"the MCP server {name!r}"
    for option in ("command", "url"):
        if option in settings and not (isinstance(settings[option], str) and settings[option]):
            raise ConfigurationError(f"{where}: {option} is no text", server=name)
    if not _is_texts(settings.get("args", ())):
        raise ConfigurationError(f"{where}: args is no list of texts", server=name)
    for option in ("env", "headers"):
        given: object = settings.get(option, {})
        if not isinstance(given, Mapping):
            raise ConfigurationError(f"{where}: {option} is no mapping of names to values", server=name)
        for key, value in cast("Mapping[object, object]", given).items():
            if not isinstance(key, str) or not (isinstance(value, str | SecretStr) or callable(value)):
                text = f"{where}: {option}[{key!r}] must be a text, a SecretStr, or a function that returns one"
                raise ConfigurationError(text, server=name)
    if "url" in settings:
        _check_url(where, name, settings["url"])


def _is_texts(given: object) -> bool:
    is_list = isinstance(given, Sequence) and not isinstance(given, str | bytes)
    return is_list and all(isinstance(one, str) for one in cast("Sequence[object]", given))


def _check_url(where: str, name: str, url: str) -> None:
    try:
        parts = urlsplit(url)
        has_password = parts.username is not None or parts.password is not None
    except ValueError:
        raise ConfigurationError(f"{where}: its url cannot be read", server=name) from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"{where}: its url must begin with http:// or https:// and a host", server=name)
    if has_password:
        text = f"{where}: its url holds a password; give headers={{'Authorization': …}}, which lands in no log"
        raise ConfigurationError(text, server=name)


class Vault:
    """The secrets of one server: read for each connection, and taken out of whatever comes back."""

    def __init__(self, name: str, settings: McpServer) -> None:
        """Keep the settings; nothing is read yet."""
        self._where = f"the MCP server {name!r}"
        self._settings = settings
        self._known: set[str] = set()

    def env(self) -> dict[str, str] | None:
        """Return the environment of the process; None for the default one."""
        return self._read("env", self._settings["env"]) if "env" in self._settings else None

    def headers(self) -> dict[str, str]:
        """Return the headers of every request."""
        return self._read("headers", self._settings.get("headers", {}))

    def hide(self, text: str) -> str:
        """Return a text without the secrets: a server may repeat what it was given."""
        for secret in sorted(self._known, key=len, reverse=True):
            text = text.replace(secret, _HIDDEN)
        return text

    def hide_in(self, value: Any) -> Any:
        """Do the same to all texts in JSON-like data."""
        if isinstance(value, str):
            return self.hide(value)
        if isinstance(value, Mapping):
            return {
                self.hide(str(key)): self.hide_in(one) for key, one in cast("Mapping[object, object]", value).items()
            }
        if isinstance(value, list):
            return [self.hide_in(one) for one in cast("list[object]", value)]
        return value

    def _read(self, option: str, given: Mapping[str, Secret]) -> dict[str, str]:
        values: dict[str, str] = {}
        for key, secret in given.items():
            try:
                value = secret() if callable(secret) else secret
                text = cast("object", value.get_secret_value() if isinstance(value, SecretStr) else value)
            except Exception as error:  # noqa: BLE001 -- whatever the service's function does
                what = f"{self._where}: {option}[{key!r}] could not be read: {type(error).__name__}"
                raise ConfigurationError(what) from None
            if not isinstance(text, str):
                what = f"{self._where}: {option}[{key!r}] gave a {type(text).__name__}; a text is wanted"
                raise ConfigurationError(what)
            if option == "headers" or not isinstance(secret, str) or _SECRET_NAME.search(key):
                self._known.update(_parts(text))
            values[key] = text
        return values


def _parts(secret: str) -> Iterable[str]:
    """Return what is looked for: the whole, and its words (`Bearer …`)."""
    return [
        one for one in (secret, *secret.split()) if len(one) >= _SHORTEST and one.lower() not in ("bearer", "basic")
    ]
