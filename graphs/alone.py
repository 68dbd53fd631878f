"""Agents that are called within a graph, and are no part of it: in the body of a tool, or by `Runs`.

LangGraph makes any graph that is called within a node's code a part of the graph around it: it gets that one's saver,
and its place. For an agent in another one's tool that would be wrong: its run would be taken for the run around it, its
calls for calls of that one. So it runs as if it was called from outside: over its own saver, or over none.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping
from contextlib import aclosing, closing, contextmanager
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._constants import CONFIG_KEY_RUNTIME, CONFIG_KEY_TASK_ID

from loopwright.errors import ConfigurationError
from loopwright.nodes import LABELS_KEY, RUN_ID_KEY, TOOL_KEY, AgentSpec

_INNER = "__"
"""Begins the keys of `configurable` that are LangGraph's, and ours."""
_PLACE = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map")
_END = object()


@contextmanager
def alone() -> Generator[None]:
    """Let the block know nothing of the graph around it; nothing may be yielded out of the block meanwhile."""
    token = var_child_runnable_config.set(None)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def config_alone(given: RunnableConfig | None) -> RunnableConfig | None:
    """Return the config of an agent that runs alone although it is called within a graph; None for any other call.

    Args:
        given: By the caller, who may have handed on what the tool itself was given.
    """
    around = var_child_runnable_config.get()
    if around is None:
        return None
    outer, own = around.get("configurable", {}), {**(given or {}).get("configurable", {})}
    is_handed_on = CONFIG_KEY_TASK_ID in own
    is_in_tool = outer.get(TOOL_KEY) is not None  # also as a node of a graph there, which begins anew for each answer
    if not is_in_tool and (RUN_ID_KEY not in own or is_handed_on):
        return None
    if is_handed_on:
        is_elsewhere = own.get("thread_id") != outer.get("thread_id")
        dropped = () if is_elsewhere else _PLACE
        own = {key: value for key, value in own.items() if not key.startswith(_INNER) and key not in dropped}
    own.setdefault(LABELS_KEY, outer.get(LABELS_KEY))
    callbacks = {"callbacks": around.get("callbacks")} if around.get("callbacks") is not None else {}
    return cast("RunnableConfig", {**callbacks, **(given or {}), "configurable": own})


def context_around(spec: AgentSpec, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a call with the context of the run around it, where it fits and no other one was given."""
    around = var_child_runnable_config.get()
    if spec.context is None or options.get("context") is not None or around is None:
        return {**options}
    context = getattr(around.get("configurable", {}).get(CONFIG_KEY_RUNTIME), "context", None)
    try:
        return {**options, "context": None if context is None else spec.context.taken(context)}
    except ConfigurationError:  # of another type: it is not for this agent
        return {**options}


def begun(parts: Iterator[Any], *, is_alone: bool) -> Iterator[Any]:
    """Iterate over what a graph streams; alone, it begins without knowing of the graph around it."""
    with closing(cast("Generator[Any]", parts)):
        if is_alone:
            with alone():
                first = next(parts, _END)
            if first is _END:
                return
            yield first
        yield from parts


async def abegun(parts: AsyncIterator[Any], *, is_alone: bool) -> AsyncGenerator[Any]:
    """Do the same, awaited."""
    async with aclosing(cast("AsyncGenerator[Any]", parts)):
        if is_alone:
            with alone():
                first = await anext(parts, _END)
            if first is _END:
                return
            yield first
        async for part in parts:
            yield part
