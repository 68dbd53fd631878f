"""LangGraph's `interrupt` in the body of a tool: what it asks, and how it gets its answer."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_SCRATCHPAD, CONFIG_KEY_SEND, CONFIG_KEY_TASK_ID
from langgraph.errors import GraphInterrupt
from pydantic_core import to_jsonable_python

from loopwright.state import storable_data
from loopwright.tools import to_text

from .place import BRANCH_KEY, RUN_ID_KEY

TOOL_KEY = "__loopwright_tool"
"""In `configurable`, within the body of a tool: the `act` task that runs it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a tool wants to know."""

    value: Any
    """As it was given to `interrupt`, made plain."""

    @property
    def text(self) -> str:
        """The same, to be read."""
        return to_text(self.value)


def asked_by(pause: GraphInterrupt) -> Asked | None:
    """Return what was asked; None where a graph within the tool asks several things at once.

    Nobody could tell then which of them an answer is for: they are asked by `act` tasks that run side by side.
    """
    interrupts: Sequence[Any] = pause.args[0] if pause.args else ()
    if len(interrupts) > 1:
        return None
    value: Any = getattr(interrupts[0], "value", None) if interrupts else None
    return Asked(storable_data(to_jsonable_python(value, fallback=repr, inf_nan_mode="strings")))


@contextmanager
def within_tool(answers: Sequence[Any]) -> Generator[None]:
    """Let the calls of `interrupt` within the block return these answers, in order; and mark it as a tool's body.

    LangGraph keeps answers by the task that paused. Here the pause was the guard's, in another task; and each try of a
    tool begins to count anew. A graph that the tool calls asks here for what its own nodes have no answer to, so that
    it gets them too. Which run this is, and on which branch, is not for an agent to know that is a node of it.
    """
    config = var_child_runnable_config.get()
    if config is None:
        yield
        return
    given = config.get("configurable", {})
    told = {**given, TOOL_KEY: given.get(CONFIG_KEY_TASK_ID), RUN_ID_KEY: "", BRANCH_KEY: None}
    if answers:
        left = deque(answers)
        pad = replace(
            given[CONFIG_KEY_SCRATCHPAD],
            interrupt_counter=count().__next__,
            get_null_resume=lambda consume=False: _next(left, consume=consume),
            resume=[],
        )
        told |= {CONFIG_KEY_SCRATCHPAD: pad, CONFIG_KEY_SEND: _unsent}
    token = var_child_runnable_config.set({**config, "configurable": told})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _next(left: deque[Any], *, consume: bool) -> Any:
    """Return the next answer; None where there is none: that question is put to a person."""
    if not left:
        return None
    return left.popleft() if consume else left[0]


def _unsent(_writes: Sequence[Any]) -> None:
    """Store nothing: the answers are kept with the call."""
