"""A small vocabulary for the `when` of a rule: where a call's arguments come from. Pure functions over the call.

    allow("send_money", when=from_user("recipient", "amount"))
    allow("invite", when=from_user("title") & known("guests", "find_contact.email"))
    allow("send_mail", when=from_user("to") & plain("subject", "body"))
    allow("refund", when=from_user("order_id") & small)             # `small` is a function of yours
    allow("cancel_order", when=confirmed("order_id", "reason"))     # the agent listed both, and the user said yes

`from_user`, `known` and `confirmed` clear taint: an `allow` with one of them lets a call run although text by strangers
is in the context, and one without does not.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, cast

from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.state import canonical

from .rules import Predicate, ProposedCall, Rule, rules_for
from .words import Key, is_plain, is_yes, keys_of, scalars, stands_in


class Condition:
    """A predicate of this vocabulary; two are joined by `&`, and one of them may be a function of yours.

    Attributes:
        clears_taint: Whether an `allow` with it holds although text by strangers is in the context.
        arguments: Those that it looks at; checked against the tool when the agent is built.
        sources: The tools whose results it looks at; checked too.
    """

    clears_taint: bool = False
    arguments: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def __call__(self, call: ProposedCall) -> bool:
        """Tell whether it holds."""
        raise NotImplementedError

    def __and__(self, other: Predicate) -> Both:
        """Return the predicate that holds where both do."""
        return Both(self, other)

    def __bool__(self) -> bool:
        """Refuse to be taken for true or false: of `a and b` Python keeps only `b`, and `a` would be lost unseen.

        Raises:
            ConfigurationError: Always.
        """
        text = "a condition was joined with `and`, `or` or `not`, which would drop a part of it; join two with `&`"
        raise ConfigurationError(text, option="when")

    def __rand__(self, other: Predicate) -> Both:
        """Do so with a function on the left."""
        return Both(other, self)


class Both(Condition):
    """Holds where both parts do; clears taint if one of them does."""

    def __init__(self, *parts: Predicate) -> None:
        """Take the parts.

        Raises:
            ConfigurationError: If one cannot be called.
        """
        for part in cast("tuple[object, ...]", parts):
            if not callable(part):
                raise ConfigurationError(f"{part!r} is joined to a condition; give a function that takes the call")
        self._parts = parts
        known = [part for part in parts if isinstance(part, Condition)]
        self.clears_taint = any(part.clears_taint for part in known)
        self.arguments = tuple(name for part in known for name in part.arguments)
        self.sources = tuple(name for part in known for name in part.sources)

    def __call__(self, call: ProposedCall) -> bool:
        """Tell whether all parts hold.

        Raises:
            TypeError: If a part returns no bool: the guard then takes the whole for a predicate that failed.
        """
        return all(_strictly(part(call)) for part in self._parts)


def _strictly(holds: object) -> bool:
    if not isinstance(holds, bool):
        raise TypeError(f"a part of the predicate returned {type(holds).__name__}, not a bool")
    return holds


class FromUser(Condition):
    """See `from_user`."""

    clears_taint = True

    def __init__(self, *arguments: str) -> None:
        """Take the arguments' names."""
        self.arguments = _named("from_user", arguments)

    def __call__(self, call: ProposedCall) -> bool:
        """Tell whether the user named each of them."""
        return all(stands_in(call.args[name], call.said) for name in self.arguments)


class Plain(Condition):
    """See `plain`."""

    def __init__(self, *arguments: str) -> None:
        """Take the arguments' names."""
        self.arguments = _named("plain", arguments)

    def __call__(self, call: ProposedCall) -> bool:
        """Tell whether none brings what the user did not name."""
        return all(is_plain(call.args[name], call.said) for name in self.arguments)


