"""Permissions: who may call which tool, with what. Pure functions."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.state import RunRecord, ThreadRecord, TrailEntry, Verdict, is_span

EFFECTS = ("read", "idempotent", "write")
_STRICTNESS = {"deny": 2, "ask": 1, "allow": 0}


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """What a predicate sees of a call: a copy of its own, so that whatever it does to it changes nothing."""

    tool: str
    effect: str
    args: Mapping[str, Any]
    """Validated by the tool's schema, defaults filled in. `Any`: each tool has its own types."""
    run: RunRecord
    thread: ThreadRecord
    trail: Sequence[TrailEntry]
    """One entry for each earlier call of the thread."""


Predicate = Callable[[ProposedCall], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """One permission; build it with `allow`, `ask` or `deny`.

    Raises:
        ConfigurationError: If a part of it has the wrong type.
    """

    verdict: Literal["allow", "ask", "deny"]
    target: str
    """A tool's name, or `effect:write`."""
    when: Predicate | None = None
    reason: str = ""
    expires_in: float | None = None
    """For `ask`: seconds until the question counts as rejected."""

    def __post_init__(self) -> None:
        """Refuse what could only fail, or mislead, while a run is on."""
        _check_texts(self.verdict, self.target, self.reason)
        _check_predicate(self.label, self.when)
        if self.expires_in is not None and not is_span(self.expires_in):
            text = f"{self.label}: expires_in is {self.expires_in!r}; give seconds above 0, as a number"
            raise ConfigurationError(text, option="expires_in")

    @property
    def label(self) -> str:
        """How verdicts and the log name the rule."""
        return f"{self.verdict}({self.target!r}{', when=…' if self.when is not None else ''})"


def _check_texts(verdict: object, target: object, reason: object) -> None:
    if verdict not in _STRICTNESS:
        raise ConfigurationError(f"a rule's verdict is {verdict!r}; build it with allow(…), ask(…) or deny(…)")
    if not isinstance(target, str):
        text = f"{verdict}({target!r}): give one tool's name, or an effect such as 'effect:write', as a text"
        raise ConfigurationError(text, option="target")
    if not isinstance(reason, str):
        raise ConfigurationError(f"{verdict}({target!r}): reason is {reason!r}; give a text", option="reason")


def _check_predicate(label: str, when: object) -> None:
    if when is not None and not callable(when):
        raise ConfigurationError(f"{label}: when is {when!r}; give a function that takes the call", option="when")
    if inspect.iscoroutinefunction(when):
        text = f"{label}: when is an async function, whose answer would never be awaited; give a plain one"
        raise ConfigurationError(text, option="when")


def allow(target: str, /, *, when: Predicate | None = None) -> Rule:
    """Let calls run without asking.

    Args:
        target: A tool's name, or `effect:read`, `effect:idempotent`, `effect:write`.
        when: Holds for the calls that are meant; left out: all. One that raises, or returns no bool, counts as no.
    """
    return Rule("allow", target, when)


def ask(target: str, /, *, when: Predicate | None = None, reason: str = "", expires_in: float | None = None) -> Rule:
    """Let a person decide about calls.

    Args:
        target: A tool's name, or `effect:…`.
        when: Holds for the calls that are meant. One that raises, or returns no bool, counts as yes.
        reason: Shown to the person.
        expires_in: Seconds after which an unanswered question counts as rejected; left out: never.
    """
    return Rule("ask", target, when, reason, expires_in)


def deny(target: str, /, *, when: Predicate | None = None, reason: str = "") -> Rule:
    """Forbid calls.

    Args:
        target: A tool's name, or `effect:…`.
        when: Holds for the calls that are meant. One that raises, or returns no bool, counts as yes.
        reason: Read by the model.
    """
    return Rule("deny", target, when, reason)


@dataclass(frozen=True, slots=True)
class Screening:
    """What the rules say of one call."""

    verdict: Verdict
    why: str
    by: str
    """The rule's label, or `default`."""
    expires_in: float | None = None


def screen(rules: Iterable[Rule], call: ProposedCall) -> Screening:
    """Apply the rules to one call: the strictest match wins; without a match `read` is allowed and all else asks."""
    matches = [(rule, note) for rule, note in ((rule, _match(rule, call)) for rule in rules) if note is not None]
    if not matches:
        return _default(call)
    rule, note = max(matches, key=lambda match: _STRICTNESS[match[0].verdict])
    why = rule.reason or note or f"by the rule {rule.label}"
    return Screening(Verdict(rule.verdict), why, rule.label, rule.expires_in)


def _default(call: ProposedCall) -> Screening:
    if call.effect == "read":
        return Screening(Verdict.ALLOW, "reading is allowed", "default")
    return Screening(Verdict.ASK, f"no rule allows this {call.effect}", "default")


def _match(rule: Rule, call: ProposedCall) -> str | None:
    """Return None for no match, else a note (often empty) for the verdict.

    A predicate that fails counts in the safe direction: no match for `allow`, a match for `ask` and `deny`.
    """
    if rule.target not in (call.tool, f"effect:{call.effect}"):
        return None
    if rule.when is None:
        return ""
    try:
        holds = cast("object", rule.when(copy.deepcopy(call)))
    except Exception as error:  # noqa: BLE001 -- a failing predicate must never open a gate
        return _failed(rule, f"raised {type(error).__name__}")
    if not isinstance(holds, bool):
        return _failed(rule, f"returned {type(holds).__name__}, not a bool")
    return "" if holds else None


def _failed(rule: Rule, how: str) -> str | None:
    return None if rule.verdict == "allow" else f"the predicate of {rule.label} {how}"


def check_rules(rules: Sequence[object], tools: Iterable[str]) -> tuple[Rule, ...]:
    """Refuse permissions that could not do what they say; no configuration mistake opens a gate.

    Raises:
        UnknownTool: If a rule names a tool that the agent does not have.
        ConfigurationError: If a rule is no rule, or one contradicts another.
    """
    names = set(tools)
    checked = tuple(_checked(rule, names) for rule in rules)
    for rule in checked:
        rivals = {other.verdict for other in checked if other.target == rule.target and other.when is None}
        if len(rivals) > 1:
            text = f"rules for {rule.target!r} contradict each other: {', '.join(sorted(rivals))}, all without `when`"
            raise ConfigurationError(text, target=rule.target)
    return checked


def _checked(rule: object, names: set[str]) -> Rule:
    if not isinstance(rule, Rule):
        text = f"permissions hold {rule!r}, which is no rule; build each with allow(…), ask(…) or deny(…)"
        raise ConfigurationError(text)
    if rule.target.removeprefix("effect:") in EFFECTS and rule.target.startswith("effect:"):
        return rule
    if rule.target not in names:
        known = ", ".join(sorted(names)) or "none"
        text = f"{rule.label} names no tool of this agent; its tools are: {known}; effects are written 'effect:write'"
        raise UnknownTool(text, target=rule.target)
    return rule
