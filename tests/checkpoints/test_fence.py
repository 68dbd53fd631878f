"""One history a thread: who comes second is told so, and leaves no trace; whoever asks for a branch gets one."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, cast

import pytest
from langgraph.checkpoint.base import Checkpoint, empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from tests.world.plans import planned
from tests.world.stores import Store
from tests.world.stories import LOOK, build_shop, invoke
from tests.world.till import Till

from loopwright import Agent, Checkpoints, create_agent, open_checkpoints, tool
from loopwright.checkpoints import RING_KEY, Saver
from loopwright.errors import ClockBehind, ThreadMoved
from loopwright.testing import call, check_transcript

INPUT: Any = {"source": "input", "step": -1, "parents": {}}
LOOP: Any = {"source": "loop", "step": 0, "parents": {}}
ROOT: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def put(saver: Saver, parent: Any, metadata: Any = LOOP, **given: Any) -> Any:
    """Put a new checkpoint behind a parent; returns its config."""
    config: Any = {"configurable": {**parent["configurable"], **given}}
    return saver.put(config, empty_checkpoint(), metadata, {})


def ids(saver: Saver) -> set[str]:
    """Return the ids of all checkpoints of the thread."""
    return {found.checkpoint["id"] for found in saver.list(ROOT)}


def id_of(config: Any) -> str:
    """Return the checkpoint that a config names."""
    return str(config["configurable"]["checkpoint_id"])


@pytest.fixture(name="pair")
def open_twice(store: Store, checkpoints: Checkpoints) -> Generator[tuple[Saver, Saver]]:
    """Two workers over one store; in memory, both are one."""
    with ExitStack() as stack:
        second = checkpoints if store.kind == "memory" else stack.enter_context(open_checkpoints(store.url))
        yield checkpoints.saver, second.saver


def test_a_second_child_is_refused(pair: tuple[Saver, Saver]) -> None:
    """Nothing of it is stored; putting the first one again is no second child."""
    first, second = pair
    root = put(first, ROOT, INPUT)
    child = put(first, root)
    with pytest.raises(ThreadMoved, match="read it anew"):
        put(second, root)
    assert {id_of(root), id_of(child)} == ids(first) == ids(second)
    found = first.get_tuple(child)
    assert found is not None
    first.put(root, found.checkpoint, LOOP, {})
    put(second, child)
    assert 3 == len(ids(first))


def test_a_thread_begins_once(pair: tuple[Saver, Saver]) -> None:
    """Two workers that give a new thread its first input: one of them is told."""
    first, second = pair
    root = put(first, ROOT, INPUT)
    with pytest.raises(ThreadMoved):
        put(second, ROOT, INPUT)
    assert {id_of(root)} == ids(first)


@pytest.mark.parametrize("source", ["fork", "update"])
def test_branches_that_were_asked_for(pair: tuple[Saver, Saver], source: str) -> None:
    """Time travel and a state that is set by hand are exempt, before and after the ordinary child."""
    first, second = pair
    root = put(first, ROOT, INPUT)
    put(first, root, {**LOOP, "source": source})
    put(first, root)
    put(second, root, {**LOOP, "source": source})
    assert 4 == len(ids(first))


def test_a_task_write_that_came_second_is_not_dropped_in_silence(pair: tuple[Saver, Saver]) -> None:
    """Putting the same again is fine; after something else, what would follow from it is refused."""
    first, second = pair
    root = put(first, ROOT, INPUT)
    first.put_writes(root, [("messages", ["mine"])], "task-1")
    first.put_writes(root, [("messages", ["mine"])], "task-1")
    second.put_writes(root, [("messages", ["other"])], "task-1")
    with pytest.raises(ThreadMoved):
        put(second, root)
    found = first.get_tuple(root)
    assert found is not None
    assert [("task-1", "messages", ["mine"])] == found.pending_writes
    assert {id_of(root)} == ids(first)


def test_two_calls_of_one_process_share_nothing(checkpoints: Checkpoints) -> None:
    """What one call keeps in memory is neither dropped nor mixed up when another one of the same thread ends."""
    saver = checkpoints.saver
    ours, theirs = {RING_KEY: "ours"}, {RING_KEY: "theirs"}
    root = put(saver, ROOT, INPUT, **ours)
    saver.put_writes({"configurable": {**root["configurable"], **ours}}, [("messages", ["mine"])], "task-1")
    saver.put_writes({"configurable": {**root["configurable"], **theirs}}, [("messages", ["other"])], "task-1")
    with pytest.raises(ThreadMoved):
        put(saver, ROOT, INPUT, **theirs)
    with pytest.raises(ThreadMoved):
        saver.flush({"configurable": {**ROOT["configurable"], **theirs}})
    child = put(saver, root, **ours)
    saver.flush({"configurable": {**ROOT["configurable"], **ours}})
    history = saver.get_delta_channel_history(config=child, channels=["messages"])
    assert [["mine"]] == [value for _, _, value in history["messages"]["writes"]]


def test_a_call_on_a_deleted_thread_is_told(checkpoints: Checkpoints) -> None:
    """It stores nothing behind checkpoints that are gone."""
    saver, ours = checkpoints.saver, {RING_KEY: "ours"}
    root = put(saver, ROOT, INPUT, **ours)
    saver.delete_thread("t")
    with pytest.raises(ThreadMoved):
        put(saver, root, **ours)
    assert set() == ids(saver)


def test_callers_in_many_threads_of_one_process(kept: Store) -> None:
    """Of several that begin one conversation at once, who is answered has all that is stored, and nothing is mixed."""
    config: Any = {"configurable": {"thread_id": "t"}}

    def go(number: int) -> list[Any]:
        agent = create_agent(planned([call("look_up", code=f"{number}"), f"{number}"]), [look_up], checkpoints=ours)
        start.wait()
        try:
            messages: list[Any] = invoke(agent, f"I am {number}.", config)["messages"]
        except ThreadMoved:
            return []
        return messages

    with open_checkpoints(kept.url) as ours, ThreadPoolExecutor(4) as pool:
        start = threading.Barrier(4)
        returned = [messages for messages in pool.map(go, range(4)) if messages]
    with open_checkpoints(kept.url) as checkpoints:
        stored = create_agent(planned([]), [look_up], checkpoints=checkpoints).get_state(config).values["messages"]
    check_transcript(stored)
    assert stored in returned


@tool(effect="read")
def look_up(code: str) -> str:
    """Look a code up in the list. Returns what stands there."""
    return f"seen {code}"


def made_at(seconds: float) -> str:
    """Return a checkpoint id as a clock that is off makes it."""
    ticks = int(seconds * 1e7) + 0x01B21DD213814000
    digits = f"{ticks:015x}"
    return f"{digits[:8]}-{digits[8:12]}-6{digits[12:15]}-8000-000000000000"


def test_a_clock_that_runs_behind_is_refused(checkpoints: Checkpoints) -> None:
    """What it stored would count as older than its parent, and never be read again: nothing is stored."""
    saver = checkpoints.saver
    ahead = cast("Checkpoint", {**empty_checkpoint(), "id": made_at(time.time() + 60)})
    root = saver.put(ROOT, ahead, INPUT, {})
    with pytest.raises(ClockBehind, match="NTP"):
        put(saver, root, **{RING_KEY: True})
    with pytest.raises(ClockBehind):
        put(saver, root, {**LOOP, "source": "update"})
    assert {ahead["id"]} == ids(saver)


def test_a_clock_that_is_a_little_behind_is_waited_out(checkpoints: Checkpoints) -> None:
    """Whoever reads the newest checkpoint can write behind it from then on."""
    saver = checkpoints.saver
    ahead = cast("Checkpoint", {**empty_checkpoint(), "id": made_at(time.time() + 0.2)})
    root = saver.put(ROOT, ahead, INPUT, {})
    found = saver.get_tuple(ROOT)
    assert found is not None
    assert str(uuid6()) > ahead["id"]
    put(saver, root, **{RING_KEY: True})


def agent_that_is_overtaken(by: list[Agent], checkpoints: Checkpoints) -> Agent:
    """Build an agent in whose tool another worker carries the thread on."""

    @tool(effect="read")
    def overtake() -> str:
        """Let the other worker go first."""
        invoke(by.pop(), "I was faster.", {"configurable": {"thread_id": "t"}})
        return "done"

    turns = [call("overtake"), "Too late."]
    return create_agent(planned(turns), [overtake], checkpoints=checkpoints)


@pytest.mark.parametrize("write_behind", [True, False])
def test_an_agent_that_is_overtaken(kept: Store, write_behind: bool) -> None:  # noqa: FBT001 -- a column
    """Plain invoke: the slower worker raises, the thread is the faster one's alone, and stays one line."""
    with (
        open_checkpoints(kept.url, write_behind=write_behind) as ours,
        open_checkpoints(kept.url, write_behind=write_behind) as theirs,
    ):
        winner = create_agent(planned(["First."]), [], checkpoints=theirs)
        loser = agent_that_is_overtaken([winner], ours)
        with pytest.raises(ThreadMoved):
            invoke(loser, "I was slower.", {"configurable": {"thread_id": "t"}})
    with open_checkpoints(kept.url) as checkpoints:
        reader = create_agent(planned(["Third."]), [], checkpoints=checkpoints)
        config: Any = {"configurable": {"thread_id": "t"}}
        messages = reader.get_state(config).values["messages"]
        assert "First." == messages[-1].text
        assert "Too late." not in [message.text for message in messages]
        check_transcript(messages)
        assert "Third." == invoke(reader, "And now?", config)["messages"][-1].text
    parents = [row[0] for row in kept.execute("select parent_checkpoint_id from checkpoints")]
    assert len(parents) == len(set(parents))


def test_time_travel_and_updates_still_work(checkpoints: Checkpoints) -> None:
    """From any older checkpoint a run can be carried on, and a state can be set by hand and gone on from."""
    agent: Any = build_shop(Till(), LOOK, LOOK, "Done.", checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": "t"}}
    invoke(agent, "Look.", config)
    for snapshot in [*agent.get_state_history(config)]:
        if snapshot.next:
            result = agent.invoke(None, snapshot.config)
            assert "Done." == result["messages"][-1].text
            check_transcript(result["messages"])
    newest = agent.get_state(config)
    agent.update_state(newest.config, {"messages": [("user", "By hand.")]}, as_node="observe")
    assert "By hand." == agent.get_state(config).values["messages"][-1].text
