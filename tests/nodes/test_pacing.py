"""Rates of models and tools: kept over all runs of a ledger, by waiting or by refusing."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.stores import Store, open_store

from loopwright import Checkpoints, Limits, Rate, StopReason, create_agent, open_checkpoints, tool
from loopwright.errors import ConfigurationError
from loopwright.testing import ManualClock, ScriptedModel, call, check_transcript
from loopwright.tools import Retry, Tool

HOUR = Rate(calls=2, per_seconds=3600, when_exceeded="refuse")


def build_look(rate: Rate) -> tuple[Tool, list[str]]:
    """Build a tool with a rate, and what it was asked for."""
    looked: list[str] = []

    @tool(effect="read", rate=rate)
    def look(code: str) -> str:
        """Look up an order by its code. Returns its status."""
        looked.append(code)
        return f"{code} is there"

    return look, looked


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_that_refuses(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """What comes too often is answered; once the window has passed, it runs again, in another run too."""
    look, looked = build_look(HOUR)
    turns: list[Any] = [[call("look", code=code) for code in "abc"], "Done.", call("look", code="d"), "Done."]
    desk = Desk(create_agent(ScriptedModel(turns), [look]), checkpoints, door)
    first = desk.run()
    (refused,) = [entry["observation"] for entry in first.trail if entry["outcome"] == "not_run"]
    assert refused.startswith("not run: rate limit of 2 in 3600 s; the next one may be made in 3.6e+03 s")
    check_transcript(first.messages)
    clock.advance(3601)
    assert ["done"] == [entry["outcome"] for entry in desk.run("Again.", thread_id="other").trail]
    assert 3 == len(looked)


def test_a_model_that_refuses(checkpoints: Checkpoints) -> None:
    """The run stops before the call, and says why."""
    agent = create_agent(ScriptedModel(["One.", "Two."]), [], rate=HOUR)
    results = [Desk(agent, checkpoints).run(thread_id=f"{number}") for number in range(3)]
    assert [StopReason.ANSWERED, StopReason.ANSWERED, StopReason.RATE_LIMIT] == [one.stop_reason for one in results]
    assert "rate limit of 2 in 3600 s" in results[-1].limit


def test_a_wait_longer_than_the_run_may_take(checkpoints: Checkpoints) -> None:
    """Waiting is active time: a run that it would outlast ends at once, and a tool's call is answered."""
    slow = Rate(calls=1, per_seconds=3600)
    agent = create_agent(ScriptedModel(["One."]), [], rate=slow, limits=Limits(max_seconds=5))
    assert StopReason.ANSWERED == Desk(agent, checkpoints).run(thread_id="a").stop_reason
    assert StopReason.DEADLINE == Desk(agent, checkpoints).run(thread_id="b").stop_reason
    look, looked = build_look(slow)
    turns: list[Any] = [[call("look", code=code) for code in "ab"], "Done."]
    limits = Limits(max_seconds=5)
    result = Desk(create_agent(ScriptedModel(turns), [look], limits=limits), checkpoints).run(thread_id="c")
    assert (1, ["done", "not_run"]) == (len(looked), [entry["outcome"] for entry in result.trail])


@pytest.mark.parametrize("door", DOORS)
def test_waiting(tmp_path: Path, door: DoorName) -> None:
    """Each call goes through in its turn, and the wait counts as active time."""
    rate = Rate(calls=2, per_seconds=0.2)
    look, looked = build_look(rate)
    turns: list[Any] = [[call("look", code=code) for code in "abcde"], "Done."]
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        result = Desk(create_agent(ScriptedModel(turns), [look]), checkpoints, door).run()
    assert ["done"] * 5 == [entry["outcome"] for entry in result.trail]
    assert 5 == len(looked)
    assert result.usage.seconds >= 0.4


