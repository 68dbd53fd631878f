"""`check`: the five questions that one should be able to answer of an agent, and the lint of its tools."""

from __future__ import annotations

from dataclasses import dataclass

from loopwright.nodes import AgentSpec
from loopwright.policy import Loops
from loopwright.tools import Contract

from .agent import Agent

MIN_DESCRIPTION = 40
"""Characters; in fewer, hardly a tool says what it does and when to use it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that could be better."""

    tool: str
    problem: str
    way_out: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What `check` found; printed, it reads as a page."""

    name: str
    answers: tuple[tuple[str, str], ...]
    """The five questions, each with what this agent's set-up says."""
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        """Return the page."""
        lines = [f"agent {self.name!r}", ""]
        for question, answer in self.answers:
            lines += [question, f"  {answer}"]
        lines += ["", f"{len(self.findings)} finding(s)"]
        lines += [f"  {found.tool}: {found.problem}; {found.way_out}" for found in self.findings]
        return "\n".join(lines)


def check(agent: Agent) -> CheckReport:
    """Answer the five questions of an agent, and lint its tools; calls neither a model nor a tool."""
    spec = agent.spec
    answers = (
        ("How many steps at most?", _steps(spec)),
        ("What if a tool fails?", _failures(spec)),
        ("Success, or gave up?", "RunResult.status is 'succeeded' for a final answer only; stop_reason says why."),
        ("Is each step visible?", "One trail record a call in RunResult.trail; decisions and effects in the log."),
        ("What does it cost?", _cost(spec)),
    )
    findings = tuple(found for tool in spec.offered for found in _lint(spec.tools[tool.name]))
    return CheckReport(spec.name, answers, findings)


def _steps(spec: AgentSpec) -> str:
    limits = spec.limits
    steps = "any number of steps" if limits.max_steps is None else f"{limits.max_steps} steps"
    calls = "any number of tool calls" if limits.max_tool_calls is None else f"{limits.max_tool_calls} tool calls"
    seconds = "" if limits.max_seconds is None else f", {limits.max_seconds:g} active seconds"
    return f"{steps}, {calls}{seconds}; {_loops(spec.loops)}."


def _loops(loops: Loops) -> str:
    end = "asks a person" if loops.then == "ask" else "ends it"
    if loops.repeats is None:
        return "the same call with the same result may come again and again"
    return f"the same call with the same result is not run again after {loops.repeats} in a row, and then {end}"


def _failures(spec: AgentSpec) -> str:
    writes = [tool for tool in spec.tools.values() if tool.effect.value == "write"]
    unsure = [tool.name for tool in writes if tool.verify is None]
    rest = f" Without a verify hook, a person is asked: {', '.join(unsure)}." if unsure else ""
    return f"The model reads the error and can correct itself; a write that may have happened is never repeated.{rest}"


def _cost(spec: AgentSpec) -> str:
    tokens = "any number of tokens" if spec.limits.max_tokens is None else f"at most {spec.limits.max_tokens:,} tokens"
    money = "no limit on money" if spec.limits.max_cost is None else f"at most ${spec.limits.max_cost}"
    priced = "" if spec.price else "; the model's price is not known, so costs are not counted"
    return f"{tokens}, {money} a run{priced}."


def _lint(contract: Contract) -> list[Finding]:
    findings: list[Finding] = []
    if not contract.declared:
        way_out = "say effect='read', 'idempotent' or 'write'; undeclared counts as 'write'"
        findings.append(Finding(contract.name, "its effect is not declared", way_out))
    if len(contract.description) < MIN_DESCRIPTION:
        way_out = "say what it returns, when to use it, and when not"
        findings.append(Finding(contract.name, f"its description is thin: {contract.description!r}", way_out))
    if contract.effect.value == "write" and contract.verify is None and not contract.key:
        way_out = "give verify=, or a key= that the service behind it honours"
        findings.append(Finding(contract.name, "after a crash only a person can tell whether it happened", way_out))
    findings += _undescribed(contract)
    return findings


def _undescribed(contract: Contract) -> list[Finding]:
    unnamed = [
        name
        for name, field in contract.schema.model_fields.items()
        if not field.description and name not in contract.description
    ]
    if not unnamed:
        return []
    problem = f"parameters without a word about them: {', '.join(unnamed)}"
    return [Finding(contract.name, problem, "mention them in the docstring, or use Annotated[…, Field(description=…)]")]