class Known(Condition):
    """See `known`."""

    clears_taint = True

    def __init__(self, argument: str, *fields: str) -> None:
        """Take the argument's name, and fields as `tool.field`."""
        self.arguments = _named("known", (argument,))
        pairs = [name.partition(".") for name in _named("known", fields)]
        if any(not tool or (dot and not field) for tool, dot, field in pairs):
            text = f"known({argument!r}, …) names {fields!r}; write each as 'tool.field', or 'tool' for a list of it"
            raise ConfigurationError(text, option="known")
        self._fields = frozenset((tool, field) for tool, _, field in pairs)
        self.sources = tuple(tool for tool, _, _ in pairs)

    def __call__(self, call: ProposedCall) -> bool:
        """Tell whether each of its values was named, or is one that the tools know."""
        parts = [*scalars(call.args[self.arguments[0]])]
        unsaid = [keys_of(part) for part in parts if not stands_in(part, call.said)]
        if not all(unsaid):
            return False
        known = set(self._values(call)) if unsaid else set[tuple[Key, ...]]()
        return known.issuperset(unsaid)

    def _values(self, call: ProposedCall) -> Iterator[tuple[Key, ...]]:
        for seen in call.observed:
            for tool, field in self._fields:
                if tool == seen.tool:
                    yield from map(keys_of, _held_by(seen.text, field))


class Confirmed(Condition):
    """See `confirmed`."""

    clears_taint = True

    def __init__(self, *arguments: str) -> None:
        """Take the arguments' names."""
        self.arguments = _named("confirmed", arguments)

    def __call__(self, call: ProposedCall) -> bool:
        """Tell whether the user's newest message is a yes to a message that named each of them, not yet used."""
        return (
            bool(call.said)
            and is_yes(call.said[-1])
            and all(stands_in(call.args[name], (call.told,), blanks=False) for name in self.arguments)
            and not any(self._is_same(call, args) for args in _made(call))
        )

    def _is_same(self, call: ProposedCall, args: Mapping[str, object]) -> bool:
        """Tell whether a call has used this yes: one with the same values, however they are spelled."""
        return all(_is_one(args.get(name), call.args[name]) for name in self.arguments)


def _made(call: ProposedCall) -> Iterator[Mapping[str, object]]:
    """Return the arguments of the tool's earlier calls: of this run, and of this very turn."""
    yield from (entry["args"] for entry in call.trail if entry["run"] == call.run["id"] and entry["tool"] == call.tool)
    yield from (earlier["args"] for earlier in call.turn if earlier["name"] == call.tool)


def _is_one(value: object, other: object) -> bool:
    if canonical(value) == canonical(other):
        return True
    one, two = ([*map(keys_of, scalars(each, keys=False))] for each in (value, other))
    return one == two


def _held_by(text: str, field: str) -> Iterable[object]:
    """Return the values that a result holds under a field; without a field, those of a plain list."""
    try:
        data: object = json.loads(text)
    except (ValueError, RecursionError):  # words, or a result that was shortened
        return ()
    if field:
        return _under(data, field)
    return scalars(cast("list[object]", data), keys=False) if isinstance(data, list) else ()


def _under(data: object, field: str) -> Iterator[object]:
    if isinstance(data, Mapping):
        for name, item in cast("Mapping[str, object]", data).items():
            if name == field:
                yield from scalars(item, keys=False)
            else:
                yield from _under(item, field)
    elif isinstance(data, list):
        for item in cast("list[object]", data):
            yield from _under(item, field)


def _named(where: str, names: tuple[str, ...]) -> tuple[str, ...]:
    if not names or not all(isinstance(cast("object", name), str) and name for name in names):
        text = f"{where}{names!r}: give the names of arguments as texts, such as {where}('recipient')"
        raise ConfigurationError(text, option=where)
    return names


class Parameters(NamedTuple):
    """What a condition can look at in the calls of one tool."""

    effect: str
    names: Collection[str]
    is_open: bool = False
    """Whether its schema lets other arguments in, which it does not describe."""

    def lack(self, arguments: Iterable[str]) -> list[str]:
        """Return those of some arguments that no call of the tool can have."""
        return [] if self.is_open else sorted(set(arguments) - set(self.names))


