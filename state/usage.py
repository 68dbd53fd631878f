"""What a run has used, counted in one place; money is exact."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from typing_extensions import TypedDict

from .records import ThreadRecord

NANO = 1_000_000_000
"""Nano-dollars in a dollar: prices per million tokens stay whole numbers."""


class UsageRecord(TypedDict):
    """The `usage` channel; `Usage` is its typed view."""

    steps: int
    tool_calls: int
    by_tool: dict[str, int]
    model_calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_nano: int
    estimated: bool
    seconds: float


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens of one model call."""

    input: int
    """Of the whole input, the cached part included."""
    output: int
    """Of the whole output, reasoning included."""
    cached: int = 0
    reasoning: int = 0
    written: int = 0
    """The part of the input that the provider took into its cache, which can be dearer than other input."""
    written_hour: int = 0
    """The part of that which it keeps for an hour, which is dearer still."""
    estimated: bool = False
    """Whether the provider reported nothing, so that the figures are ours."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run has used so far."""

    steps: int
    """Model calls that led to a decision."""
    tool_calls: int
    """Tool calls that were admitted."""
    by_tool: dict[str, int]
    """The same, by tool."""
    model_calls: int
    """Attempts at a model, those whose process died included."""
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    """The part of the input that the provider took from its cache."""
    reasoning_tokens: int
    """The part of the output that was reasoning."""
    cost: Decimal
    """US dollars; 0 when the model has no price."""
    estimated: bool
    """Whether any figure was estimated, since none was reported."""
    seconds: float
    """Active seconds: waiting for a person is not in it."""

    @property
    def tokens(self) -> int:
        """Input and output together: what `max_tokens` bounds."""
        return self.input_tokens + self.output_tokens


def no_usage() -> UsageRecord:
    """Return the counters of a run that begins."""
    return UsageRecord(
        steps=0,
        tool_calls=0,
        by_tool={},
        model_calls=0,
        input_tokens=0,
        output_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        cost_nano=0,
        estimated=False,
        seconds=0.0,
    )


def view_usage(record: UsageRecord) -> Usage:
    """Return the typed view of the `usage` channel, whichever release wrote it."""
    known: dict[str, Any] = {**no_usage(), **record, "steps": max(0, record.get("steps", 0))}
    data = {field.name: known[field.name] for field in fields(Usage) if field.name != "cost"}
    return Usage(cost=Decimal(known["cost_nano"]) / NANO, **data)


def add_attempt(record: UsageRecord, tokens: Tokens, cost_nano: int) -> UsageRecord:
    """Count one attempt at a model."""
    return {
        **record,
        "model_calls": record["model_calls"] + 1,
        "input_tokens": record["input_tokens"] + tokens.input,
        "output_tokens": record["output_tokens"] + tokens.output,
        "cached_tokens": record["cached_tokens"] + tokens.cached,
        "reasoning_tokens": record["reasoning_tokens"] + tokens.reasoning,
        "cost_nano": record["cost_nano"] + cost_nano,
        "estimated": record["estimated"] or tokens.estimated,
    }


def add_step(record: UsageRecord) -> UsageRecord:
    """Count one step."""
    return {**record, "steps": record["steps"] + 1}


def add_tool_call(record: UsageRecord, tool: str) -> UsageRecord:
    """Count one admitted tool call."""
    by_tool = {**record["by_tool"], tool: record["by_tool"].get(tool, 0) + 1}
    return {**record, "tool_calls": record["tool_calls"] + 1, "by_tool": by_tool}


def remove_tool_call(record: UsageRecord, tool: str) -> UsageRecord:
    """Take back a call that was admitted, and then did not run."""
    left = record["by_tool"].get(tool, 0) - 1
    by_tool = {name: count for name, count in record["by_tool"].items() if name != tool}
    return {**record, "tool_calls": record["tool_calls"] - 1, "by_tool": by_tool | ({tool: left} if left > 0 else {})}


def add_cost(record: UsageRecord, cost_nano: int) -> UsageRecord:
    """Count what a tool cost."""
    return {**record, "cost_nano": record["cost_nano"] + cost_nano} if cost_nano else record


def add_seconds(record: UsageRecord, seconds: float) -> UsageRecord:
    """Count active time; never negative, whatever the clock did."""
    return {**record, "seconds": round(record["seconds"] + max(0.0, seconds), 6)}


def add_run(thread: ThreadRecord, record: UsageRecord) -> ThreadRecord:
    """Add a run that is over to the totals of its thread."""
    return _with_run(thread, record, 1)


def remove_run(thread: ThreadRecord, record: UsageRecord) -> ThreadRecord:
    """Take a run that goes on after all out of the totals again."""
    return _with_run(thread, record, -1)


def _with_run(thread: ThreadRecord, record: UsageRecord, sign: int) -> ThreadRecord:
    by_tool = dict(thread.get("by_tool", {}))
    for tool, count in record["by_tool"].items():
        by_tool[tool] = by_tool.get(tool, 0) + sign * count
    return {
        **thread,
        "runs": thread["runs"] + sign,
        "steps": thread["steps"] + sign * record["steps"],
        "tool_calls": thread["tool_calls"] + sign * record["tool_calls"],
        "tokens": thread["tokens"] + sign * (record["input_tokens"] + record["output_tokens"]),
        "cost_nano": thread["cost_nano"] + sign * record["cost_nano"],
        "seconds": round(thread.get("seconds", 0.0) + sign * record["seconds"], 6),
        "by_tool": {tool: count for tool, count in by_tool.items() if count > 0},
    }
