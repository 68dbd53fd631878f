"""The open channels: those of the state that are the user's own. Tools write them, and so may whoever starts a run."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, NotRequired, Required, cast, get_args, get_origin, get_type_hints

from langgraph.channels.base import BaseChannel
from langgraph.managed.base import ManagedValue
from typing_extensions import ReadOnly, TypedDict, is_typeddict

from loopwright.errors import ConfigurationError
from loopwright.state import AgentInput, AgentState, storable
from loopwright.tools import OVERWRITE, to_plain_data, to_whole_data

from .contexts import is_secret

Reducer = Callable[[Any, Any], Any]
"""Puts what a channel holds and an update together."""
_NODES = ("observe", "guard", "reason", "act")
UNSET = object()
"""In the place of what a channel holds that holds nothing."""


@dataclass(frozen=True)
class OpenChannel:
    """One channel of the user's own."""

    name: str
    hint: Any
    """Its type, without marks."""
    reducer: Reducer | None
    """None: an update takes the place of what is there."""
    beginning: Any
    """What it holds before anything was given; `UNSET` for a type that cannot begin as nothing."""
    is_input: bool
    """Whether a caller may give it with the message; LangChain's `OmitFromInput` says no."""

    @property
    def annotation(self) -> Any:
        """Return what LangGraph builds the channel from."""
        return self.hint if self.reducer is None else Annotated[self.hint, self.reducer]

    def after(self, before: Any, update: Any) -> Any:
        """Return what it holds after an update; what it held before is not changed.

        Raises:
            ConfigurationError: If its reducer does not take the update.
        """
        if (whole := _overwriting(update)) is not UNSET:
            return whole
        held = self.beginning if before is UNSET else before
        if self.reducer is None or held is UNSET:
            return update
        return self.reducer(copy.deepcopy(held), copy.deepcopy(update))  # it may change either, and is asked twice


def _overwriting(update: Any) -> Any:
    """Return what takes the place of what is there, whatever the reducer; `UNSET` for an ordinary update."""
    given = cast("Mapping[str, Any]", update if isinstance(update, Mapping) else {})
    return given[OVERWRITE] if [*given] == [OVERWRITE] else UNSET


@dataclass(frozen=True)
class Folded:
    """What a turn makes of the open channels."""

    written: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """As `observe` writes it: each value takes the place of what is there."""
    refused: Mapping[int, str] = field(default_factory=dict[int, str])
    """By its place in the turn, why the update of a call was not taken in; nothing of it was."""


