"""Permissions: who may call which tool, with what. Pure functions."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from difflib import get_close_matches
from typing import Any, Final, Literal, NamedTuple, Never, cast

from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.state import (
    DECISIONS,
    Call,
    Requirement,
    RunRecord,
    TaintSource,
    ThreadRecord,
    TrailEntry,
    Verdict,
    is_span,
    refuse_unknown,
    require_nothing,
    to_plain,
)

EFFECTS = ("read", "idempotent", "write")
_STRICTNESS = {"deny": 2, "ask": 1, "allow": 0}


class Observed(NamedTuple):
    """What a tool returned on this thread, as text and without marks."""

    message: str
    """The id of its message."""
    tool: str
    text: str

    def __deepcopy__(self, memo: dict[int, Any]) -> Observed:
        """Return itself: nothing in it can be changed, and there can be many."""
        return self


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
    said: Sequence[str] = ()
    """What the user wrote on this thread, oldest first."""
    told: str = ""
    """What the agent told the user before their newest message: the model's words, no proof of anything."""
    taint: Sequence[TaintSource] = ()
    """Where the text by strangers came from that is in the context; empty while there is none."""
    observed: Sequence[Observed] = ()
    """What tools returned on this thread, oldest first."""
    turn: Sequence[Call] = ()
    """The calls of the same turn that were judged before it."""
    undescribed: Sequence[str] = ()
    """The arguments that the tool's schema does not describe, and lets in all the same."""
    context: Any = None
    """What the caller gave the run as `context=`, secrets as the type has them; None for nothing.

    `Any`: each agent has its own type. What of it cannot be copied, such as a connection, is handed out itself.
    """
    state: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The open channels (`state_schema=`), as they stood when the call was proposed. `Any`: they are the user's own."""

    def __deepcopy__(self, memo: dict[int, Any]) -> ProposedCall:
        """Return a copy; what a context holds need not be made to be copied. A trail is plain data, and can be long."""
        own = {"context": _copied(self.context), "trail": to_plain([*self.trail])}
        rest = {
            each.name: copy.deepcopy(getattr(self, each.name), memo) for each in fields(self) if each.name not in own
        }
        return ProposedCall(**rest, **own)


def _copied(part: Any) -> Any:
    """Return a copy of a context; of what holds something that cannot be copied, each part that can."""
    try:
        return copy.deepcopy(part)
    except Exception:  # noqa: BLE001 -- whatever stands in it: a connection, a lock
        return _copied_by_parts(part)


def _copied_by_parts(part: Any) -> Any:
    if isinstance(part, dict):
        pairs = cast("dict[Any, Any]", part).items()  # type: ignore[redundant-cast]  # pyright needs it
        return {name: _copied(inner) for name, inner in pairs}
    if type(part) in (list, tuple):
        return type(part)(map(_copied, part))
    if not (is_dataclass(part) or hasattr(part, "model_fields_set")):
        return part
    shallow = copy.copy(part)
    named = {each.name for each in fields(part)} if is_dataclass(part) else set[str]()
    for name in named | {*getattr(part, "__dict__", ())}:
        object.__setattr__(shallow, name, _copied(getattr(part, name)))
    return shallow


Predicate = Callable[[ProposedCall], bool]
ANYONE: Final = "anyone"
"""The `role` of a rule that asks for none. Neither `None` nor an empty text: a missing setting opens nothing."""


def always(_call: ProposedCall) -> bool:
    """Hold for every call: the `when` of a rule that has none."""
    return True


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
    role: str = ANYONE
    """For `ask`: what whoever decides must be."""
    number: int = 1
    """For `ask`: how many different people must approve."""
    not_requester: bool = False
    """For `ask`: whether somebody else than the requester must decide."""
    remind_after: float | None = None
    """For `ask`: seconds after which somebody is reminded of an open question."""
    decisions: tuple[str, ...] = DECISIONS
    """For `ask`: what can be decided; `reject` always can."""
    clears_taint: bool = False
    """For `allow`: whether the call may run although text by strangers is in the context."""

    def __post_init__(self) -> None:
        """Refuse what could only fail, or mislead, while a run is on."""
        _check_texts(self.verdict, self.target, self.reason)
        _check_predicate(self.label, self.when)
        _check_times(self.label, self.expires_in, self.remind_after)
        _check_people(self.label, self.role, self.number, self.not_requester)
        _check_decisions(self.label, self.decisions)
        _check_clearing(self.label, self.verdict, self.clears_taint)
        if self.verdict != "ask" and _asks_of(self):
            text = f"{self.label}: {', '.join(_asks_of(self))} belongs to ask(…): here nobody is asked"
            raise ConfigurationError(text, target=self.target, option=_asks_of(self)[0])

    @property
    def clears(self) -> bool:
        """Whether it clears a call of taint: it says so, or its predicate does."""
        return self.verdict == "allow" and (self.clears_taint or getattr(self.when, "clears_taint", False) is True)

    def clears_all(self, undescribed: Collection[str]) -> bool:
        """Tell whether it may clear a call with such arguments: nobody but the model says what they do.

        A condition must name them; a rule that clears outright means the call whatever it holds.
        """
        named: Collection[str] = getattr(self.when, "arguments", ())
        return self.clears and (self.clears_taint or set(undescribed) <= set(named))

    @property
    def label(self) -> str:
        """How verdicts and the log name the rule."""
        return f"{self.verdict}({self.target!r}{', when=…' if self.when is not None else ''})"


