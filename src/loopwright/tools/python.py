"""`run_python`: a little Python in a sandbox without files, network or modules of ours, by pydantic-monty."""

from __future__ import annotations

from typing import Any

from loopwright.errors import ConfigurationError

from .results import to_text
from .tool import tool

MAX_BYTES = 128 * 2**20
"""Memory that the code may use."""
MAX_SECONDS = 5.0
"""How long it may run."""
SHOWN = 5000
"""Characters of what it printed."""


class CodeFailed(RuntimeError):
    """The code raised, was no code, or used up its memory or its time; the text says which."""


def run_code(code: str) -> dict[str, Any]:
    """Run Python code in a process of its own; returns what it printed and the value of its last expression.

    Monty runs a part of Python: no classes with inheritance, no third-party packages, and of the standard library only
    what touches nothing outside. The process has 128 MB and 5 s, and is gone afterwards.

    Raises:
        CodeFailed: If it raised, was no code, or used up its memory or its time.
        ConfigurationError: If pydantic-monty, of the extra `tools`, is not installed.
    """
    try:
        import pydantic_monty as monty
    except ImportError as error:
        text = "run_python needs the package pydantic-monty; install it with: pip install 'loopwright[tools]'"
        raise ConfigurationError(text, extra="tools") from error
    printed = monty.CollectString()
    limits = monty.ResourceLimits(max_memory=MAX_BYTES, max_feed_duration_secs=MAX_SECONDS)
    policy = monty.OSPolicy(sleep="zero")  # whoever sleeps does not use up time, and would hold the process
    pool = monty.Monty(max_processes=1, request_timeout=2 * MAX_SECONDS)
    try:
        with pool, pool.checkout(limits=limits, os_policy=policy) as box:
            value = box.feed_run(code, print_callback=printed)
    except monty.MontyError as error:
        raise CodeFailed(f"{error}".strip() or type(error).__name__) from None
    told: dict[str, Any] = {} if value is None else {"value": to_text(value)}
    return {**told, "printed": printed.output[:SHOWN]} if printed.output or not told else told


@tool(effect="read", timeout=4 * MAX_SECONDS)
def run_python(code: str) -> dict[str, Any]:
    """Run a few lines of Python in a sandbox; returns what they printed and the value of the last expression.

    Use it to work on data that you have in this conversation: to sort, count, compare dates, or do long arithmetic. It
    has no files, no network and no packages, and remembers nothing of an earlier call; not for anything outside.
    """
    return run_code(code)
