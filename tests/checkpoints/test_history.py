"""What delta channels are built from: read in our own way, and the same that LangGraph's saver reads."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from tests.world.stores import Store
from tests.world.stories import build_shop, finish
from tests.world.till import Till

from loopwright import Agent, Checkpoints, create_agent, open_checkpoints
from loopwright.checkpoints.metadata import is_stored_nowhere
from loopwright.graphs import compile_agent
from loopwright.state import DELTA_CHANNELS
from loopwright.testing import ScriptedModel

PLACE: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
CHANNELS = [*DELTA_CHANNELS]


def leave(_agent: Agent, _checkpoints: Checkpoints) -> None:
    """A thread as its run left it."""


def update(agent: Agent, _checkpoints: Checkpoints) -> None:
    """Somebody wrote into it."""
    agent.update_state(PLACE, {"messages": [AIMessage("By the way.", id="by-the-way")]}, as_node="observe")


def branch(agent: Agent, _checkpoints: Checkpoints) -> None:
    """Somebody went on from an older checkpoint, which is stored whole where LangGraph replays it."""
    older = [snapshot for snapshot in agent.get_state_history(PLACE) if snapshot.next and snapshot.values.get("run")][
        -1
    ]
    agent.update_state(older.config, {"messages": [AIMessage("Else.", id="else")]}, as_node="observe")


def strand(_agent: Agent, checkpoints: Checkpoints) -> None:
    """Somebody died between a write and its checkpoint, which never came: its id lies between those that did."""
    between = [*checkpoints.saver.list(PLACE)][3].checkpoint["id"][:-1]
    place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": between}}
    checkpoints.saver.put_writes(place, [("messages", [AIMessage("Unheard.", id="unheard")])], "task")


def prune(agent: Agent, checkpoints: Checkpoints) -> None:
    """It was pruned, and went on."""
    checkpoints.prune(older_than=0)
    agent.update_state(PLACE, {"messages": [AIMessage("After.", id="after")]}, as_node="observe")


@contextmanager
def langgraphs(kept: Store) -> Generator[Any]:
    """Open LangGraph's own saver over the same database."""
    if kept.kind == "postgres":
        with PostgresSaver.from_conn_string(kept.url) as saver:
            yield saver
    else:
        with SqliteSaver.from_conn_string(kept.url.removeprefix("sqlite:///")) as saver:
            yield saver


@pytest.mark.parametrize(
    ("happens", "far"), [(leave, 3), (update, 1_000), (strand, 1_000), (branch, 3), (prune, 1_000)]
)
def test_it_is_what_langgraph_reads(
    monkeypatch: pytest.MonkeyPatch, kept: Store, happens: Callable[[Agent, Checkpoints], None], far: int
) -> None:
    """For every checkpoint of the thread; what its metadata tells is true, also once its counters are set back."""
    monkeypatch.setattr("loopwright.checkpoints.metadata.FAR", far)
    spec = build_shop(Till()).spec
    with open_checkpoints(kept.url) as checkpoints, langgraphs(kept) as peer:
        agent = compile_agent(spec, checkpoints)
        finish(agent, checkpoints, "t")
        finish(agent, checkpoints, "t", "Once more.")
        happens(agent, checkpoints)
        # One that holds the values itself, as `prune` leaves it, is asked for no history.
        stored = [one for one in peer.list(PLACE) if "messages" not in one.checkpoint["channel_values"]]
        assert stored
        for one in stored:
            theirs = peer.get_delta_channel_history(config=one.config, channels=CHANNELS)
            assert theirs == checkpoints.saver.get_delta_channel_history(config=one.config, channels=CHANNELS)
            is_bare = not any("seed" in past for past in theirs.values())
            assert is_stored_nowhere(one.metadata, CHANNELS) is is_bare
        theirs = peer.get_delta_channel_history(config=PLACE, channels=CHANNELS)
        assert theirs == checkpoints.saver.get_delta_channel_history(config=PLACE, channels=CHANNELS)


def test_no_thread() -> None:
    """Where nothing is stored there is nothing."""
    with open_checkpoints("memory:") as checkpoints:
        found = checkpoints.saver.get_delta_channel_history(config=PLACE, channels=["messages"])
        assert found == {"messages": {"writes": []}}
        assert {} == checkpoints.saver.get_delta_channel_history(config=PLACE, channels=[])


def test_versions_of_langgraphs_own_go_on(checkpoints: Checkpoints) -> None:
    """A thread that another saver began keeps its kind of version, and every version is above the one before."""
    saver = checkpoints.saver
    for first in (None, f"{7:032}.{0.25:016}"):
        versions = [saver.get_next_version(first, None)]
        for _ in range(20):
            versions.append(saver.get_next_version(versions[-1], None))
        assert versions == sorted({*versions})
        assert first is None or isinstance(versions[0], int) or first < versions[0]


def test_a_thread_takes_little_room(tmp_path: Path) -> None:
    """No checkpoint holds the transcript."""
    words = "word " * 200
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        agent = create_agent(ScriptedModel([words] * 5), [], checkpoints=checkpoints)
        for number in range(5):
            task: Any = {"messages": [("user", f"{number}")]}
            agent.invoke(task, PLACE)  # pyright: ignore[reportUnknownMemberType]  # LangGraph's overloads
        sizes = [len(repr(found.checkpoint)) for found in checkpoints.saver.list(PLACE)]
        assert max(sizes) < 2 * len(words) + 2_000
