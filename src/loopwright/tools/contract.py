"""What a tool declares about itself, and how one call of it is run."""

from __future__ import annotations

import functools
import inspect
import json
import math
import re
import uuid
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, Decimal
from enum import StrEnum
from functools import cached_property
from string import Formatter
from typing import Any, Literal, cast, get_args

from pydantic import BaseModel, InstanceOf, PydanticUserError, ValidationError

from loopwright.errors import ConfigurationError, ToolError
from loopwright.state import NANO, Happened, NotHappened, Rate, is_amount, is_span, is_too_deep, storable

from .nested import decode_nested
from .retrying import Retry
from .schemas import DescribedArguments
from .surroundings import Surroundings


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
    around: InstanceOf[Surroundings] = field(default_factory=Surroundings, repr=False, compare=False)
    """For loopwright's own use: what else the tool can reach."""

    def progress(self, text: str) -> None:
        """Tell whoever follows the run how far the call has come: `effect.progress("3 of 10")`.

        Nothing of it is stored, and the model does not read it. May be called from any thread, at any time: that nobody
        listens any more, as when the call was given up long ago, must not end its work in the middle.
        """
        with suppress(Exception):
            self.around.report(text)

    costs: list[Decimal] = field(default_factory=list[Decimal], repr=False, compare=False)
    """What the body has reported so far; see `report_cost`."""

    def report_cost(self, dollars: Decimal) -> None:
        """Say that this call has cost so much, in US dollars; several reports add up. For a tool with a `price`.

        Raises:
            ToolError: If it is no `Decimal` from 0 on.
        """
        if not is_amount(dollars):
            raise ToolError(f"a cost of {dollars!r} was reported; give a Decimal from 0 on, in US dollars")
        self.costs.append(dollars)


def mentions_effect(hint: Any) -> bool:
    """Tell whether a type is `Effect`, or has it inside, as `Effect | None` and `Annotated[Effect, …]` have."""
    inner = getattr(hint, "__value__", hint)  # what a `type` statement names
    return (isinstance(inner, type) and issubclass(inner, Effect)) or any(mentions_effect(a) for a in get_args(inner))


Verified = Happened | NotHappened | None
Verify = Callable[[Effect, Mapping[str, Any]], Verified | Awaitable[Verified]]
"""A hook that finds out whether an effect happened, sync or async; None when it cannot tell."""


OnError = Literal["observe", "ask", "stop"]
"""What a failure of the tool means for the run."""

_LARGEST = 2**63


