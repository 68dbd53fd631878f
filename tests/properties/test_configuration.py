"""No slip of the pen opens a gate: rules with something written wrongly are refused, or are at least as strict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.errors import ConfigurationError
from loopwright.policy import ProposedCall, Rule, allow, ask, check_rules, deny, screen

TOOLS: Mapping[str, str] = {"pay": "write", "look": "read", "stamp": "idempotent"}
AMOUNTS = (1, 50, 51, 1000)
BUILD: Mapping[str, Any] = {"allow": allow, "ask": ask, "deny": deny}
STRICT = {"allow": 0, "ask": 1, "deny": 2}
RUN: Any = {"requester": "customer-7"}
THREAD: Any = {}

Written = tuple[str, str, dict[str, Any]]
"""A rule as somebody writes it: its word, its target, its options."""


def small(proposed: ProposedCall) -> bool:
    """Hold for small amounts."""
    return bool(proposed.args["amount"] <= 50)


def big(proposed: ProposedCall) -> bool:
    """Hold for big ones."""
    return bool(proposed.args["amount"] > 50)


TARGETS = st.sampled_from([*TOOLS, "effect:write", "effect:read", "effect:idempotent"])
ASK_OPTIONS: Any = st.fixed_dictionaries(
    {},
    optional={
        "when": st.sampled_from([small, big]),
        "role": st.sampled_from(["lead", "finance"]),
        "number": st.integers(2, 3),
        "not_requester": st.just(True),  # noqa: FBT003 -- a value to draw
        "expires_in": st.sampled_from([60, 3600.0]),
        "decisions": st.sampled_from([("approve",), ("approve", "reject")]),
        "reason": st.just("money"),
    },
)
RULES: Any = st.one_of(
    st.tuples(st.just("allow"), TARGETS, st.fixed_dictionaries({"when": st.just(small)})),
    st.tuples(st.just("ask"), TARGETS, ASK_OPTIONS),
    st.tuples(st.just("deny"), TARGETS, st.fixed_dictionaries({}, optional={"when": st.just(big)})),
)
ODD_VALUES: list[Any] = [None, "", " ", 0, -1, 1.5, float("nan"), [], {}, (), "yes", "aprove", b"x", object()]
ODD: Any = st.sampled_from(ODD_VALUES)


@st.composite
def slips(draw: Any, rule: Written) -> Written:
    """Write a rule wrongly: a letter less or twice in the target or an option's name, or a value that is none."""
    word, target, options = rule
    kind = draw(st.sampled_from(["target", "name", "value", "unknown"]))
    if kind == "target":
        return word, _mistyped(draw, target), options
    if kind == "unknown" or not options:
        return word, target, {**options, draw(st.sampled_from(["whom", "roles", "numbers", "approvers", "expires"])): 1}
    name = draw(st.sampled_from(sorted(options)))
    if kind == "name":
        rest = {other: value for other, value in options.items() if other != name}
        return word, target, {**rest, _mistyped(draw, name): options[name]}
    return word, target, {**options, name: draw(ODD)}


def _mistyped(draw: Any, text: str) -> str:
    place: int = draw(st.integers(0, len(text) - 1))
    instead: str = draw(st.sampled_from(["", text[place] * 2]))
    return text[:place] + instead + text[place + 1 :]


def build(rules: list[Written]) -> tuple[Rule, ...]:
    """Write the rules down, and check them as `create_agent` does."""
    return check_rules([BUILD[word](target, **options) for word, target, options in rules], TOOLS)


def verdicts(rules: tuple[Rule, ...]) -> list[tuple[Any, ...]]:
    """Return how strict the rules are with every call: the verdict, then what they require of who decides."""
    seen: list[tuple[Any, ...]] = []
    for tool, effect in TOOLS.items():
        for amount in AMOUNTS:
            said = screen(rules, ProposedCall(tool, effect, {"amount": amount}, RUN, THREAD, ()))
            needs = said.needs
            roles = frozenset(needs["roles"]) if needs else frozenset[str]()
            fixed = (needs["number"], needs["not_by"] is not None) if needs else (0, False)
            seen.append((STRICT[said.verdict], roles, *fixed))
    return seen


@settings(max_examples=300)
@given(st.data(), st.lists(RULES, min_size=1, max_size=4))
def test_a_slip_opens_nothing(data: st.DataObject, rules: list[Written]) -> None:
    """Refused; or nothing runs that would have been asked or denied, and nobody may decide who might not have."""
    try:
        meant = verdicts(build(rules))
    except ConfigurationError:
        return  # two rules that contradict each other
    place = data.draw(st.integers(0, len(rules) - 1))
    slipped = data.draw(slips(rules[place]))
    try:
        written = verdicts(build([*rules[:place], slipped, *rules[place + 1 :]]))
    except ConfigurationError:
        return
    for before, after in zip(meant, written, strict=True):
        assert after[0] >= before[0], (rules[place], slipped)
        if after[0] == before[0] == STRICT["ask"]:
            assert len(after[1]) >= len(before[1]), (rules[place], slipped)
            assert all(now >= then for now, then in zip(after[2:], before[2:], strict=True)), (rules[place], slipped)
