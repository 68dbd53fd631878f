"""What a server says of its tools, and how much of it counts. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from loopwright.errors import ConfigurationError
from loopwright.state import digest
from loopwright.tools.options import EffectName, ToolOptions

MAX_NAME = 64
"""Characters: OpenAI and Anthropic take no longer name."""
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_DIGITS = 8


@dataclass(frozen=True, slots=True)
class Described:
    """A tool as its server describes it."""

    name: str
    description: str
    schema: dict[str, Any] = field(hash=False)
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None

    @property
    def version(self) -> str:
        """A digest of all that a person or a rule relied on: another one is another tool."""
        hints = [self.read_only, self.destructive, self.idempotent]
        return digest("mcp tool", self.name, self.description, self.schema, hints)


def offered_name(server: str, name: str) -> str:
    """Return the name that the model sees: `shop__refund`; legal for every provider, and the same in every process.

    >>> offered_name("shop", "refund")
    'shop__refund'
    >>> offered_name("files", "dir/list.all")
    'files__dir_list_all'
    """
    whole = f"{server}__{_ILLEGAL.sub('_', name)}"
    if len(whole) <= MAX_NAME:
        return whole
    return f"{whole[: MAX_NAME - _DIGITS - 1]}_{digest(name)[:_DIGITS]}"


def hinted_effect(tool: Described, *, trust_hints: bool) -> EffectName | None:
    """Return the effect that the hints amount to; None for undeclared, which counts as `write`.

    A hint can make a tool stricter by itself, and looser only where the server is trusted.
    """
    if tool.destructive:
        return "write"
    if not trust_hints:
        return None
    if tool.read_only:
        return "read"
    return "idempotent" if tool.idempotent else None


def declared_options(name: str, tool: Described, own: ToolOptions, *, trust_hints: bool) -> ToolOptions:
    """Return what a tool declares: the service's own words first, then what the hints amount to.

    Raises:
        ConfigurationError: If the service calls a tool a `read` of which the server says that it destroys.
    """
    options: ToolOptions = {"untrusted": True, **own}
    if own.get("effect") == "read" and tool.destructive:
        text = f"tool {name!r} is declared 'read', yet its server says that it destroys (destructiveHint)"
        text += "; declare it 'write', and allow() its calls if nobody shall be asked"
        raise ConfigurationError(text, tool=name, option="effect")
    effect = own.get("effect") or hinted_effect(tool, trust_hints=trust_hints)
    if effect is not None:
        options["effect"] = effect
    return options


def check_distinct(named: Iterable[tuple[str, str]]) -> None:
    """Refuse tools that would share a name.

    Raises:
        ConfigurationError: Naming both, and the way out.
    """
    seen: dict[str, str] = {}
    for name, given in named:
        if name in seen:
            text = f"the tools {seen[name]!r} and {given!r} would both be called {name!r}; leave_out={{{name!r}}}"
            raise ConfigurationError(text, tool=name)
        seen[name] = given