def _unfit(value: Any) -> str:
    """Say what is wrong with a number in JSON-like data; empty when nothing is."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else "is not finite"
    if isinstance(value, int):
        return "" if -_LARGEST <= value < _LARGEST else "has more than 64 bits"
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value).values()
    elif isinstance(value, list | tuple):
        parts = cast("Sequence[Any]", value)
    for part in parts:
        if how := _unfit(part):
            return how
    return ""


class UnfitArguments(ValueError):
    """Raised for arguments that the schema takes, and that could not be approved as they would run."""


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
    """Seconds for one call, with all its tries."""
    retry: Retry = field(default_factory=Retry)
    on_error: OnError = "observe"
    fallback: str = ""
    """The tool that the model is pointed to when this one fails; empty for none."""
    serial: str = ""
    """A template over the arguments: calls with one value of it never run at once, in any process."""
    key: str = ""
    """A template over the arguments, `"refund:{order_id}"`; empty: the call's place in its run."""
    untrusted: bool = False
    """Whether its results hold text written by strangers."""
    verify: Verify | None = None
    hands_over: bool = False
    """Whether a person takes over once it has succeeded: the run then ends `escalated`."""
    by_person: bool = False
    """Whether a call is a question to a person, whose answer is its result: it never runs."""
    reports: bool = False
    """Whether its body can tell how far it is: then whoever follows a run listens."""
    channels: tuple[str, ...] = ()
    """Those of the state that its parameters want by name; they must be there."""
    origin: str = ""
    """Who describes the tool to the model, where that is another party: `the MCP server 'shop'`."""
    version: str = ""
    """A digest of that description: a call that was judged under another one does not run."""

    price: Decimal | Literal["reported"] | None = None
    """US dollars for each call that is begun, beside what its body reports; None: nothing is counted."""

    rate: Rate | None = None
    """How often it may be called, over all runs and processes of one ledger; None: at will."""

    @property
    def price_nano(self) -> int:
        """What each call costs at least, in nano-dollars."""
        return int((self.price * NANO).to_integral_value(ROUND_CEILING)) if isinstance(self.price, Decimal) else 0

    @property
    def is_read(self) -> bool:
        """Whether a call needs no claim in the ledger."""
        return self.effect is EffectKind.READ

    @property
    def is_repeatable(self) -> bool:
        """Whether a second run of the same call does no harm."""
        return self.effect is not EffectKind.WRITE

    def serial_key(self, args: Mapping[str, Any]) -> str:
        """Fill the template of what must not run at once; empty when the tool has none."""
        return self.serial.format(**args) if self.serial else ""

    @cached_property
    def identity(self) -> object:
        """What an approval names the tool by: its schema; and its version, where another party can change it."""
        schema = self.schema.model_json_schema()
        return {"schema": schema, "version": self.version} if self.version else schema

    def canonical_args(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Validate arguments and return them as plain data, defaults filled in.

        A list or an object that arrives as JSON text is decoded first, where the schema takes no text.
        They are validated again when the tool runs: what a person approved must come through that unchanged.

        Raises:
            pydantic.ValidationError: If they do not fit the schema.
            UnfitArguments: If they are nested too deep to be kept; if they hold a number that is none, which every
                comparison in a rule would get wrong, or one that no store can keep (a whole number above 64 bits); or
                if validating them twice gives something else than validating them once, as a validator does that turns
                euros into cents; or if a parameter that the key names is null.
        """
        decoded = decode_nested(self.schema, args)
        if is_too_deep(decoded):
            raise UnfitArguments(f"arguments for {self.name} are nested too deep")
        once = self.schema.model_validate(decoded).model_dump(mode="json")
        # What was given too: pydantic writes a NaN in the midst of `Any` as null.
        if how := _unfit(once) or _unfit(dict(args)):
            raise UnfitArguments(f"arguments for {self.name} hold a number that {how}")
        try:
            is_stable = self.schema.model_validate(once).model_dump(mode="json") == once
        except ValidationError:
            is_stable = False
        if not is_stable:
            text = f"a validator of {self.name} changes its own output: what runs would not be what was shown"
            raise UnfitArguments(text)
        if nameless := next((one for one in _named_in(self.key) if once.get(one) is None), ""):
            text = f"{nameless} of {self.name} names the effect, and must not be null: all such calls would share one"
            raise UnfitArguments(text)
        return once

    def effect_key(self, args: Mapping[str, Any]) -> str:
        """Fill the key template; empty when the tool has none."""
        return storable(f"{self.name}:{self.key.format(**args)}") if self.key else ""


def _named_in(template: str) -> list[str]:
    """Return the parameters that a template names."""
    return [name for _, name, _, _ in Formatter().parse(template) if name is not None]


_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def check_contract(contract: Contract) -> Contract:
    """Refuse a contract that could not be kept.

    Raises:
        ConfigurationError: Naming the tool, the option and the way out.
    """
    where = f"tool {contract.name!r}"
    if not _NAME.fullmatch(contract.name):
        text = f"{where}: no provider takes that name; give up to 64 letters, digits, underscores and hyphens"
        raise ConfigurationError(text, tool=contract.name, option="name")
    if not contract.description.strip():
        text = f"{where} has no docstring: the model reads it to choose; say what the tool does and when to use it"
        raise ConfigurationError(text, tool=contract.name)
    if not _is_timeout(contract.timeout):
        text = f"{where}: timeout is {contract.timeout!r}; give seconds above 0, as a number"
        raise ConfigurationError(text, tool=contract.name, option="timeout")
    if contract.is_read and (contract.key or contract.verify):
        text = f"{where} is declared 'read', yet has a key or a verify hook; a read has no effect to name or to verify"
        raise ConfigurationError(text, tool=contract.name, option="effect")
    if not (contract.price in (None, "reported") or is_amount(contract.price)):
        text = f"{where}: price is {contract.price!r}; give a Decimal from 0 on, in US dollars, or 'reported'"
        raise ConfigurationError(text, tool=contract.name, option="price")
    if not _is_rate(contract.rate):
        text = f"{where}: rate is {contract.rate!r}; give Rate(calls=…, per_seconds=…)"
        raise ConfigurationError(text, tool=contract.name, option="rate")
    _check_verify(contract, where)
    _check_template("key", contract.key, contract)
    _check_template("serial", contract.serial, contract)
    _check_failing(contract, where)
    _check_schema(contract, where)
    return contract


def _is_timeout(value: object) -> bool:
    return is_span(value) or value == math.inf


def _is_rate(value: object) -> bool:
    return value is None or isinstance(value, Rate)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _check_verify(contract: Contract, where: str) -> None:
    hook: object = contract.verify
    if hook is None:
        return
    if not callable(hook):
        text = f"{where}: verify is {hook!r}; give a function that is called as verify(effect, args)"
        raise ConfigurationError(text, tool=contract.name, option="verify")
    if inspect.isasyncgenfunction(hook):
        text = f"{where}: verify is an async generator; give a function that returns happened(…), or not_happened()"
        raise ConfigurationError(text, tool=contract.name, option="verify")
    try:
        inspect.signature(hook).bind(None, None)
    except TypeError as error:
        text = f"{where}: verify cannot be called as verify(effect, args), with two arguments: {error}"
        raise ConfigurationError(text, tool=contract.name, option="verify") from error
    except ValueError:  # something built in, which does not say what it takes
        return


def is_async(function: object) -> bool:
    """Tell whether a function, or an object that is called as one, returns what must be awaited."""
    inner = function.func if isinstance(function, functools.partial) else function
    called = getattr(inner, "__call__", None)  # noqa: B004 -- an object's own, which may be async
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(called)


def _check_schema(contract: Contract, where: str) -> None:
    """Refuse parameters that no model can be told of, and such as must not be written by one."""
    effects = [name for name, part in contract.schema.model_fields.items() if mentions_effect(part.annotation)]
    if effects:
        text = f"{where}: the model would fill {', '.join(effects)}, and so choose the idempotency key"
        text += "; take the Effect as one parameter of a function under @tool"
        raise ConfigurationError(text, tool=contract.name)
    try:
        described = contract.schema.model_json_schema()
    except PydanticUserError as error:
        text = f"{where}: its parameters cannot be described to a model; give them types that JSON can hold"
        raise ConfigurationError(text, tool=contract.name) from error
    if '"format": "password"' in json.dumps(described):  # how pydantic describes a SecretStr, at any depth
        names = [name for name, part in described["properties"].items() if "password" in json.dumps(part)]
        text = (
            f"{where}: {', '.join(names) or 'a part'} would be a secret that the model writes, and the transcript keeps"
        )
        raise ConfigurationError(f"{text}; let the tool fetch it by itself", tool=contract.name)


def _check_failing(contract: Contract, where: str) -> None:
    """Refuse an answer to failures that would not be one."""
    _check_retry(contract.retry, where, contract.name)
    if contract.on_error not in get_args(OnError):
        known = ", ".join(map(repr, get_args(OnError)))
        text = f"{where}: on_error is {contract.on_error!r}; give one of {known}"
        raise ConfigurationError(text, tool=contract.name, option="on_error")
    if not _is_text(contract.fallback) or contract.fallback == contract.name:
        text = f"{where}: fallback is {contract.fallback!r}; give the name of another tool"
        raise ConfigurationError(text, tool=contract.name, option="fallback")


def _check_retry(retry: object, where: str, name: str) -> None:
    if not isinstance(retry, Retry):
        text = f"{where}: retry is {retry!r}; give Retry(tries=3), for one"
        raise ConfigurationError(text, tool=name, option="retry")


def _check_template(option: str, template: object, contract: Contract) -> None:
    """Refuse a template that some call could not fill, or that is the same for all calls."""
    where = f"tool {contract.name!r}"
    if not isinstance(template, str):
        text = f"{where}: {option} is {template!r}; give a text over its parameters, such as 'refund:{{order_id}}'"
        raise ConfigurationError(text, tool=contract.name, option=option)
    parts = [*Formatter().parse(template)]
    if any(spec or conversion for _, _, spec, conversion in parts):
        text = f"{where}: {option} {template!r} formats a parameter, which some value will not bear; name it by itself"
        raise ConfigurationError(text, tool=contract.name, option=option)
    names = {name for _, name, _, _ in parts if name is not None}
    unknown = sorted(names - set(contract.schema.model_fields))
    is_constant = option == "key" and bool(template) and not names
    if unknown or is_constant:
        text = f"{where}: {option} {template!r} must name parameters of the tool"
        text += f"; it has no {', '.join(unknown)}" if unknown else ", or all its calls would share one effect"
        raise ConfigurationError(text, tool=contract.name, option=option)
    if lacking := sorted(filter(_can_lack(contract.schema), names)):
        text = f"{where}: {option} {template!r} names {', '.join(lacking)}, which a call may leave out"
        text += "; name parameters that are required, or have a default"
        raise ConfigurationError(text, tool=contract.name, option=option)


def _can_lack(schema: type[BaseModel]) -> Callable[[str], bool]:
    """Return what tells whether canonical arguments may come without a parameter."""
    return schema.can_lack if issubclass(schema, DescribedArguments) else lambda _parameter: False