_OF_ASK: Mapping[str, object] = {
    "expires_in": None,
    "role": ANYONE,
    "number": 1,
    "not_requester": False,
    "remind_after": None,
    "decisions": DECISIONS,
}
"""What only an `ask` can say, with what it is when left out."""


def _asks_of(rule: Rule) -> list[str]:
    return [name for name, left_out in _OF_ASK.items() if getattr(rule, name) != left_out]


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


def _check_times(label: str, expires_in: object, remind_after: object) -> None:
    for option, given in (("expires_in", expires_in), ("remind_after", remind_after)):
        if given is not None and not is_span(given):
            text = f"{label}: {option} is {given!r}; give seconds above 0, as a number"
            raise ConfigurationError(text, option=option)
    if is_span(expires_in) and is_span(remind_after) and cast("float", remind_after) >= cast("float", expires_in):
        text = f"{label}: remind_after={remind_after} comes too late: the question expires after {expires_in} seconds"
        raise ConfigurationError(text, option="remind_after")


def _check_people(label: str, role: object, number: object, not_requester: object) -> None:
    if not isinstance(role, str) or not role.strip():
        text = f"{label}: role is {role!r}; give a role's name, or leave it out where anyone may decide"
        raise ConfigurationError(text, option="role")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        text = f"{label}: number is {number!r}; give how many people must approve, 1 or more"
        raise ConfigurationError(text, option="number")
    if not isinstance(not_requester, bool):
        raise ConfigurationError(f"{label}: not_requester is {not_requester!r}; give a bool", option="not_requester")


def _check_decisions(label: str, decisions: object) -> None:
    known = ", ".join(DECISIONS)
    if not isinstance(decisions, Collection) or isinstance(decisions, str) or not decisions:
        text = f"{label}: decisions is {decisions!r}; list some of {known}, or leave it out"
        raise ConfigurationError(text, option="decisions")
    for word in cast("Collection[object]", decisions):
        if word not in DECISIONS:
            raise ConfigurationError(f"{label}: decisions holds {word!r}; there are: {known}", option="decisions")


def _check_clearing(label: str, verdict: str, clears: object) -> None:
    if not isinstance(clears, bool) or (clears and verdict != "allow"):
        text = f"{label}: clears_taint is {clears!r}; give True or False, and to an allow only"
        raise ConfigurationError(text, option="clears_taint")


def allow(target: str, /, *, when: Predicate = always, clears_taint: bool = False, **unknown: Never) -> Rule:
    """Let calls run without asking.

    Args:
        target: A tool's name, or `effect:read`, `effect:idempotent`, `effect:write`.
        when: Holds for the calls that are meant; left out: all. One that raises, or returns no bool, counts as no.
        clears_taint: Whether they run even while text by strangers is in the context. For calls that can do no harm
            whatever they hold; otherwise say with `from_user` what the user must have named.
        **unknown: Refused.

    Raises:
        ConfigurationError: Naming the rule and the option that is wrong.
    """
    _refuse_unknown("allow", target, unknown, allow)
    return Rule("allow", target, _given(f"allow({target!r})", when), clears_taint=clears_taint)


def ask(
    target: str,
    /,
    *,
    when: Predicate = always,
    reason: str = "",
    role: str = ANYONE,
    number: int = 1,
    not_requester: bool = False,
    decisions: Collection[str] = DECISIONS,
    expires_in: float | None = None,
    on_expiry: Literal["reject"] = "reject",
    remind_after: float | None = None,
    **unknown: Never,
) -> Rule:
    """Let people decide about calls.

    Where several rules ask about one call, all that they require holds: every role, the highest number, the shortest
    times, and only the decisions that each of them lists.

    Args:
        target: A tool's name, or `effect:…`.
        when: Holds for the calls that are meant. One that raises, or returns no bool, counts as yes.
        reason: Shown to the person.
        role: What whoever decides must be, as the service knows them; left out: anyone.
        number: How many different people must approve. One is enough to reject, to respond, or to edit: what an edit
            makes of the call is then asked about anew, with the editor as the first who approves it.
        not_requester: Whether the person for whom the run was started (`requester=`) may do no more than reject.
        decisions: What can be decided, of `approve`, `edit`, `reject` and `respond`. Rejecting can never be taken away.
        expires_in: Seconds after which an unanswered question counts as rejected; left out: never.
        on_expiry: What that means. `reject` is all there is: silence is no consent.
        remind_after: Seconds after which `Runs(on_reminder=…)` is told of a question that is still open, once.
        **unknown: Refused.

    Raises:
        ConfigurationError: Naming the rule and the option that is wrong.
    """
    _refuse_unknown("ask", target, unknown, ask)
    label = f"ask({target!r})"
    if cast("object", on_expiry) != "reject":
        text = f"{label}: on_expiry is {on_expiry!r}; only 'reject' is safe: silence is no consent"
        raise ConfigurationError(text, option="on_expiry")
    _check_decisions(label, decisions)
    listed = tuple(word for word in DECISIONS if word in decisions)
    when_given = _given(label, when)
    return Rule("ask", target, when_given, reason, expires_in, role, number, not_requester, remind_after, listed)


