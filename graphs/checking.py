"""`check`: the five questions that one should be able to answer of an agent, and the lint of its tools."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.nodes import AgentSpec
from loopwright.policy import Loops
from loopwright.state import Budget, Limits, Rate

from .agent import Agent
from .linting import Finding, lint


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found; printed, it reads as a page."""

    name: str
    answers: tuple[tuple[str, str], ...]
    """The five questions, each with what this agent's set-up says."""
    findings: tuple[Finding, ...]
    foreign: tuple[tuple[str, str, str], ...] = ()
    """Tools that another party describes to the model: the name, who it is, and the words."""

    def __str__(self) -> str:
        """Return the page."""
        lines = [f"agent {self.name!r}", ""]
        for question, answer in self.answers:
            lines += [question, f"  {answer}"]
        for tool, origin, words in self.foreign:
            lines += ["", f"{tool}, in the words of {origin}", *(f"  | {line}" for line in words.splitlines())]
        lines += ["", f"{len(self.findings)} finding(s)"]
        lines += [f"  {found.tool}: {found.problem}; {found.way_out}" for found in self.findings]
        return "\n".join(lines)


def check(agent: Agent) -> CheckReport:
    """Answer the five questions of an agent, and lint its tools; calls neither a model nor a tool."""
    spec = agent.spec
    found = (
        ("How many steps at most?", _steps(spec)),
        ("What if a tool fails?", _failures(spec)),
        ("Success, or gave up?", _ending(spec)),
        ("Is each step visible?", _visible(spec)),
        ("What does it cost?", _cost(spec)),
    )
    answers = tuple((question, answer[:1].upper() + answer[1:]) for question, answer in found)
    offered = {tool.name: spec.tools[tool.name] for tool in spec.offered}
    foreign = tuple((one.name, one.origin, one.description) for one in offered.values() if one.origin)
    return CheckReport(spec.name, answers, lint(offered, spec.rules), foreign)


def _steps(spec: AgentSpec) -> str:
    limits = spec.limits
    steps = "any number of steps" if limits.max_steps is None else f"{limits.max_steps:,} steps"
    calls = "any number of tool calls" if limits.max_tool_calls is None else f"{limits.max_tool_calls:,} tool calls"
    each = "".join(f", {told}" for told in _of_tools(limits))
    seconds = "" if limits.max_seconds is None else f", {limits.max_seconds:g} active seconds"
    return f"{steps}, {calls}{each}{seconds}; {_loops(spec.loops)}.{_thread(limits.thread)}{_rates(spec)}"


def _of_tools(limits: Limits) -> list[str]:
    """Say how often single tools may be called."""
    numbers = limits.max_calls_per_tool
    if numbers is None:
        return []
    if isinstance(numbers, int):
        return [f"{numbers} of one tool"]
    return [f"{number} of {tool}" for tool, number in numbers.items()]


def _thread(limits: Limits | None) -> str:
    """Say what all runs of a thread may do together."""
    if limits is None:
        return ""
    written = limits.written()
    figures = [
        (written.max_steps, "{:,} steps"),
        (written.max_tool_calls, "{:,} tool calls"),
        (written.max_tokens, "{:,} tokens"),
        (written.max_cost, "${:f}"),
        (written.max_seconds, "{:g} active seconds"),
    ]
    told = [how.format(figure) for figure, how in figures if figure is not None]
    return f" All runs of a thread together: {', '.join([*told, *_of_tools(written)])}."


def _rates(spec: AgentSpec) -> str:
    """Say how often each model and tool can be called, and what is done about a call too many."""
    models = {one.model_name: one.rate for one in spec.by_model}
    told = [_paced(f"the model {name}", rate, "the run ends") for name, rate in models.items() if rate]
    tools = {tool.name: spec.tools[tool.name].rate for tool in spec.offered}
    told += [_paced(name, rate, "the call is not run") for name, rate in tools.items() if rate]
    return f" Over all runs of a ledger: {'; '.join(told)}." if told else ""


def _paced(name: str, rate: Rate, refused: str) -> str:
    then = {"wait": "the run waits", "refuse": refused, "park": "the run is parked, and goes on by itself"}
    return f"{name} has a {rate}, then {then[rate.when_exceeded]}"


