"""Where in the world a node runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_CHECKPOINTER

from loopwright.checkpoints import FORK_KEY
from loopwright.state import checked_labels, storable

RUN_ID_KEY = "__loopwright_run_id"
"""In `configurable`: the run that `Runs` has started. LangGraph keeps keys that begin so out of the metadata."""
REQUESTER_KEY = "__loopwright_requester"
"""Likewise: for whom it was started. Whoever is authenticated by LangGraph's server cannot say that it was another."""
BRANCH_KEY = "__loopwright_branch"
"""In `configurable`: the checkpoint that a branch goes on from."""
LABELS_KEY = "labels"
"""In `configurable`: the labels of a run that begins."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the world a node runs."""

    thread_id: str
    """Empty when the graph runs without a thread."""
    checkpoint_id: str
    """The checkpoint that the node's super-step starts from: the same when it is run again."""
    user: str
    """Who is authenticated by LangGraph's server; empty when nobody is."""
    roles: tuple[str, ...]
    """What they may do: their permissions there."""
    requester: str
    """For whom a task is taken in: the user, or whom the caller of `Runs` named."""
    has_saver: bool
    """Whether a run can pause: there is something to resume from."""
    run_id: str
    """The run that `Runs` drives; empty for a plain invoke."""
    is_fork: bool
    """Whether the caller named a checkpoint to go on from."""
    branch_from: str
    """The checkpoint that a branch goes on from: one that the caller named, or that was made by hand."""
    labels: Mapping[str, str]
    """What a run that begins here is for; budgets are kept apart by them."""


class Own(str):
    """A text that `Runs` has put into `configurable`, told from one that a client of LangGraph's server writes there.

    Whoever could name a run would take it over: its questions, its attempts, its message that is not yet taken in.
    """

    __slots__ = ()


def own_text(configurable: Mapping[str, Any], key: str) -> str:
    """Return what `Runs` has put there; empty for nothing, and for what anybody else did."""
    found = configurable.get(key)
    return str(found) if isinstance(found, Own) else ""


def place_of(config: RunnableConfig) -> Place:
    """Read the place from a node's config."""
    given: dict[str, Any] = config.get("configurable") or {}
    runtime = given.get("__pregel_runtime")
    info = getattr(runtime, "execution_info", None)
    user = storable(str(given.get("langgraph_auth_user_id") or ""))
    return Place(
        thread_id=str(given.get("thread_id") or ""),
        checkpoint_id=info.checkpoint_id if info else "",
        user=user,
        roles=tuple(str(role) for role in given.get("langgraph_auth_permissions") or ()) if user else (),
        requester=user or own_text(given, REQUESTER_KEY),
        has_saver=bool(given.get(CONFIG_KEY_CHECKPOINTER)),
        run_id=own_text(given, RUN_ID_KEY),
        is_fork=bool(given.get(FORK_KEY)),
        branch_from=str(given.get(BRANCH_KEY) or ""),
        labels=checked_labels(given.get(LABELS_KEY)),
    )
