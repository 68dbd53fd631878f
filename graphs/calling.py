"""What every call of an agent goes through, before LangGraph gets it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from loopwright.checkpoints import Saver, check_thread_id
from loopwright.errors import ThreadNotFound
from loopwright.state import Limits

if TYPE_CHECKING:
    from .agent import Agent

SUPER_STEPS_A_STEP = 6
"""At most: reason, screen, ask, judge, act, observe."""
SUPER_STEPS_AROUND = 12
"""Taking in, asking again, ending."""
UNBOUNDED = 10_000_000
"""Super-steps where `max_steps` is lifted: another limit ends the loop."""


def checked_config(limits: Limits, given: RunnableConfig | None, default: RunnableConfig | None) -> RunnableConfig:
    """Return the caller's config with room for our limits, which must strike before LangGraph's own does.

    Raises:
        ConfigurationError: If the thread id cannot be used.
    """
    config: RunnableConfig = {**(given or {})}
    needed = UNBOUNDED if limits.max_steps is None else SUPER_STEPS_A_STEP * limits.max_steps + SUPER_STEPS_AROUND
    asked = config.get("recursion_limit") or (default or {}).get("recursion_limit") or 0
    config["recursion_limit"] = max(asked, needed)
    parallel = config.get("max_concurrency")
    config["max_concurrency"] = min(parallel, limits.max_parallel) if parallel else limits.max_parallel
    configurable = config.get("configurable")
    if configurable and "thread_id" in configurable:
        config["configurable"] = {**configurable, "thread_id": check_thread_id(configurable["thread_id"])}
    return config


def has_own_saver(agent: Agent) -> bool:
    """Tell whether the agent stores its checkpoints in ours."""
    return isinstance(agent.checkpointer, Saver)  # pyright: ignore[reportUnknownMemberType]  # LangGraph's saver type is open


def refuse_empty_resume(agent: Agent, given: Any, config: RunnableConfig) -> None:
    """Refuse to resume what never began: LangGraph would start it, with empty input.

    Raises:
        ThreadNotFound: If nothing is stored for the thread.
    """
    saver = cast("object", agent.checkpointer)  # pyright: ignore[reportUnknownMemberType]  # as above
    if not isinstance(saver, Saver) or not (given is None or (isinstance(given, Command) and given.resume is not None)):
        return
    thread_id = (config.get("configurable") or {}).get("thread_id")
    if saver.get_tuple({"configurable": {"thread_id": check_thread_id(thread_id)}}) is None:
        text = f"nothing is stored for thread {thread_id!r}, so there is nothing to resume; start with a message"
        raise ThreadNotFound(text, thread_id=thread_id)