@pytest.fixture(name="shared", params=["sqlite", "postgres"])
def lend_shared_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that processes share."""
    return open_store(request, tmp_path)


def test_shared_by_all_that_open_the_store(shared: Store) -> None:
    """Of many at once, from two openings, just so many get through."""
    rate = Rate(calls=7, per_seconds=60)
    granted: list[float] = []
    with open_checkpoints(shared.url) as one, open_checkpoints(shared.url) as two:

        def take(checkpoints: Checkpoints) -> None:
            granted.extend(checkpoints.ledger.rates.take("model:m", rate) for _ in range(3))

        threads = [threading.Thread(target=take, args=[(one, two)[number % 2]]) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert 7 == granted.count(0.0)
    assert all(0 < wait <= 60 for wait in granted if wait)


def test_no_window_holds_more(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """It slides: what was granted late in one minute counts in the next."""
    rate = Rate(calls=3, per_seconds=60)
    granted: list[float] = []
    for _ in range(60):
        if not checkpoints.ledger.rates.take("x", rate):
            granted.append(clock())
        clock.advance(7)
    assert all(later - earlier >= 60 for earlier, later in zip(granted, granted[3:], strict=False))
    assert len(granted) >= 18


def test_a_clock_that_was_wrong(shared: Store) -> None:
    """What was counted by one that was set back since counts for one window more, and not until that day comes."""
    clock, rate = ManualClock(), Rate(calls=2, per_seconds=60)
    with open_checkpoints(shared.url, clock=clock) as checkpoints:
        rates = checkpoints.ledger.rates
        assert [0.0, 0.0] == [rates.take("x", rate) for _ in range(2)]
        clock.advance(-86_400)
        assert (60, clock() + 60) == (rates.take("x", rate), rates.next_free("x", rate))
        clock.advance(59)
        assert rates.take("x", rate) == 1
        clock.advance(1)
        assert [0.0, 0.0, 60.0] == [rates.take("x", rate) for _ in range(3)]


@pytest.mark.parametrize("others", [1.0, 1e9])
def test_two_rates_of_one_name(shared: Store, others: float) -> None:
    """Whoever has another one for it, and in whichever process, each is kept, however long ago it counts."""
    clock, day = ManualClock(), Rate(calls=5, per_seconds=86_400)
    with open_checkpoints(shared.url, clock=clock) as one, open_checkpoints(shared.url, clock=clock) as two:
        waits: list[float] = []
        for _ in range(5):
            waits.append(one.ledger.rates.take("model:m", day))
            clock.advance(60)
            assert not two.ledger.rates.take("model:m", Rate(calls=100, per_seconds=others))
            clock.advance(60)
    assert [0.0, 0.0, 0.0, 86_400 - 300, 86_400 - 360] == waits


def test_another_try_counts(checkpoints: Checkpoints) -> None:
    """A call that fails is tried again only as often as the rate lets it be made."""
    tried: list[str] = []

    @tool(effect="read", rate=HOUR, retry=Retry(tries=5, base=0.001))
    def look(code: str) -> str:
        """Look up an order by its code. Returns its status."""
        tried.append(code)
        raise ConnectionError("gone")

    result = Desk(create_agent(ScriptedModel([call("look", code="a"), "Done."]), [look]), checkpoints).run()
    assert (2, "error") == (len(tried), result.trail[0]["outcome"])


WRONG: list[dict[str, Any]] = [
    {"calls": 0, "per_seconds": 1},
    {"calls": 1.5, "per_seconds": 1},
    {"calls": True, "per_seconds": 1},
    {"calls": 1, "per_seconds": 0},
    {"calls": 1, "per_seconds": float("inf")},
    {"calls": 1, "per_seconds": 1e12},
    {"calls": 1, "per_seconds": 100 * 366 * 86_400 + 1},
    {"calls": 1, "per_seconds": 1, "when_exceeded": "fail"},
    {"calls": 1, "per_seconds": 1, "when_exceeded": "Park"},
]


@pytest.mark.parametrize("options", WRONG)
def test_a_rate_that_cannot_be_kept(options: dict[str, Any]) -> None:
    """Is refused where it is written."""
    with pytest.raises(ConfigurationError, match="Rate:"):
        Rate(**options)


def test_what_is_no_rate() -> None:
    """For a model or a tool."""
    wrong: Any = 5
    with pytest.raises(ConfigurationError, match="rate is 5"):
        create_agent(ScriptedModel([]), [], rate=wrong)
    with pytest.raises(ConfigurationError, match="rate is 5"):
        build_look(wrong)
