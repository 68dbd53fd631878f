"""What a tool declares about itself, and how one call of it is run."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

from loopwright.errors import ConfigurationError
from loopwright.state import Happened, NotHappened


class EffectKind(StrEnum):
    """What calling a tool does to the world, in the words of HTTP."""

    READ = "read"
    """Safe: nothing changes. Allowed by default; may be repeated at will."""
    IDEMPOTENT = "idempotent"
    """Changes something; once or twice with one key is the same. Asks by default."""
    WRITE = "write"
    """Changes something each time it runs. Asks by default; never runs twice for one call."""


@dataclass(frozen=True, slots=True)
class Effect:
    """What a tool body gets when it has a parameter of this type; the model never sees the parameter.

    Outside a run (a unit test that calls the tool by itself) the key is fresh for each call.
    """

    key: str = field(default_factory=lambda: uuid.uuid4().hex)
    """Hand it to the service behind the tool as its idempotency key: the same for each try of the same call."""
    id: str = ""
    """Names the effect in the ledger; `Runs.resolve` takes it."""
    run_id: str = ""
    thread_id: str = ""


Verify = Callable[[Effect, Mapping[str, Any]], Happened | NotHappened | None]
"""A hook that finds out whether an effect happened; None when it cannot tell."""


@dataclass(frozen=True)
class Contract:
    """A tool's declared behaviour, and the two doors by which it is run."""

    name: str
    description: str
    schema: type[BaseModel]
    """Validates the model's arguments; what it dumps is what a person is shown and what runs."""
    run: Callable[[dict[str, Any], Effect], Any]
    """Calls the tool, blocking. Takes canonical arguments."""
    arun: Callable[[dict[str, Any], Effect], Awaitable[Any]] | None = None
    """The same, awaited; None for a tool that can only block."""
    effect: EffectKind = EffectKind.WRITE
    declared: bool = False
    """Whether the effect was declared; `write` is assumed otherwise."""
    timeout: float = 30.0
    """Seconds for one call."""
    key: str = ""
    """A template over the arguments, `"refund:{order_id}"`; empty: the call's place in its run."""
    untrusted: bool = False
    """Whether its results hold text written by strangers."""
    verify: Verify | None = None
    hands_over: bool = False
    """Whether a person takes over once it has succeeded: the run then ends `escalated`."""

    @property
    def is_read(self) -> bool:
        """Whether a call needs no claim in the ledger."""
        return self.effect is EffectKind.READ

    def canonical_args(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Validate arguments and return them as plain data, defaults filled in.

        Raises:
            pydantic.ValidationError: If they do not fit the schema.
        """
        return self.schema.model_validate(dict(args)).model_dump(mode="json")

    def effect_key(self, args: Mapping[str, Any]) -> str:
        """Fill the key template; empty when the tool has none."""
        return f"{self.name}:{self.key.format(**args)}" if self.key else ""


def check_contract(contract: Contract) -> Contract:
    """Refuse a contract that could not be kept.

    Raises:
        ConfigurationError: Naming the tool, the option and the way out.
    """
    where = f"tool {contract.name!r}"
    if not contract.description.strip():
        text = f"{where} has no docstring: the model reads it to choose; say what the tool does and when to use it"
        raise ConfigurationError(text, tool=contract.name)
    if not contract.timeout > 0:
        text = f"{where}: timeout is {contract.timeout!r}; give seconds above 0"
        raise ConfigurationError(text, tool=contract.name, option="timeout")
    if contract.is_read and (contract.key or contract.verify):
        text = f"{where} is declared 'read', yet has a key or a verify hook; a read has no effect to name or to verify"
        raise ConfigurationError(text, tool=contract.name, option="effect")
    _check_key(contract, where)
    secret = [
        name for name, field in contract.schema.model_fields.items() if field.annotation in (SecretStr, SecretBytes)
    ]
    if secret:
        text = f"{where}: {', '.join(secret)} would be a secret that the model writes, and the transcript keeps; "
        raise ConfigurationError(text + "let the tool fetch it by itself", tool=contract.name)
    return contract


def _check_key(contract: Contract, where: str) -> None:
    names = {name for _, name, _, _ in Formatter().parse(contract.key) if name is not None}
    unknown = sorted(names - set(contract.schema.model_fields))
    if unknown or (contract.key and not names):
        text = f"{where}: key {contract.key!r} must name parameters of the tool"
        text += f"; it has no {', '.join(unknown)}" if unknown else ", or all its calls would share one effect"
        raise ConfigurationError(text, tool=contract.name, option="key")