@dataclass(frozen=True)
class OpenChannels:
    """All of them, by name."""

    by_name: Mapping[str, OpenChannel] = field(default_factory=dict[str, OpenChannel])

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, in the order in which they were declared."""
        return tuple(self.by_name)

    @cached_property
    def state_schema(self) -> type[AgentState]:
        """The state with these channels."""
        return cast("type[AgentState]", self._extended(AgentState, {c.name: c.annotation for c in self._all}))

    @cached_property
    def input_schema(self) -> type[AgentInput]:
        """What a caller gives: the task, and those channels that are for callers to give."""
        given = {c.name: NotRequired[c.annotation] for c in self._all if c.is_input}
        return cast("type[AgentInput]", self._extended(AgentInput, given))

    @property
    def _all(self) -> list[OpenChannel]:
        return [*self.by_name.values()]

    def _extended(self, base: type[Any], more: Mapping[str, Any]) -> type[Any]:
        if not more:
            return base
        build = cast("Callable[[str, dict[str, Any]], type[Any]]", TypedDict)
        return build(base.__name__, {**get_type_hints(base, include_extras=True), **more})

    def of(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what they hold, copies; those that hold nothing yet are left out."""
        return {name: copy.deepcopy(state[name]) for name in self.by_name if name in state}

    def refuse(self, update: Mapping[str, Any], state: Mapping[str, Any]) -> str:
        """Say why an update cannot be taken in; empty when it can."""
        try:
            self._after(update, state)
        except ConfigurationError as error:
            return error.message
        return ""

    def _after(self, update: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
        return {name: self.by_name[name].after(state.get(name, UNSET), part) for name, part in update.items()}

    def folded(self, updates: Sequence[Mapping[str, Any]], state: Mapping[str, Any]) -> Folded:
        """Put the updates of a turn's calls together, in call order."""
        held = {name: state[name] for name in self.by_name if name in state}
        after, refused = held, dict[int, str]()
        for place, update in enumerate(updates):
            known = {name: part for name, part in update.items() if name in self.by_name}  # another release may go on
            try:
                after = {**after, **self._after(known, after)}
            except ConfigurationError as error:
                refused[place] = error.message
        touched = {name for update in updates for name in update} & set(after)
        return Folded({name: self._written(name, after[name], is_set=name in held) for name in touched}, refused)

    def _written(self, name: str, value: Any, *, is_set: bool) -> Any:
        has_reducer = self.by_name[name].reducer is not None
        return {OVERWRITE: value} if has_reducer and is_set else value

    def plain_input(self, given: Any) -> Any:
        """Return an input with its open channels as plain data; anything else as it is.

        Raises:
            ConfigurationError: If a channel cannot be given that.
        """
        if not self.by_name or not isinstance(given, Mapping):
            return given
        whole = cast("Mapping[str, Any]", given)
        return {name: _given(name, part) if name in self.by_name else part for name, part in whole.items()}

    def taken(self, given: object, state: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the caller of `Runs.start` gives for these channels, as plain data.

        Args:
            given: What came as `state=`; None for nothing.
            state: Of the thread, as it stands.

        Raises:
            ConfigurationError: If there is no such channel, it is not for callers to give, or its reducer does not take
                what was given. Before anything is stored.
        """
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            text = f"state is a {type(given).__name__}; give the values of your channels by name"
            raise ConfigurationError(text, option="state")
        update = {str(name): _given(str(name), part) for name, part in cast("Mapping[object, Any]", given).items()}
        mine = [channel.name for channel in self._all if channel.is_input]
        if unknown := sorted(set(update) - set(mine)):
            text = f"state names {', '.join(unknown)}; what a caller may give is: {', '.join(mine) or 'nothing'}"
            raise ConfigurationError(
                f"{text}. Channels are declared by create_agent(…, state_schema=…)", option="state"
            )
        self._after(update, state)
        return update


def _given(name: str, part: Any) -> Any:
    """Return what a caller gives a channel as plain data.

    Raises:
        ConfigurationError: If it is too much, or would set the reducer aside: rules may rely on what that adds up.
    """
    plain = _whole(name, part)
    if _overwriting(plain) is not UNSET:
        text = f"what is given for the state channel {name!r} goes through its reducer; only a tool may overwrite it"
        raise ConfigurationError(text, channel=name)
    return plain


def _whole(name: str, value: Any) -> Any:
    """Return all of a value as plain data; what a rule adds up must not end where a result is cut.

    Raises:
        ConfigurationError: If it is too much.
    """
    try:
        return to_whole_data(value)
    except ValueError as error:
        text = f"the state channel {name!r} would hold {error}; keep large data in a store"
        raise ConfigurationError(text, channel=name) from None


def open_channels(schema: object) -> OpenChannels:
    """Read the channels that a state schema adds to `AgentState`; None adds nothing.

    Raises:
        ConfigurationError: If it is no `TypedDict` that extends `AgentState`, takes one of its names, or declares a
            channel that could not be kept.
    """
    if schema is None:
        return OpenChannels()
    ours, theirs = get_type_hints(AgentState, include_extras=True), _hints(schema)
    _check_base(schema, ours)
    return OpenChannels({name: _channel(name, hint) for name, hint in theirs.items() if name not in ours})


def _wrong(text: str) -> ConfigurationError:
    return ConfigurationError(text, option="state_schema")


def _hints(schema: object) -> dict[str, Any]:
    if not is_typeddict(schema):
        raise _wrong(f"state_schema is {schema!r}; give a TypedDict that extends loopwright.AgentState")
    try:
        return get_type_hints(schema, include_extras=True)
    except NameError as error:
        text = f"state_schema {_name(schema)}: the type {error.name!r} is not known where it stands; "
        raise _wrong(text + "define it in the module") from error


def _check_base(schema: object, ours: Mapping[str, Any]) -> None:
    declared: Mapping[str, Any] = getattr(schema, "__annotations__", {})
    if missing := [name for name in ours if name not in declared]:
        text = f"state_schema {_name(schema)} lacks {', '.join(missing)}; let it extend loopwright.AgentState: "
        raise _wrong(text + f"class {_name(schema)}(AgentState)")
    if taken := [name for name in ours if declared[name] != AgentState.__annotations__[name]]:
        text = f"state_schema {_name(schema)} declares {', '.join(taken)} anew, which is loopwright's own; "
        raise _wrong(text + "give your channel another name")


def _name(schema: object) -> str:
    return getattr(schema, "__name__", repr(schema))


def _channel(name: str, declared: Any) -> OpenChannel:
    where = f"state channel {name!r}"
    if name in _NODES or name.startswith("__"):
        raise _wrong(f"{where} has a name that LangGraph needs for a node; give it another one")
    hint = _bare(declared)
    if is_secret(hint):
        text = f"{where} is marked as secret, and what is in the state is stored; give secrets as the run's context"
        raise _wrong(text)
    hint, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    hint = _bare(hint)
    reducer = _reducer(where, marks)
    return OpenChannel(
        name,
        hint,
        _careful(name, reducer) if reducer is not None else None,
        _beginning(where, hint),
        is_input=not any(getattr(mark, "input", None) is True for mark in marks),
    )


def _bare(hint: Any) -> Any:
    """Return a type without what says whether its key must be there: a channel that holds nothing is left out."""
    while get_origin(hint) in (Required, NotRequired, ReadOnly):
        hint = get_args(hint)[0]
    return hint


def _reducer(where: str, marks: Sequence[Any]) -> Reducer | None:
    """Find the reducer among a type's marks."""
    for mark in marks:
        kind = mark if isinstance(mark, type) else type(mark)
        if issubclass(kind, BaseChannel | ManagedValue):
            raise _wrong(
                f"{where}: {kind.__name__} is a channel of LangGraph's own; give a reducer function, or nothing"
            )
    found = [mark for mark in marks if callable(mark) and not isinstance(mark, type)]
    if len(found) > 1:
        raise _wrong(f"{where} has {len(found)} reducers; give one")
    for reducer in found:
        _check_reducer(where, reducer)
        return cast("Reducer", reducer)
    return None


def _check_reducer(where: str, reducer: Any) -> None:
    named = getattr(reducer, "__name__", repr(reducer))
    if inspect.iscoroutinefunction(reducer):
        raise _wrong(f"{where}: its reducer {named} is async, and nobody would await it; give a plain function")
    try:
        inspect.signature(reducer).bind(None, None)
    except TypeError as error:
        text = f"{where}: its reducer {named} cannot be called as reducer(before, update), with two arguments: {error}"
        raise _wrong(text) from error
    except ValueError:  # something built in, which does not say what it takes
        return


def _beginning(where: str, hint: Any) -> Any:
    """Return what a channel of this type begins with, as LangGraph does it: `int` with 0, a list empty.

    A type that plain data has not is refused: what was a set when it was written would be read as a list.
    """
    kind = get_origin(hint) or hint
    try:
        begins = kind()
    except Exception:  # noqa: BLE001 -- a type that cannot begin as nothing, such as a union
        return UNSET
    if type(begins) is not type(to_plain_data(begins)):
        text = f"{where} holds a {getattr(kind, '__name__', kind)}, and the state is plain data; "
        raise _wrong(text + "declare what JSON has: texts, numbers, lists and dictionaries")
    return begins


def _careful(name: str, reducer: Reducer) -> Reducer:
    """Return the reducer for plain data, with an error that says whose it is, and tells no values."""

    def reduce(before: Any, update: Any) -> Any:
        try:
            reduced = reducer(before, update)
        except Exception as error:
            text = f"the reducer of the state channel {name!r} did not take an update: {type(error).__name__}"
            raise ConfigurationError(storable(text), channel=name) from error
        return _whole(name, reduced)

    return reduce
