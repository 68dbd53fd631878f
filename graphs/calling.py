"""What every call of an agent goes through, before LangGraph gets it."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.types import Command

from loopwright.checkpoints import FORK_KEY, RING_KEY, Ledger, Saver, check_thread_id
from loopwright.errors import ApprovalNotFound, ConfigurationError, InvalidDecision, StorageCorrupt, ThreadNotFound
from loopwright.nodes import BRANCH_KEY, LABELS_KEY, PLACES_KEY, RUN_ID_KEY, AgentSpec, own_text
from loopwright.state import Budget, Limits, check_label, checked_labels

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
    needed = room_for_steps(limits, 0)
    asked = config.get("recursion_limit") or (default or {}).get("recursion_limit") or 0
    config["recursion_limit"] = max(asked, needed)
    parallel = config.get("max_concurrency")
    config["max_concurrency"] = min(parallel, limits.max_parallel) if parallel else limits.max_parallel
    configurable = {**config.get("configurable", {})}
    if "thread_id" in configurable:
        configurable["thread_id"] = check_thread_id(configurable["thread_id"])
    if configurable.get("checkpoint_id"):
        configurable[FORK_KEY] = configurable[BRANCH_KEY] = configurable["checkpoint_id"]
    if configurable:
        config["configurable"] = configurable
    return config


def of_own_call(config: RunnableConfig) -> RunnableConfig:
    """Return a config that lets our saver keep in memory what this call will flush.

    A graph that is part of another one has its saver: nobody would flush it, so that each super-step is stored.
    """
    configurable = config.get("configurable", {})
    if "thread_id" not in configurable:
        return config
    return {**config, "configurable": {**configurable, RING_KEY: uuid.uuid4().hex}}


def room_for_steps(limits: Limits, added: int) -> int:
    """Return how many super-steps a run may take that `added` steps were added to."""
    return (
        UNBOUNDED if limits.max_steps is None else SUPER_STEPS_A_STEP * (limits.max_steps + added) + SUPER_STEPS_AROUND
    )


def check_labels(budgets: Sequence[Budget], config: RunnableConfig) -> None:
    """Refuse to start a run that a budget could not be charged for.

    Raises:
        ConfigurationError: If its labels are of the wrong form, or one is missing.
    """
    labels = checked_labels((config.get("configurable") or {}).get(LABELS_KEY))
    for budget in budgets:
        check_label(budget, labels)


def with_room_to_listen(
    limits: Limits, config: RunnableConfig, options: Mapping[str, Any], default: object
) -> RunnableConfig:
    """Return the config of a blocking stream with a thread for LangGraph's own listener, where it has one.

    It waits in the pool of the tools: with `max_parallel=1` no tool would ever run. Tools keep to their number by a
    count of our own then.
    """
    asked = options.get("stream_mode") or default
    modes = {asked} if isinstance(asked, str) else {*cast("Sequence[str]", asked)}
    if not options.get("subgraphs") and not modes & _LISTENING:
        return _without_places(config)
    places = threading.BoundedSemaphore(config.get("max_concurrency") or limits.max_parallel)
    configurable = {**config.get("configurable", {}), PLACES_KEY: places}
    return {
        **config,
        "configurable": configurable,
        "max_concurrency": (config.get("max_concurrency") or limits.max_parallel) + 1,
    }


_LISTENING = {"custom", "messages"}


def _without_places(config: RunnableConfig) -> RunnableConfig:
    """Return the config of an agent that a tool of another one calls: it must not stand in line behind that tool."""
    around = var_child_runnable_config.get()
    if around is None or PLACES_KEY not in around.get("configurable", {}):
        return config
    return {**config, "configurable": {**config.get("configurable", {}), PLACES_KEY: None}}


def with_context(spec: AgentSpec, options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a call with its context checked: LangGraph's own message would tell secret values.

    Raises:
        ConfigurationError: If the context does not fit the agent's `context_schema`.
    """
    if spec.context is None or options.get("context") is None:
        return options
    return {**options, "context": spec.context.taken(options["context"])}


def own_saver(agent: Agent) -> Saver | None:
    """Return our saver, if that is where the agent stores its checkpoints."""
    saver = cast("object", agent.checkpointer)  # pyright: ignore[reportUnknownMemberType]  # LangGraph's type is open
    return saver if isinstance(saver, Saver) else None


def kept_alive(ledger: Ledger | None, config: RunnableConfig) -> AbstractContextManager[None]:
    """Show that the caller of a plain invoke is there, as long as the call lasts; `Runs` has the lease for that."""
    given = config.get("configurable", {})
    if ledger is None or ledger.is_memory or own_text(given, RUN_ID_KEY) or not given.get("thread_id"):
        return nullcontext()
    return ledger.present(str(given["thread_id"]))


def is_resume(given: Any) -> bool:
    """Tell whether a call is to carry on what is there, rather than to bring something new.

    Raises:
        ConfigurationError: If it brings no message, or would send the graph around its guard.
        InvalidDecision: If it is a resume without an answer: LangGraph would stumble, or ignore it.
    """
    if given is None:
        return True
    if isinstance(given, Mapping) and not cast("Mapping[str, Any]", given).get("messages"):
        text = "the input brings no message; give {'messages': [('user', '…')]}, or None to carry on what was left"
        raise ConfigurationError(text)
    if not isinstance(given, Command):
        return False
    if given.update or given.goto or given.graph:  # pyright: ignore[reportUnknownMemberType]  # LangGraph leaves the type of a target open
        text = "an agent takes messages, or Command(resume=…); `goto` and `update` would lead around the guard"
        raise ConfigurationError(text, option="command")
    if given.resume is None or given.resume == {}:
        raise InvalidDecision(f"{given.resume!r} is no decision; resume with {{'type': 'approve'}}, for one")
    return True


def checked_resume(agent: Agent, given: Any, config: RunnableConfig) -> RunnableConfig:
    """Refuse to resume what never began, or does not wait: LangGraph would start it, or return the old state.

    Returns the config; where the thread's newest state was made by hand, it says that a branch begins there.

    Raises:
        ThreadNotFound: If nothing is stored for the thread.
        ApprovalNotFound: If the thread waits for nobody's answer.
        StorageCorrupt: If what is stored lacks what nothing can replace.
    """
    saver = own_saver(agent)
    place = {**((agent.config or {}).get("configurable") or {}), **(config.get("configurable") or {})}
    if saver is None or place.get("checkpoint_id"):
        return config
    thread_id = check_thread_id(place.get("thread_id"))
    found = saver.get_tuple({"configurable": {"thread_id": thread_id}})
    if found is None:
        text = f"nothing is stored for thread {thread_id!r}, so there is nothing to resume; start with a message"
        raise ThreadNotFound(text, thread_id=thread_id)
    waits = any(channel == INTERRUPT for _, channel, _ in found.pending_writes or ())
    if given is not None and not waits:
        text = f"thread {thread_id!r} waits for no answer, so there is nothing to resume; its last run has ended"
        raise ApprovalNotFound(text, thread_id=thread_id)
    if waits and "run" not in found.checkpoint["channel_values"]:
        text = f"the stored state of thread {thread_id!r} does not say which run it belongs to; "
        raise StorageCorrupt(text + "restore the database from a backup", thread_id=thread_id)
    if found.metadata.get("source") not in ("update", "fork"):
        return config
    branch = {**config.get("configurable", {}), BRANCH_KEY: found.checkpoint["id"]}
    return {**config, "configurable": branch}
