"""Which limit is met, and which calls still fit. Pure functions."""

from __future__ import annotations

from loopwright.state import Limits, RunRecord, StopReason, ThreadRecord, UsageRecord

from .bounds import Bounds
from .window import is_loop


def limit_met(limits: Limits | Bounds, usage: UsageRecord, run: RunRecord, thread: ThreadRecord) -> StopReason | None:
    """Return why no further model call may be made; None while one may."""
    if stop := run.get("stop"):
        return StopReason(stop)
    if is_loop(thread["window"]):
        return StopReason.LOOP
    if limits.max_steps is not None and usage["steps"] >= limits.max_steps:
        return StopReason.MAX_STEPS
    return over_limit(limits, usage)


def over_limit(limits: Limits | Bounds, usage: UsageRecord) -> StopReason | None:
    """Return which of the limits on what is spent has been reached."""
    if limits.max_tokens is not None and usage["input_tokens"] + usage["output_tokens"] >= limits.max_tokens:
        return StopReason.MAX_TOKENS
    if limits.max_cost_nano is not None and usage["cost_nano"] >= limits.max_cost_nano:
        return StopReason.MAX_COST
    if limits.max_seconds is not None and usage["seconds"] >= limits.max_seconds:
        return StopReason.DEADLINE
    return None


def refuse_call(limits: Limits | Bounds, usage: UsageRecord, tool: str) -> str:
    """Say why one more call of this tool does not fit; empty when it does."""
    if limits.max_tool_calls is not None and usage["tool_calls"] >= limits.max_tool_calls:
        return f"not run: the limit of {limits.max_tool_calls} tool calls is reached"
    of_tool = limits.calls_of(tool)
    if of_tool is not None and usage["by_tool"].get(tool, 0) >= of_tool:
        return f"not run: the limit of {of_tool} calls of {tool} is reached"
    return ""


def refuse_price(limits: Limits | Bounds, usage: UsageRecord, cost_nano: int) -> str:
    """Say why a priced call does not fit; empty when it does, or has no price.

    Args:
        limits: What bounds the run.
        usage: What it has used.
        cost_nano: The price of the call, and of those of its turn that were admitted before it.
    """
    bound = limits.max_cost_nano
    if not cost_nano or bound is None or usage["cost_nano"] + cost_nano <= bound:
        return ""
    return "not run: its price is more than the limit on cost leaves"


def calls_are_used_up(limits: Limits | Bounds, usage: UsageRecord) -> bool:
    """Tell whether no tool call at all fits any more."""
    return limits.max_tool_calls is not None and usage["tool_calls"] >= limits.max_tool_calls


def seconds_left(limits: Limits | Bounds, usage: UsageRecord) -> float | None:
    """Return the active seconds that are left; None for any number."""
    return None if limits.max_seconds is None else max(0.0, limits.max_seconds - usage["seconds"])
