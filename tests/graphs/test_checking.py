"""`check`: five answers about an agent, and what could be better about its tools."""

from __future__ import annotations

from decimal import Decimal

import pytest

from loopwright import Budget, Limits, Price, ProposedAnswer, Rate, allow, ask, check, create_agent, deny, tool
from loopwright.testing import ScriptedModel
from loopwright.tools import Tool


@tool
def bad(order: str) -> str:
    """Weather API."""
    return order


@tool(effect="write", key="{order_id}")
def good(order_id: str) -> str:
    """Cancel an order, by its order_id such as A100. Use it only when the customer asks for it."""
    return order_id


def test_a_sound_agent_has_no_findings() -> None:
    """And its limits are told."""
    limits = Limits(max_steps=8, max_cost=Decimal("0.05"))
    agent = create_agent(ScriptedModel([]), [good], limits=limits, price=Price(Decimal(1), Decimal(1)), name="shop")
    report = check(agent)
    assert () == report.findings
    text = str(report)
    assert "agent 'shop'" in text
    assert "8 steps" in text
    assert "at most $0.05" in text


def test_limits_of_tools_and_threads_are_told() -> None:
    """What is written for a thread; not the defaults, which bound none."""
    whole = Limits(max_calls_per_tool=3, thread=Limits(max_steps=1_200, max_cost=Decimal(5), max_seconds=90))
    price = Price(Decimal(1), Decimal(1))
    told = str(check(create_agent(ScriptedModel([]), [good], limits=whole, price=price)))
    assert "50 tool calls, 3 of one tool, 600 active seconds" in told
    assert "All runs of a thread together: 1,200 steps, $5, 90 active seconds." in told
    named = Limits(max_calls_per_tool={"good": 2}, thread=Limits(max_calls_per_tool={"good": 9}))
    told = str(check(create_agent(ScriptedModel([]), [good], limits=named)))
    assert "50 tool calls, 2 of good, 600 active seconds" in told
    assert "All runs of a thread together: 9 of good." in told


def test_what_could_be_better() -> None:
    """An undeclared effect, a thin description, a parameter without a word, and a crash that nobody could resolve."""
    report = check(create_agent(ScriptedModel([]), [bad]))
    problems = [finding.problem for finding in report.findings]
    assert {"bad"} == {finding.tool for finding in report.findings}
    assert any("not declared" in problem for problem in problems)
    assert any("thin" in problem for problem in problems)
    assert any("“Bad, by order. Returns …. Use it when" in finding.way_out for finding in report.findings)
    assert any("without a word" in problem for problem in problems)
    assert any("only a person can tell" in problem for problem in problems)
    assert "the model's price is not known" in str(report)
    assert "a person is asked: bad" in str(report)


def test_the_five_questions() -> None:
    """Each has an answer, also where limits are lifted."""
    lifted = Limits(max_steps=None, max_tool_calls=None, max_tokens=None)
    report = check(create_agent(ScriptedModel([]), [], limits=lifted))
    assert len(report.answers) == 5
    assert all(answer for _, answer in report.answers)
    assert "  Any number of steps, any number of tool calls" in str(report)


def described(name: str, text: str) -> Tool:
    """Build a read tool with a description."""

    def body(order_id: str) -> str:
        return order_id

    body.__doc__ = text
    return tool(name=name, effect="read")(body)


DESCRIPTIONS: dict[str, tuple[str, str]] = {
    "only its name": ("Weather API.", "only repeats its name"),
    "too short": ("Weather by order_id.", "thin"),
    "no when, no not": ("Returns the weather at the place to which order_id is sent.", "when to use it and when not"),
    "no not": ("Returns the weather at the place of order_id. Use it when asked.", "does not say when not"),
    "all of it": ("Returns the weather at the place of order_id. Use it when asked, never to guess a delay.", ""),
}


@pytest.mark.parametrize(("text", "problem"), DESCRIPTIONS.values(), ids=DESCRIPTIONS.keys())
def test_a_description_says_what_when_and_when_not(text: str, problem: str) -> None:
    """Else the tool is named, with an example to start from."""
    report = check(create_agent(ScriptedModel([]), [described("weather", text)]))
    told = [(f.tool, "“Weather, by order_id." in f.way_out) for f in report.findings if "description" in f.problem]
    assert told == ([("weather", True)] if problem else [])
    assert problem in str(report)


def test_tools_that_a_model_cannot_tell_apart() -> None:
    """Whatever capitals they are written in."""
    text = "Returns the weather at the place of order_id. Use it when asked, never to guess a delay."
    report = check(create_agent(ScriptedModel([]), [described("one", text), described("two", text.upper())]))
    assert ("two", "its description is the same as that of one") in [(f.tool, f.problem) for f in report.findings]


def test_what_an_answer_must_pass() -> None:
    """Where nothing is asked of it, nothing is said."""

    def is_short(answer: ProposedAnswer) -> bool:
        return len(answer.text) < 100

    form = {"title": "Refund", "type": "object"}
    told = str(check(create_agent(ScriptedModel([]), [good], verify=is_short, response_format=form, answer_retries=1)))
    assert "An answer must pass the form Refund, is_short; retries before the run ends 'unverified': 1." in told
    assert "must pass" not in str(check(create_agent(ScriptedModel([]), [good])))


def test_what_is_shared_priced_and_paced() -> None:
    """Budgets, prices of tools, and rates of each model and tool; where there are none, nothing is said."""

    @tool(effect="read", price=Decimal("0.10"), rate=Rate(calls=2, per_seconds=3600, when_exceeded="refuse"))
    def look(order_id: str) -> str:
        """Look up an order."""
        return order_id

    @tool(effect="read", price="reported", rate=Rate(calls=5, per_seconds=1))
    def find(order_id: str) -> str:
        """Find an order."""
        return order_id

    price = Price(Decimal(1), Decimal(2))
    tenants = Budget(name="support", by="tenant", max_cost=Decimal(1), max_tokens=5000, per="day")
    everybody = Budget(name="trial", max_tokens=9000)
    agent = create_agent(
        [ScriptedModel([]), "demo"],
        [look, find, good],
        price={"scripted": price, "demo": price},
        budgets=[tenants, everybody],
        rate=Rate(calls=60, per_seconds=60, when_exceeded="refuse"),
    )
    told = str(check(agent))
    assert "Budget 'support': the runs of each tenant share at most $1 and 5,000 tokens a day." in told
    assert "Budget 'trial': all runs share at most 9,000 tokens in all." in told
    assert "Tools cost besides: look $0.10 a call, find what it reports." in told
    assert "look has a rate limit of 2 in 3600 s, then the call is not run" in told
    assert "find has a rate limit of 5 in 1 s, then the run waits." in told
    assert "the model scripted has a rate limit of 60 in 60 s, then the run ends; the model demo has a" in told
    assert "A step asks scripted, then demo, up to" in told
    plain = str(check(create_agent(ScriptedModel([]), [good])))
    assert not [word for word in ("Budget", "Tools cost", "rate limit") if word in plain]


def test_rules_that_never_count() -> None:
    """One for no tool, and one that a stricter one always beats."""
    rules = [allow("good"), ask("effect:write"), deny("effect:idempotent"), ask("good", when=lambda _call: True)]
    report = check(create_agent(ScriptedModel([]), [good], permissions=rules))
    first, second = report.findings
    assert ("good", True) == (first.tool, "allow('good') never counts: ask('effect:write')" in first.problem)
    assert ("effect:idempotent", True) == (second.tool, "means none of the tools" in second.problem)