def check_conditions(rules: Iterable[Rule], tools: Mapping[str, Parameters]) -> None:
    """Refuse conditions over arguments and tools that are not there: they would fail at each call.

    Args:
        rules: The rules, checked already.
        tools: What each tool takes, by its name.

    Raises:
        ConfigurationError: Naming the rule and what it misses.
        UnknownTool: If `known` names no tool of this agent.
    """
    for rule in rules:
        if not isinstance(rule.when, Condition):
            continue
        unknown = sorted(set(rule.when.sources) - set(tools))
        if unknown:
            text = f"{rule.label}: known(…) names {', '.join(unknown)}, which is no tool of this agent"
            raise UnknownTool(text, target=unknown[0])
        _check_arguments(rule, rule.when.arguments, tools)


def _check_arguments(rule: Rule, arguments: Collection[str], tools: Mapping[str, Parameters]) -> None:
    """Refuse arguments that no tool has which the rule is about; a rule without such a tool counts for nothing."""
    about = {name: tool for name, tool in tools.items() if rules_for([rule], name, tool.effect)}
    lacking = [tool.lack(arguments) for tool in about.values()]
    if not lacking or not all(lacking):
        return
    _, fewest = min((len(names), names) for names in lacking)
    missing = ", ".join(fewest)
    if rule.target in about:
        has = ", ".join(about[rule.target].names) or "none"
        text = f"{rule.label}: {rule.target} has no argument {missing}; its arguments are: {has}"
    else:
        has = "; ".join(f"{name}({', '.join(tool.names)})" for name, tool in about.items())
        text = f"{rule.label}: no tool of this effect has all of {', '.join(arguments)}; they are: {has}"
    raise ConfigurationError(text, target=rule.target, option="when")


def from_user(*arguments: str) -> Condition:
    """Hold for calls whose arguments stand in the user's own words; clears taint.

    Each single value must stand as a whole in some message that the user wrote on this thread, quoted or not: numbers
    are compared by value (`1,200.00` and `1200`), dates and times by what they mean (`May 20th` and `2024-05-20`),
    IBANs without blanks, all else without regard to case. Never as a part of a longer token, and never because it came
    back through a tool. The keys of a mapping are values, too. An argument that is None or empty chooses nothing, and
    holds.

    Args:
        *arguments: The ones that decide what the call does: the recipient, the amount, the file.
    """
    return FromUser(*arguments)


def known(argument: str, *fields: str) -> Condition:
    """Hold for calls whose argument the user named, or that is a value which your own records hold; clears taint.

    The argument must be the whole value of a field in a result that the tool gave on this thread. Text inside a field
    never counts. Name only fields that strangers cannot fill as they like: with them anybody on the list can be chosen.

    Args:
        argument: A name or an id, or a list of such.
        *fields: Each as `tool.field`, at any depth of the result; `tool` alone for one that returns a list of values.
    """
    return Known(argument, *fields)


def plain(*arguments: str) -> Condition:
    """Hold for texts that bring no link, address, account, code or long number which the user did not write.

    For messages to somebody whom the user named. It limits what an injected text can carry out of the house or lead
    somebody to; it does not clear taint by itself.

    Args:
        *arguments: Texts.
    """
    return Plain(*arguments)


def confirmed(*arguments: str) -> Condition:
    """Hold for calls that the user has just said yes to; clears taint.

    The user's newest message must be a plain yes ("Yes, please", "I confirm"): with any other word it is none. And the
    message of the agent before it must have named each of these arguments, as `from_user` compares them, but without
    blanks to fill. A yes counts once for the same call, however its values are spelled, and in one turn, too.

    Args:
        *arguments: All that the user must have seen: what is changed, and how.
    """
    return Confirmed(*arguments)
