"""What could be better about an agent's tools and rules. Pure functions: neither a model nor a tool is called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from loopwright.policy import Rule
from loopwright.tools import Contract

MIN_DESCRIPTION = 40
"""Characters; in fewer, hardly a tool says what it does and when to use it."""
_WHEN = re.compile(r"\b(when|whenever|if|before|after|once|use|for)\b", re.IGNORECASE)
_NOT = re.compile(r"\b(not|never|only|no|without|instead|rather|nothing|unless)\b|n't\b", re.IGNORECASE)
_EMPTY_WORDS = {"a", "an", "the", "api", "tool", "function", "service", "call", "calls", "this", "is"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that could be better."""

    tool: str
    """The tool's name; of a finding about a rule, what the rule is for."""
    problem: str
    way_out: str


def lint(tools: Mapping[str, Contract], rules: Sequence[Rule]) -> tuple[Finding, ...]:
    """Return what could be better, tool by tool, then rule by rule."""
    found = [one for contract in tools.values() for one in _lint_tool(contract)]
    return (*found, *_lint_likeness(tools.values()), *_lint_rules(tools, rules))


def _lint_tool(contract: Contract) -> list[Finding]:
    findings: list[Finding] = []
    if not contract.declared:
        way_out = "say effect='read', 'idempotent' or 'write'; undeclared counts as 'write'"
        findings.append(Finding(contract.name, "its effect is not declared", way_out))
    if problem := _fault_of(contract):
        findings.append(Finding(contract.name, problem, f"write, say: “{example_of(contract)}”"))
    if contract.effect.value == "write" and contract.verify is None and not contract.key:
        way_out = "give verify=, or a key= that the service behind it honours"
        findings.append(Finding(contract.name, "after a crash only a person can tell whether it happened", way_out))
    return findings + _lint_parameters(contract)


def _fault_of(contract: Contract) -> str:
    """Say what a description lacks that a model would need to choose well; empty when it lacks nothing."""
    text = " ".join(contract.description.split())
    if _words(text) <= _words(contract.name) | _EMPTY_WORDS:
        return f"its description only repeats its name: {text!r}"
    if len(text) < MIN_DESCRIPTION:
        return f"its description is thin: {text!r}"
    lacks = [what for what, pattern in (("when to use it", _WHEN), ("when not", _NOT)) if not pattern.search(text)]
    return f"its description does not say {' and '.join(lacks)}" if lacks else ""


def example_of(contract: Contract) -> str:
    """Return a better description to start from, with gaps for what only its author knows."""
    does = " ".join(contract.name.replace("_", " ").split()).capitalize()
    by = " and ".join(contract.schema.model_fields)
    first = f"{does}, by {by}." if by else f"{does}."
    return f"{first} Returns …. Use it when the user …; do not use it for …."


def _words(text: str) -> set[str]:
    return set(re.findall(r"[^\W_]+", text.lower()))


def _lint_likeness(tools: Iterable[Contract]) -> list[Finding]:
    """Name the tools that a model cannot tell apart."""
    first: dict[str, str] = {}
    findings: list[Finding] = []
    for contract in tools:
        text = " ".join(contract.description.lower().split())
        if text in first:
            problem = f"its description is the same as that of {first[text]}"
            findings.append(Finding(contract.name, problem, "say of each what it does that the other does not"))
        first.setdefault(text, contract.name)
    return findings


def _lint_parameters(contract: Contract) -> list[Finding]:
    unnamed = [
        name
        for name, field in contract.schema.model_fields.items()
        if not field.description and name not in contract.description
    ]
    if not unnamed:
        return []
    problem = f"parameters without a word about them: {', '.join(unnamed)}"
    return [Finding(contract.name, problem, "mention them in the docstring, or use Annotated[…, Field(description=…)]")]


_STRICTER = {"allow": ("ask", "deny"), "ask": ("deny",), "deny": ()}


def _lint_rules(tools: Mapping[str, Contract], rules: Sequence[Rule]) -> list[Finding]:
    """Name the rules that can never count: no tool is meant, or a stricter rule holds for every call they mean."""
    findings: list[Finding] = []
    for rule in rules:
        meant = [contract for contract in tools.values() if _is_for(rule, contract)]
        if not meant:
            findings.append(
                Finding(rule.target, f"{rule.label} means none of the tools", "remove it, or mend its target")
            )
            continue
        over = [_stricter(rule, rules, contract) for contract in meant]
        if all(over):
            said = ", ".join(dict.fromkeys(one.label for one in over if one))
            problem = f"{rule.label} never counts: {said} is stricter, and holds for every call that it means"
            findings.append(Finding(rule.target, problem, "remove it, or give the stricter rule a when=…"))
    return findings


def _is_for(rule: Rule, contract: Contract) -> bool:
    return rule.target in (contract.name, f"effect:{contract.effect.value}")


def _stricter(rule: Rule, rules: Sequence[Rule], contract: Contract) -> Rule | None:
    strict = (one for one in rules if one.verdict in _STRICTER[rule.verdict] and one.when is None)
    return next((one for one in strict if _is_for(one, contract)), None)