def deny(target: str, /, *, when: Predicate = always, reason: str = "", **unknown: Never) -> Rule:
    """Forbid calls.

    Args:
        target: A tool's name, or `effect:…`.
        when: Holds for the calls that are meant. One that raises, or returns no bool, counts as yes.
        reason: Read by the model.
        **unknown: Refused.

    Raises:
        ConfigurationError: Naming the rule and the option that is wrong.
    """
    _refuse_unknown("deny", target, unknown, deny)
    return Rule("deny", target, _given(f"deny({target!r})", when), reason)


def _given(label: str, when: Predicate | None) -> Predicate | None:
    """Return a predicate that was given, or None where it was left out; what a missing setting left is neither."""
    if when is None:
        text = f"{label}: when is None; give a function that takes the call, or leave it out to mean every call"
        raise ConfigurationError(text, option="when")
    return None if when is always else when


def _refuse_unknown(name: str, target: object, unknown: Mapping[str, object], builder: Callable[..., Rule]) -> None:
    options = [o for o, part in inspect.signature(builder).parameters.items() if part.kind is part.KEYWORD_ONLY]
    refuse_unknown(f"{name}({target!r})", unknown, options, target=target)


@dataclass(frozen=True, slots=True)
class Screening:
    """What the rules say of one call."""

    verdict: Verdict
    why: str
    by: str
    """The rule's label, or `default`; several labels where several rules ask."""
    expires_in: float | None = None
    remind_after: float | None = None
    needs: Requirement | None = None
    """What the rules that ask require together."""


def screen(rules: Iterable[Rule], call: ProposedCall) -> Screening:
    """Apply the rules to one call: the strictest match wins; without a match `read` is allowed and all else asks."""
    matches = [(rule, note) for rule, note in ((rule, match_rule(rule, call)) for rule in rules) if note is not None]
    if not matches:
        return _default(call)
    rule, note = max(matches, key=lambda match: _STRICTNESS[match[0].verdict])
    if rule.verdict == "ask":
        return _asked([match for match in matches if match[0].verdict == "ask"], call)
    return Screening(Verdict(rule.verdict), _why(rule, note), rule.label)


def _why(rule: Rule, note: str) -> str:
    return rule.reason or note or f"by the rule {rule.label}"


def _asked(matches: Sequence[tuple[Rule, str]], call: ProposedCall) -> Screening:
    """Combine the rules that ask, strictly: what is asked satisfies each of them."""
    rules = [rule for rule, _ in matches]
    return Screening(
        Verdict.ASK,
        "; ".join(dict.fromkeys(_why(rule, note) for rule, note in matches)),
        ", ".join(dict.fromkeys(rule.label for rule in rules)),
        expires_in=min((rule.expires_in for rule in rules if rule.expires_in is not None), default=None),
        remind_after=min((rule.remind_after for rule in rules if rule.remind_after is not None), default=None),
        needs=Requirement(
            roles=sorted({rule.role for rule in rules} - {ANYONE}),
            number=max(rule.number for rule in rules),
            not_by=call.run.get("requester", "") if any(rule.not_requester for rule in rules) else None,
            decisions=[word for word in DECISIONS if word == "reject" or all(word in rule.decisions for rule in rules)],
        ),
    )


def _default(call: ProposedCall) -> Screening:
    if call.effect == "read":
        return Screening(Verdict.ALLOW, "reading is allowed", "default")
    return Screening(Verdict.ASK, f"no rule allows this {call.effect}", "default", needs=require_nothing())


def rules_for(rules: Iterable[Rule], tool: str, effect: str) -> list[Rule]:
    """Return the rules that are about a tool's calls, whatever their predicates say."""
    return [rule for rule in rules if _is_about(rule, tool, effect)]


def _is_about(rule: Rule, tool: str, effect: str) -> bool:
    return rule.target in (tool, f"effect:{effect}")


def match_rule(rule: Rule, call: ProposedCall) -> str | None:
    """Return None for no match, else a note (often empty) for the verdict.

    A predicate that fails counts in the safe direction: no match for `allow`, a match for `ask` and `deny`.
    """
    if not _is_about(rule, call.tool, call.effect):
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
        close = get_close_matches(rule.target, [*names, *(f"effect:{effect}" for effect in EFFECTS)], 1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        text = f"{rule.label} names no tool of this agent{hint}; its tools are: {known}; "
        text += "effects are written 'effect:write'"
        raise UnknownTool(text, target=rule.target)
    return rule
