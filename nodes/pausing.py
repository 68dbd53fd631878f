"""LangGraph's `interrupt` in the body of a tool: what it asks, and how it gets its answer."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_SCRATCHPAD, CONFIG_KEY_SEND
from langgraph.errors import GraphInterrupt
from pydantic_core import to_jsonable_python

from loopwright.state import storable_data
from loopwright.tools import to_text


@dataclass(frozen=True, slots=True)
class Asked:
    """What a tool wants to know."""

    value: Any
    """As it was given to `interrupt`, made plain."""

    @property
    def text(self) -> str:
        """The same, to be read."""
        return to_text(self.value)


def asked_by(pause: GraphInterrupt) -> Asked:
    """Return what was asked; of several questions at once, as a graph within a tool can put them, the first."""
    interrupts: Sequence[Any] = pause.args[0] if pause.args else ()
    value: Any = getattr(interrupts[0], "value", None) if interrupts else None
    return Asked(storable_data(to_jsonable_python(value, fallback=repr, inf_nan_mode="strings")))


@contextmanager
def answered(answers: Sequence[Any]) -> Generator[None]:
    """Let the first calls of `interrupt` within the block return these answers, in order.

    LangGraph keeps them by the task that paused. Here the pause was the guard's, in another task; and each try of a
    tool begins to count anew.
    """
    config = var_child_runnable_config.get()
    if not answers or config is None:
        yield
        return
    given = config.get("configurable", {})
    pad = replace(
        given[CONFIG_KEY_SCRATCHPAD],
        interrupt_counter=count().__next__,
        get_null_resume=_nothing,
        resume=[*answers],
    )
    told = {**given, CONFIG_KEY_SCRATCHPAD: pad, CONFIG_KEY_SEND: _unsent}
    token = var_child_runnable_config.set({**config, "configurable": told})
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def _nothing(_consume: bool = False) -> None:  # noqa: FBT001, FBT002 -- LangGraph's signature
    """Return no further answer: the next question is put to a person."""


def _unsent(_writes: Sequence[Any]) -> None:
    """Store nothing: the answers are kept with the call."""
