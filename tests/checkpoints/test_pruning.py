"""Retention: what is finished shrinks to its last state; what waits, what is driven and the log are left alone."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from tests.world.stores import Store
from tests.world.stories import ANSWER, LOOK, PAY, build_shop, finish, wait_at_question
from tests.world.till import Till

from loopwright import Agent, Checkpoints, RunResult, SyncRuns, create_agent, open_checkpoints, tool
from loopwright.checkpoints import PruneReport
from loopwright.checkpoints.metadata import is_stored_nowhere
from loopwright.errors import ConfigurationError
from loopwright.testing import ManualClock, ScriptedModel, call, check_transcript

KEY = b"k" * 32
NOTHING = PruneReport(0, 0, 0)


@pytest.fixture(name="agent")
def build_agent() -> Agent:
    """Looks twice, pays, and answers."""
    return build_shop(Till(), LOOK, LOOK, PAY, ANSWER)


def checkpoints_of(checkpoints: Checkpoints, thread_id: str) -> int:
    """Count a thread's checkpoints."""
    config: Any = {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}
    return len([*checkpoints.saver.list(config)])


def told(result: RunResult) -> list[tuple[str, str]]:
    """Return who said what."""
    return [(message.type, message.text) for message in result.messages]


def test_the_last_state_stays(checkpoints: Checkpoints, clock: ManualClock, agent: Agent) -> None:
    """Of a thread with two finished runs: messages, trail and usage are the same, older checkpoints and spend go."""
    runs = SyncRuns(agent, checkpoints)
    first, second = finish(agent, checkpoints), finish(agent, checkpoints, message="Once more.")
    before = [runs.get(first.run_id), runs.get(second.run_id)]
    log = checkpoints.ledger.log.records()
    stored = checkpoints_of(checkpoints, "done")
    clock.advance(10)
    assert PruneReport(1, stored - 1, 0) == checkpoints.prune(older_than=5)
    assert 1 == checkpoints_of(checkpoints, "done")
    assert before == [runs.get(first.run_id), runs.get(second.run_id)]
    assert [] == checkpoints.ledger.spend.of_run(first.run_id)
    assert log == checkpoints.ledger.log.records()
    assert checkpoints.ledger.log.verify().is_whole
    assert {"done"} == {effect.status for effect in checkpoints.ledger.effects.of_run(second.run_id)}


def test_what_goes_on_meanwhile_is_kept(kept: Store) -> None:
    """A plain invoke on a thread that is being shrunk loses nothing, and reads nothing less than all of it."""
    told: list[int] = []
    with open_checkpoints(kept.url) as checkpoints, open_checkpoints(kept.url) as other, ThreadPoolExecutor(1) as pool:
        is_over = threading.Event()

        def prune() -> int:
            found = 0
            while not is_over.is_set():
                found += other.prune(older_than=0).threads
            return found

        shrunk = pool.submit(prune)
        try:
            for _ in range(12):
                agent: Any = build_shop(Till(), LOOK, ANSWER, checkpoints=checkpoints)
                given = {"messages": [("user", "Look.")]}
                told.append(len(agent.invoke(given, {"configurable": {"thread_id": "t"}})["messages"]))
        finally:
            is_over.set()
        assert shrunk.result() > 0
    assert [4 * number for number in range(1, 13)] == told