def _loops(loops: Loops) -> str:
    end = "asks a person" if loops.then == "ask" else "ends it"
    if loops.repeats is None:
        return "the same call with the same result may come again and again"
    return f"the same call with the same result is not run again after {loops.repeats} in a row, and then {end}"


def _failures(spec: AgentSpec) -> str:
    tools = [spec.tools[tool.name] for tool in spec.offered]
    parts = ["The model reads the error and can correct itself; a run ends only by its limits."]
    if tools:
        slowest = max(tools, key=lambda tool: tool.timeout)
        parts.append(f"A call is given up after {slowest.timeout:g} seconds at most ({slowest.name}).")
    if again := [tool.name for tool in tools if tool.effect.value == "idempotent"]:
        parts.append(f"After a crash these run again, under the same key: {', '.join(again)}.")
    if verified := [tool.name for tool in tools if tool.effect.value == "write" and tool.verify is not None]:
        parts.append(f"These look by themselves whether they happened: {', '.join(verified)}.")
    if unsure := [tool.name for tool in tools if tool.effect.value == "write" and tool.verify is None]:
        parts.append(
            "A write that may have happened is never repeated. Without a verify hook, a person is asked: "
            f"{', '.join(unsure)}."
        )
    return " ".join(parts)


def _ending(spec: AgentSpec) -> str:
    hands_over = [tool.name for tool in spec.tools.values() if tool.hands_over]
    over = f" {', '.join(hands_over)} ends it as 'escalated'." if hands_over else ""
    told = (
        "RunResult.status is 'succeeded' for a final answer only; else stop_reason says why; the best answer is kept."
    )
    return f"{told}{over}{_musts(spec)}"


def _musts(spec: AgentSpec) -> str:
    form = [f"the form {spec.form.name}"] if spec.form is not None else []
    musts = [*form, *(check.name for check in spec.answers.checks)]
    if not musts:
        return ""
    return f" An answer must pass {', '.join(musts)}; retries before the run ends 'unverified': {spec.answers.retries}."


def _visible(spec: AgentSpec) -> str:
    asked = [rule.label for rule in spec.rules if rule.verdict == "ask"]
    rules = f" Besides what no rule allows, people are asked by {', '.join(asked)}." if asked else ""
    told = "One trail record a call in RunResult.trail; decisions and effects in the log, chained by hashes."
    return f"{told}{rules}"


def _cost(spec: AgentSpec) -> str:
    tokens = "any number of tokens" if spec.limits.max_tokens is None else f"at most {spec.limits.max_tokens:,} tokens"
    money = "no limit on money" if spec.limits.max_cost is None else f"at most ${spec.limits.max_cost:f}"
    unpriced = [one.model_name for one in spec.by_model if one.price is None]
    whose = "the model's price is" if not spec.fallbacks else f"the prices of {', '.join(unpriced)} are"
    priced = f"; {whose} not known, so costs are not counted" if unpriced else ""
    shared = "".join(map(_shared, spec.budgets))
    return f"{tokens}, {money} a run{priced}.{_attempts(spec)}{_tool_prices(spec)}{shared}"


def _attempts(spec: AgentSpec) -> str:
    """Say how many attempts a step can take; each is reserved, and charged."""
    if not spec.fallbacks and spec.retry.tries == 1:
        return ""
    names = ", then ".join(one.model_name for one in spec.by_model)
    return f" A step asks {names}, up to {spec.retry.tries} times each; failed attempts count."


def _tool_prices(spec: AgentSpec) -> str:
    """Say what calls of tools cost besides; the models' prices are told apart."""
    prices = {tool.name: spec.tools[tool.name].price for tool in spec.offered}
    told = [
        f"{name} what it reports" if price == "reported" else f"{name} ${price:f} a call"
        for name, price in prices.items()
        if price is not None
    ]
    return f" Tools cost besides: {', '.join(told)}." if told else ""


def _shared(budget: Budget) -> str:
    """Say what a budget allows, and whom."""
    money = [] if budget.max_cost is None else [f"${budget.max_cost:f}"]
    amounts = [*money, *([] if budget.max_tokens is None else [f"{budget.max_tokens:,} tokens"])]
    per = f" a {budget.per}" if budget.per else " in all"
    whose = f"the runs of each {budget.by} share" if budget.by else "all runs share"
    return f" Budget {budget.name!r}: {whose} at most {' and '.join(amounts)}{per}."
