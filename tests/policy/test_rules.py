"""Permissions: the strictest match wins, and no mistake opens a gate."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from loopwright import ProposedCall, allow, ask, deny
from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.policy import Rule, check_rules, screen
from loopwright.state import RunRecord, ThreadRecord, Verdict

RUN = RunRecord(id="r", task_id="t", task="", began=0.0, status="running", reason="", answer="", error="")
THREAD = ThreadRecord(version=1, runs=0, steps=0, tool_calls=0, tokens=0, cost_nano=0, window={})


def proposed(effect: str = "write", **args: Any) -> ProposedCall:
    """A call of `pay`."""
    return ProposedCall("pay", effect, args, RUN, THREAD, ())


def fail(_call: ProposedCall) -> bool:
    """A predicate that raises."""
    raise KeyError("amount")


def none(_call: ProposedCall) -> Any:
    """A predicate that says nothing."""


def one(_call: ProposedCall) -> Any:
    """A predicate that returns something true, which is no bool."""
    return 1


def small(call: ProposedCall) -> bool:
    """Below fifty."""
    return bool(call.args["amount"] < 50)


TABLE: dict[str, tuple[list[Rule], ProposedCall, str]] = {
    "a read is allowed by default": ([], proposed("read"), "allow"),
    "an idempotent call asks": ([], proposed("idempotent"), "ask"),
    "a write asks": ([], proposed("write"), "ask"),
    "allow": ([allow("pay")], proposed(), "allow"),
    "by effect": ([allow("effect:write")], proposed(), "allow"),
    "ask over allow": ([allow("pay"), ask("effect:write")], proposed(), "ask"),
    "deny over ask, in any order": (
        [deny("pay"), ask("pay", when=small), allow("effect:write")],
        proposed(amount=1),
        "deny",
    ),
    "a read can be denied": ([deny("effect:read")], proposed("read"), "deny"),
    "a rule for another tool": ([allow("look"), deny("look")], proposed(), "ask"),
    "a rule for another effect": ([deny("effect:read")], proposed(), "ask"),
    "a predicate that holds": ([allow("pay", when=small)], proposed(amount=49), "allow"),
    "one that does not": ([allow("pay", when=small)], proposed(amount=50), "ask"),
    "one that raises is no allow": ([allow("pay", when=fail)], proposed(), "ask"),
    "one that raises is an ask": ([allow("pay"), ask("pay", when=fail)], proposed(), "ask"),
    "one that raises is a deny": ([allow("pay"), deny("pay", when=fail)], proposed(), "deny"),
    "None is no allow": ([allow("pay", when=none)], proposed(), "ask"),
    "1 is no allow": ([allow("pay", when=one)], proposed(), "ask"),
    "None is a deny": ([allow("pay"), deny("pay", when=none)], proposed(), "deny"),
}


@pytest.mark.parametrize(("rules", "call", "verdict"), TABLE.values(), ids=TABLE.keys())
def test_table(rules: list[Rule], call: ProposedCall, verdict: str) -> None:
    """What the rules say of a call."""
    assert verdict == screen(rules, call).verdict


def test_the_verdict_says_whose_it_is() -> None:
    """A rule by its label and reason; a failing predicate by name."""
    said = screen([deny("pay", reason="not on Sundays")], proposed())
    assert ("not on Sundays", "deny('pay')") == (said.why, said.by)
    said = screen([ask("pay", when=fail)], proposed())
    assert "raised KeyError" in said.why
    assert "returned int" in screen([deny("pay", when=one)], proposed()).why
    assert screen([], proposed()).by == "default"


def test_expiry_travels_with_the_question() -> None:
    """From the rule that asked."""
    assert screen([ask("pay", expires_in=60)], proposed()).expires_in == 60


@pytest.mark.parametrize("rule", [allow("paay"), deny("effect:writes"), ask("effect:"), allow(""), deny("effect")])
def test_a_misspelt_target_is_refused(rule: Rule) -> None:
    """A rule that could never match would open the gate that it was to close."""
    with pytest.raises(UnknownTool, match="pay"):
        check_rules([rule], ["pay"])


@pytest.mark.parametrize("rule", [None, "deny", {"deny": "pay"}, ("deny", "pay"), deny])
def test_what_is_no_rule_is_refused(rule: object) -> None:
    """By what it is."""
    with pytest.raises(ConfigurationError, match="no rule"):
        check_rules([rule], ["pay"])


def test_contradictions_are_refused() -> None:
    """Two rules of one target without a predicate cannot both be meant; with one, they can."""
    with pytest.raises(ConfigurationError, match="allow, deny"):
        check_rules([allow("pay"), deny("pay")], ["pay"])
    assert len(check_rules([allow("pay"), deny("pay", when=small), deny("effect:write")], ["pay"])) == 3


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
@pytest.mark.parametrize("target", ["pay", "effect:write"])
def test_an_expiry_lies_ahead(seconds: float, target: str) -> None:
    """A question that expires at once would be no question."""
    with pytest.raises(ConfigurationError, match="expires_in"):
        check_rules([ask(target, expires_in=seconds)], ["pay"])


async def later(_call: ProposedCall) -> bool:
    """A predicate that would have to be awaited."""
    return True


MALFORMED: dict[str, tuple[Callable[[Any], Rule], Any, str]] = {
    "no predicate": (lambda when: allow("pay", when=when), True, "when is True"),
    "a false one": (lambda when: deny("pay", when=when), False, "when is False"),
    "an async one": (lambda when: ask("pay", when=when), later, "async"),
    "a list of targets": (allow, ["pay"], "one tool's name"),
    "no target": (deny, None, "one tool's name"),
    "a tool itself": (ask, fail, "one tool's name"),
    "seconds as text": (lambda seconds: ask("pay", expires_in=seconds), "60", "expires_in is '60'"),
    "seconds as a bool": (lambda seconds: ask("pay", expires_in=seconds), True, "expires_in is True"),
    "no end": (lambda seconds: ask("pay", expires_in=seconds), float("inf"), "expires_in is inf"),
    "a reason that is none": (lambda reason: deny("pay", reason=reason), 3, "reason is 3"),
    "a verdict that is none": (lambda verdict: Rule(verdict, "pay"), "dney", "verdict is 'dney'"),
}


@pytest.mark.parametrize(("build", "given", "match"), MALFORMED.values(), ids=MALFORMED.keys())
def test_a_malformed_rule_is_refused_where_it_is_written(build: Callable[[Any], Rule], given: Any, match: str) -> None:
    """Not when the first call is screened."""
    with pytest.raises(ConfigurationError, match=match):
        build(given)


def test_a_context_need_not_be_made_to_be_copied() -> None:
    """What can be copied is, at any depth; a lock itself is handed out, and nothing that stands beside it."""
    seen: list[Any] = []

    def look(call: ProposedCall) -> bool:
        seen.append([*call.context])
        call.context.update(tier=2)
        call.context["names"].append("boss")
        return False

    contexts: list[dict[str, Any]] = [
        {"tier": 1, "names": ["ana"]},
        {"tier": 1, "names": ["ana"], "lock": threading.Lock()},
    ]
    for context in contexts:
        screen([allow("pay", when=look)], replace(proposed(amount=1), context=context))
        assert (1, ["ana"]) == (context["tier"], context["names"])
    assert [["tier", "names"], ["tier", "names", "lock"]] == seen


class Caller(BaseModel):
    """Holds a lock, and what a rule goes by."""

    model_config = ConfigDict(arbitrary_types_allowed=True, frozen=True)

    roles: list[str]
    held: Any


@dataclass(frozen=True, slots=True)
class Desk:
    """The same."""

    roles: list[str]
    held: Any


@pytest.mark.parametrize("build", [Caller, Desk])
def test_a_predicate_opens_no_gate_by_a_context_that_cannot_be_copied(build: Any) -> None:
    """What one rule does to its copy is not what the next one sees, however deep it stands beside a lock."""

    def meddle(call: ProposedCall) -> bool:
        call.context.roles.append("boss")
        call.context.held[0].roles.append("boss")
        return False

    def is_boss(call: ProposedCall) -> bool:
        return "boss" in call.context.roles or "boss" in call.context.held[0].roles

    context = build(roles=[], held=[build(roles=[], held=threading.Lock())])
    rules = [deny("pay", when=meddle), allow("pay", when=is_boss)]
    assert Verdict.ASK is screen(rules, replace(proposed(amount=1), context=context)).verdict


def test_a_predicate_changes_nothing() -> None:
    """It sees copies: neither the call, nor the run's memory, nor what the next predicate sees."""
    run, thread = RunRecord(**RUN), ThreadRecord(**THREAD)
    trail: Any = [{"tool": "pay", "args": {"amount": 1}}]
    call = ProposedCall("pay", "write", {"amount": 60, "to": ["ana"]}, run, thread, trail)

    def meddle(seen: ProposedCall) -> bool:
        args: Any = seen.args
        trail: Any = seen.trail
        args["amount"] = 1
        args["to"].clear()
        seen.run["status"] = "succeeded"
        seen.thread["window"].update(pay=[])
        trail[0]["args"].clear()
        trail.append({})
        return False

    assert screen([deny("pay", when=meddle), allow("pay", when=small)], call).verdict == "ask"
    before: Any = [{"tool": "pay", "args": {"amount": 1}}]
    assert ProposedCall("pay", "write", {"amount": 60, "to": ["ana"]}, RUN, THREAD, before) == call