def test_a_run_that_goes_on_a_thread_that_was_shrunk_under_it(checkpoints: Checkpoints) -> None:
    """It carries the counters on that it had read, by which nothing is stored before it; all is read nevertheless."""

    @tool(effect="read")
    def shrink() -> str:
        """Shrink the thread. Use it once."""
        return f"{checkpoints.saver.squash('t')} gone"

    agent: Any = create_agent(ScriptedModel([call("shrink"), "Done.", "Again."]), [shrink], checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": "t"}}
    agent.invoke({"messages": [("user", "Shrink it.")]}, config)
    after = agent.invoke({"messages": [("user", "Go on.")]}, config)
    newest = checkpoints.saver.get_tuple(config)
    assert newest is not None
    assert is_stored_nowhere(newest.metadata, ["messages", "trail"])
    assert after == agent.get_state(config).values
    assert ["Shrink it.", "", "3 gone", "Done.", "Go on.", "Again."] == [one.text for one in after["messages"]]


def test_a_state_that_was_read_just_before_it_was_shrunk(checkpoints: Checkpoints, agent: Agent) -> None:
    """Whoever then asks for the messages behind it gets them all."""
    finish(agent, checkpoints)
    found = checkpoints.saver.get_tuple({"configurable": {"thread_id": "done", "checkpoint_ns": ""}})
    assert found is not None
    before = checkpoints.saver.get_delta_channel_history(config=found.config, channels=["messages"])
    checkpoints.prune(older_than=0)
    after: Any = checkpoints.saver.get_delta_channel_history(config=found.config, channels=["messages"])
    expected = [message for _, _, written in before["messages"]["writes"] for message in written]
    assert [message.id for message in expected] == [message.id for message in after["messages"]["seed"].value]


def test_it_can_be_carried_on_and_pruned_again(checkpoints: Checkpoints, clock: ManualClock, agent: Agent) -> None:
    """A new task goes on behind the whole transcript; pruning twice is safe, and the next time shrinks it anew."""
    first = finish(agent, checkpoints)
    clock.advance(10)
    checkpoints.prune(older_than=5)
    assert NOTHING == checkpoints.prune(older_than=5)
    second = finish(agent, checkpoints, message="Once more.")
    assert told(first) == told(second)[: len(told(first))]
    check_transcript(second.messages)
    clock.advance(10)
    assert 1 == checkpoints.prune(older_than=5).threads
    assert told(second) == told(SyncRuns(agent, checkpoints).get(second.run_id))


def test_another_process_reads_what_was_pruned(kept: Store, clock: ManualClock, agent: Agent) -> None:
    """Encrypted too: opened anew, the state is the same, and the database holds less."""
    with open_checkpoints(kept.url, clock=clock, encryption=[KEY]) as checkpoints:
        done = finish(agent, checkpoints)
        before = len(kept.execute("select 1 from checkpoints"))
        clock.advance(10)
        checkpoints.prune(older_than=5)
    assert (before > 1, 1) == (True, len(kept.execute("select 1 from checkpoints")))
    with open_checkpoints(kept.url, clock=clock, encryption=[KEY]) as checkpoints:
        assert told(done) == told(SyncRuns(agent, checkpoints).get(done.run_id))
        again = finish(agent, checkpoints, message="Once more.")
        assert told(done) == told(again)[: len(told(done))]


def test_what_waits_is_not_touched(checkpoints: Checkpoints, clock: ManualClock, agent: Agent) -> None:
    """Neither a thread that waits, nor one whose earlier run has ended; both go on as if nothing had been."""
    finish(agent, checkpoints, "mixed")
    waiting = [wait_at_question(agent, checkpoints, thread_id) for thread_id in ("waiting", "mixed")]
    stored = [checkpoints_of(checkpoints, thread_id) for thread_id in ("waiting", "mixed")]
    clock.advance(1000)
    assert NOTHING == checkpoints.prune(older_than=0)
    assert stored == [checkpoints_of(checkpoints, thread_id) for thread_id in ("waiting", "mixed")]
    runs = SyncRuns(agent, checkpoints)
    for one in waiting:
        runs.decide(one.approvals[0].id, {"type": "approve"}, by="ana")
        assert ANSWER == runs.wait(one.run_id).answer


@pytest.mark.parametrize("older_than", [float("nan"), float("-inf"), -60, "30", None, True])
def test_an_age_that_is_none_prunes_nothing(checkpoints: Checkpoints, agent: Agent, older_than: Any) -> None:
    """It is refused before anything is looked at."""
    finish(agent, checkpoints)
    with pytest.raises(ConfigurationError, match="give seconds, as a number"):
        checkpoints.prune(older_than=older_than)


def test_what_ended_just_now_is_kept(checkpoints: Checkpoints, clock: ManualClock, agent: Agent) -> None:
    """Whoever wants to go back in time has until then."""
    finish(agent, checkpoints)
    clock.advance(4)
    assert NOTHING == checkpoints.prune(older_than=5)
    clock.advance(2)
    assert 1 == checkpoints.prune(older_than=5).threads


def test_a_thread_that_is_driven_is_left_alone(checkpoints: Checkpoints, clock: ManualClock, agent: Agent) -> None:
    """It is counted as busy; the next time, when nobody drives it, it shrinks."""
    finish(agent, checkpoints)
    clock.advance(10)
    lease = checkpoints.ledger.leases.take("done")
    assert lease is not None
    stored = checkpoints_of(checkpoints, "done")
    assert PruneReport(0, 0, 1) == checkpoints.prune(older_than=5)
    assert stored == checkpoints_of(checkpoints, "done")
    checkpoints.ledger.leases.release(lease)
    assert PruneReport(1, stored - 1, 0) == checkpoints.prune(older_than=5)
