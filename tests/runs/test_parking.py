"""Runs that meet a rate which parks: they hold nothing, and go on by themselves when their time has come."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import wait_until
from tests.world.plans import planned
from tests.world.stores import STORES, Store, open_store

from loopwright import (
    Agent,
    Checkpoints,
    Limits,
    Rate,
    Reflect,
    Retry,
    RunResult,
    Runs,
    RunStatus,
    StopReason,
    SyncRuns,
    allow,
    approve,
    ask,
    create_agent,
    open_checkpoints,
    reject,
    tool,
)
from loopwright.errors import InvalidDecision
from loopwright.testing import ManualClock, ScriptedModel, call, check_transcript

MINUTE = Rate(calls=1, per_seconds=60, when_exceeded="park")
ALLOWED = (allow("send"),)
THREAD: Any = {"configurable": {"thread_id": "t"}}
TASK: Any = {"messages": [("user", "Do it.")]}


class Mail:
    """Sends letters, one a minute."""

    def __init__(self, rate: Rate = MINUTE) -> None:
        """Nothing is sent yet."""
        self.sent: list[str] = []
        self.rate = rate

    def send(self, effect: Any = "write", **options: Any) -> Any:
        """Build the tool."""

        @tool(effect=effect, rate=self.rate, **options)
        def send(to: str) -> str:
            """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
            self.sent.append(to)
            return f"sent to {to}"

        return send


def by_tool(mail: Mail, *names: str, rules: Any = ALLOWED, **options: Any) -> Agent:
    """Build an agent that sends letters in one turn each, and then is done."""
    turns = [call("send", to=name) for name in names]
    return create_agent(planned([*turns, "Done."]), [mail.send()], permissions=rules, **options)


def by_model(**options: Any) -> Agent:
    """Build an agent whose model may be called once a minute."""
    return create_agent(planned(["Done."]), [], rate=MINUTE, **options)


def by_call(**options: Any) -> Agent:
    """Build an agent that sends one letter."""
    return by_tool(Mail(), "ana", **options)


Build = Callable[..., Agent]
BOTH = pytest.mark.parametrize("build", [by_model, by_call])


@pytest.fixture(name="store", params=STORES)
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store, empty."""
    return open_store(request, tmp_path)


def is_parked(result: RunResult) -> bool:
    """Tell whether a run waits for a rate, and for nobody."""
    return result.status is RunStatus.WAITING and result.parked is not None and not result.approvals


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_that_parks(store: Store, door: DoorName) -> None:
    """The run waits, says why and until when, and goes on then; too early, nothing moves it."""
    mail, clock = Mail(), ManualClock()
    with open_checkpoints(store.url, clock=clock) as checkpoints:
        desk = Desk(by_tool(mail, "ana", "ben"), checkpoints, door)
        waiting = desk.run()
        assert is_parked(waiting)
        assert waiting.parked is not None
        assert (clock() + 60, "tool:send", "rate limit of 1 in 60 s") == (
            waiting.parked.until,
            waiting.parked.name,
            waiting.parked.why,
        )
        (listed,) = SyncRuns(by_tool(mail), checkpoints).list(status=RunStatus.WAITING)
        assert (waiting.run_id, clock() + 60) == (listed.id, listed.parked_until)
        clock.advance(59)
        assert is_parked(desk.wait(waiting.run_id))
        assert ["ana"] == mail.sent
        clock.advance(1)
        result = desk.wait(waiting.run_id)
    assert (RunStatus.SUCCEEDED, ["ana", "ben"], None) == (result.status, mail.sent, result.parked)
    assert ["done", "done"] == [entry["outcome"] for entry in result.trail]
    assert ["allow by allow('send')"] * 2 == [f"{entry['verdict']} by {entry['by']}" for entry in result.trail]
    assert (2, 3) == (result.usage.tool_calls, result.usage.steps)
    assert result.usage.seconds < 30
    check_transcript(result.messages)


@pytest.mark.parametrize("door", DOORS)
def test_a_model_that_parks(store: Store, door: DoorName) -> None:
    """Likewise: the call is made when its time has come, and paid once."""
    clock = ManualClock()
    with open_checkpoints(store.url, clock=clock) as checkpoints:
        desk = Desk(by_model(), checkpoints, door)
        assert RunStatus.SUCCEEDED == desk.run(thread_id="first").status
        waiting = desk.run()
        assert is_parked(waiting)
        assert waiting.parked is not None
        assert (clock() + 60, "model:scripted") == (waiting.parked.until, waiting.parked.name)
        assert (0, 0) == (waiting.usage.steps, waiting.usage.model_calls)
        clock.advance(30)
        assert is_parked(desk.wait(waiting.run_id))
        clock.advance(30)
        result = desk.wait(waiting.run_id)
        assert [1] == [attempt.number for attempt in checkpoints.ledger.spend.of_run(waiting.run_id)]
    assert (RunStatus.SUCCEEDED, "Done.", 1) == (result.status, result.answer, result.usage.model_calls)
    assert result.usage.seconds < 30
    check_transcript(result.messages)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("way", ["expire", "recover"])
def test_any_worker_carries_it_on(checkpoints: Checkpoints, clock: ManualClock, door: DoorName, way: Any) -> None:
    """A look now and then, in whichever process, wakes what is due, and nothing else."""
    desk = Desk(by_model(), checkpoints, door)
    desk.run(thread_id="first")
    waiting = desk.run()
    assert [] == desk.look(way)
    clock.advance(60)
    (result,) = desk.look(way)
    assert (waiting.run_id, RunStatus.SUCCEEDED) == (result.run_id, result.status)
    assert [] == desk.look(way)


def speaking(loop: asyncio.AbstractEventLoop, times: int) -> tuple[ScriptedModel, asyncio.Event]:
    """Build a model that may speak so often, and what is set once it has."""
    event = asyncio.Event()

    def say(_messages: list[Any]) -> str:
        if len(model.seen) == times:
            loop.call_soon_threadsafe(event.set)
        return "Done."

    model = ScriptedModel([say] * times)
    return model, event


SOON = Rate(calls=1, per_seconds=0.3, when_exceeded="park")


def test_a_service_needs_no_timer_of_its_own(tmp_path: Path) -> None:
    """`Runs` goes on with what was parked in its process, by the real clock."""

    async def main(checkpoints: Checkpoints) -> list[RunResult]:
        model, has_spoken = speaking(asyncio.get_running_loop(), 3)
        async with Runs(create_agent(model, [], rate=SOON), checkpoints) as runs:
            first = [await runs.run("Do it.", thread_id=number) for number in range(3)]
            assert [False, True, True] == [is_parked(result) for result in first]
            await has_spoken.wait()
            return [await runs.wait(result.run_id) for result in first]

    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        results = asyncio.run(main(checkpoints))
    assert [RunStatus.SUCCEEDED] * 3 == [result.status for result in results]


def test_a_service_that_starts_again_takes_over_the_timers(tmp_path: Path) -> None:
    """What an earlier process has parked goes on in the next one, though it is not yet due when that starts."""

    async def main(checkpoints: Checkpoints, run_id: str) -> RunResult:
        model, has_spoken = speaking(asyncio.get_running_loop(), 1)
        async with Runs(create_agent(model, [], rate=SOON), checkpoints) as runs:
            await runs.recover()
            await has_spoken.wait()
            return await runs.wait(run_id)

    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        before = SyncRuns(create_agent(planned(["Done."]), [], rate=SOON), checkpoints)
        waiting = [before.run("Do it.", thread_id=number) for number in range(2)][-1]
        assert is_parked(waiting)
        assert RunStatus.SUCCEEDED == asyncio.run(main(checkpoints, waiting.run_id)).status


@pytest.mark.parametrize("again", [(0.02,) * 50, ()])
def test_a_database_that_is_away_when_a_run_is_woken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, again: tuple[float, ...]
) -> None:
    """It is tried again some times, and then left to `recover`; either is logged."""
    monkeypatch.setattr("loopwright.runs.runs.AGAIN", again)
    store = Store("sqlite", f"sqlite:///{tmp_path / 'runs.db'}", path=tmp_path / "runs.db")

    def has_failed() -> bool:
        last = "run_not_driven" if again else "run_not_woken"
        return last in [vars(record).get("action") for record in caplog.records]

    async def main(checkpoints: Checkpoints) -> RunResult:
        model, has_spoken = speaking(asyncio.get_running_loop(), 2)
        async with Runs(create_agent(model, [], rate=SOON), checkpoints) as runs:
            waiting = [await runs.run("Do it.", thread_id=number) for number in range(2)][-1]
            assert is_parked(waiting)
            store.execute("alter table lw_runs rename to away")
            await asyncio.to_thread(wait_until, has_failed)
            store.execute("alter table away rename to lw_runs")
            if not again:
                await runs.recover()
            await has_spoken.wait()
            return await runs.wait(waiting.run_id)

    with open_checkpoints(store.url) as checkpoints:
        assert RunStatus.SUCCEEDED == asyncio.run(main(checkpoints)).status


def test_a_service_that_ends_leaves_it_to_others(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Leaving the block waits for no parked run."""
    desk = Desk(by_model(), checkpoints, "async")
    desk.run(thread_id="first")
    waiting = desk.run()
    clock.advance(60)
    assert RunStatus.SUCCEEDED == Desk(by_model(), checkpoints).wait(waiting.run_id).status


def test_many_come_back_one_after_the_other(store: Store) -> None:
    """From two workers on one store: no window holds more than its rate, and nobody is woken for nothing."""
    clock = ManualClock()
    model = planned(["Done."])
    agent = create_agent(model, [], rate=Rate(calls=2, per_seconds=60, when_exceeded="park"))
    called: list[int] = []
    with open_checkpoints(store.url, clock=clock) as one:
        other = one if store.kind == "memory" else open_checkpoints(store.url, clock=clock)
        desks = [SyncRuns(agent, one), SyncRuns(agent, other)]
        runs = [desks[number % 2].run("Do it.", thread_id=number).run_id for number in range(9)]
        while desks[0].list(status=RunStatus.WAITING):
            before = len(model.seen)
            clock.advance(30)
            for desk in desks:
                desk.expire()
            called.append(len(model.seen) - before)
        asked = [record.event for run in runs for record in one.ledger.log.records(run)].count("asked")
        other.close()
    assert (9, 7) == (len(model.seen), asked)
    assert all(earlier + later <= 2 for earlier, later in pairwise(called))
    assert [0, 2, 0, 2, 0, 2, 0, 1] == called


@BOTH
def test_nobody_is_asked(checkpoints: Checkpoints, clock: ManualClock, build: Build) -> None:
    """A click is refused in a sentence, also a late one; it is no question in any list of what waits for a person."""
    runs = SyncRuns(build(), checkpoints)
    runs.run("Do it.", thread_id="first")
    waiting = runs.run("Do it.", thread_id="t")
    (asked,) = checkpoints.ledger.approvals.list_parked(waiting.run_id)
    assert ([], []) == ([*runs.approvals()], [*runs.approvals(waiting.run_id)])
    for decision in (approve(), reject("no"), {"type": "expire"}):
        with pytest.raises(
            InvalidDecision, match=r"is no question: its run waits for a rate \(rate limit of 1 in 60 s\)"
        ):
            runs.decide(asked.id, decision, by="ana")
    clock.advance(60)
    runs.expire()
    with pytest.raises(InvalidDecision, match="is no question"):
        runs.decide(asked.id, approve(), by="ana")


@BOTH
def test_it_can_be_cancelled(checkpoints: Checkpoints, clock: ManualClock, build: Build) -> None:
    """It ends at once, and does not go on when its time would have come."""
    desk = Desk(build(), checkpoints)
    desk.run(thread_id="first")
    waiting = desk.run()
    desk.cancel(waiting.run_id)
    ended = desk.wait(waiting.run_id)
    assert (RunStatus.CANCELLED, None) == (ended.status, ended.parked)
    clock.advance(3600)
    assert [] == [result for result in desk.recover() if result.run_id == waiting.run_id]
    assert [] == checkpoints.ledger.approvals.list_parked(waiting.run_id)
    check_transcript(ended.messages)


@BOTH
def test_a_newer_message_takes_its_place(checkpoints: Checkpoints, clock: ManualClock, build: Build) -> None:
    """What was parked never goes on; its call is answered, and the transcript is whole."""
    desk = Desk(build(), checkpoints)
    desk.run(thread_id="first")
    before = desk.run()
    clock.advance(30)
    after = desk.run("Do something else.")
    assert is_parked(after)
    assert RunStatus.CANCELLED == desk.wait(before.run_id).status
    clock.advance(3600)
    ended = _to_its_end(desk, after, clock)
    assert RunStatus.SUCCEEDED == ended.status
    assert [] == checkpoints.ledger.approvals.list_parked(before.run_id)
    check_transcript(ended.messages)


@BOTH
def test_who_invokes_the_agent_itself(checkpoints: Checkpoints, clock: ManualClock, build: Build) -> None:
    """An interrupt says until when; then any answer wakes it, and before that the very same one comes back."""
    agent: Any = build(checkpoints=checkpoints)
    agent.invoke(TASK, {"configurable": {"thread_id": "first"}})
    told = agent.invoke(TASK, THREAD)["__interrupt__"][0].value
    assert ("parked", clock() + 60, []) == (told["type"], told["until"], told["allowed"])
    assert "goes on by itself at 2027-01-15 08:01:00 UTC" in told["description"]
    for answer in ("now", {"type": "wake"}, {"type": "approve"}, {"type": "reject"}, 0, [{"type": "ignore"}]):
        assert told == agent.invoke(Command(resume=answer), THREAD)["__interrupt__"][0].value
    assert told == agent.invoke(None, THREAD)["__interrupt__"][0].value
    clock.advance(60)
    assert "succeeded" == agent.invoke(Command(resume={"type": "reject"}), THREAD)["run"]["status"]


@BOTH
def test_an_input_without_a_task(checkpoints: Checkpoints, build: Build, clock: ManualClock) -> None:
    """Carries a run on that was parked: what waits for the model is parked again, a call that waited is answered."""
    agent: Any = build(checkpoints=checkpoints)
    agent.invoke(TASK, {"configurable": {"thread_id": "first"}})
    agent.invoke(TASK, THREAD)
    state = agent.invoke({"messages": [agent.get_state(THREAD).values["messages"][0]]}, THREAD)
    if "__interrupt__" in state:
        clock.advance(60)
        state = agent.invoke(Command(resume="go"), THREAD)
    assert "succeeded" == state["run"]["status"]
    check_transcript(state["messages"])


def test_without_a_saver_it_refuses() -> None:
    """There is nothing to pause with: a call is answered, and a model's run stops."""
    mail = Mail()
    agent: Any = by_tool(mail, "ana", "ben")
    messages = agent.invoke(TASK)["messages"]
    assert ["ana"] == mail.sent
    assert "not run: rate limit of 1 in 60 s" in messages[-2].text
    agent = by_model()
    assert ["answered", "rate_limit"] == [agent.invoke(TASK)["run"]["reason"] for _ in range(2)]


def test_beside_a_question(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Who is asked about another call of the turn can answer at any time; the turn goes on when all is known."""
    mail = Mail()

    @tool(effect="write")
    def pay(amount: int) -> str:
        """Pay an amount to the customer. Use it only after the policy was checked."""
        mail.sent.append(f"{amount}")
        raise ConnectionResetError("gone")

    turn: Any = [call("send", to="ana"), call("send", to="ben"), call("pay", amount=5)]
    rules = [allow("send"), allow("pay")]
    agent: Any = create_agent(planned([turn, "Done."]), [mail.send(), pay], permissions=rules, checkpoints=checkpoints)
    shown: Any = agent.invoke(TASK, THREAD)
    assert "outcome_unknown" == shown["__interrupt__"][0].value["type"]
    shown = agent.invoke(Command(resume={"type": "respond", "message": "paid 5"}), THREAD)
    assert "parked" == shown["__interrupt__"][0].value["type"]
    clock.advance(60)
    state = agent.invoke(Command(resume="go"), THREAD)
    assert ["paid 5", "sent to ana", "sent to ben"] == sorted(m.text for m in state["messages"] if m.type == "tool")
    check_transcript(state["messages"])


def test_what_was_approved_stays_so(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """It runs when its time has come, once, without being asked about again; the trail names who approved it."""
    mail = Mail()
    desk = Desk(by_tool(mail, "ana", "ben", rules=[ask("send", expires_in=30)]), checkpoints)
    waiting = desk.answer(desk.answer(desk.run(), approve()), approve(), by="ben")
    assert is_parked(waiting)
    clock.advance(3600)
    result = desk.wait(waiting.run_id)
    assert (["ana", "ben"], ["ana", "ben"]) == (mail.sent, [entry["by"] for entry in result.trail])
    assert "approved by ben" == result.trail[-1]["why"]


def test_several_calls_of_a_turn(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Each has its result in the end, in their order; what went through at once waits for the others."""
    mail = Mail()
    turn: Any = [call("send", to=name) for name in ("ana", "ben", "cid")]
    desk = Desk(create_agent(planned([turn, "Done."]), [mail.send()], permissions=[allow("send")]), checkpoints)
    result = desk.run()
    for _ in range(2):
        assert is_parked(result)
        assert result.parked is not None
        assert clock() + 60 == result.parked.until
        clock.advance(60)
        result = desk.wait(result.run_id)
    assert (RunStatus.SUCCEEDED, 3) == (result.status, result.usage.tool_calls)
    assert ["ana", "ben", "cid"] == sorted(mail.sent)
    check_transcript(result.messages)


def test_a_tool_that_changed_meanwhile(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """What was judged is not there any more: nothing runs."""
    desk = Desk(by_call(), checkpoints)
    desk.run(thread_id="first")
    waiting = desk.run()
    sent: list[str] = []

    @tool(effect="write")
    def send(to: str, copies: int = 1) -> str:
        """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
        sent.append(f"{to}, {copies}")
        return "sent"

    clock.advance(60)
    other = create_agent(planned([call("send", to="ana"), "Done."]), [send], permissions=[allow("send")])
    result = Desk(other, checkpoints).wait(waiting.run_id)
    assert ([], "not_run", 0) == (sent, result.trail[0]["outcome"], result.usage.tool_calls)


def test_tries_go_on_where_they_were(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """A model that fails is asked so often as it may be, and then the next one, however often that has to wait."""
    down = ConnectionRefusedError("down")
    first, second = ScriptedModel([down] * 9), ScriptedModel([down] * 9)
    agent = create_agent([first, second], [], rate=MINUTE, retry=Retry(tries=2, base=0.0))
    desk = Desk(agent, checkpoints)
    result = desk.run()
    for _ in range(3):
        assert is_parked(result)
        clock.advance(60)
        result = desk.wait(result.run_id)
    assert (RunStatus.FAILED, 2, 2, 4) == (result.status, len(first.seen), len(second.seen), len(result.failures))
    assert 4 == result.usage.model_calls


def test_last_words_and_a_look_back_wait_too(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Whatever the model is called for."""
    spoken = ScriptedModel([call("look", code="a"), "These are my last words."])

    @tool(effect="read")
    def look(code: str) -> str:
        """Look up an order by its code. Returns its status."""
        return f"{code} is there"

    limits = Limits(max_steps=2)
    desk = Desk(create_agent(spoken, [look], rate=MINUTE, wrap_up=True, limits=limits), checkpoints)
    result = _to_its_end(desk, desk.run(), clock)
    assert (StopReason.MAX_STEPS, "These are my last words.") == (result.stop_reason, result.answer)
    looked = ScriptedModel(["Two.", "DONE"])
    desk = Desk(create_agent(looked, [], rate=MINUTE, reflect=Reflect(), name="other"), checkpoints)
    clock.advance(60)
    result = _to_its_end(desk, desk.run(thread_id="reflects"), clock)
    assert (RunStatus.SUCCEEDED, 2) == (result.status, result.usage.steps)


def _to_its_end(desk: Desk, result: RunResult, clock: ManualClock) -> RunResult:
    parked = 0
    while result.parked is not None:
        parked += 1
        clock.advance(60)
        result = desk.wait(result.run_id)
    assert parked >= 1
    return result


def test_last_words_that_wait_can_be_cancelled(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Nothing is said any more."""
    model = planned([call("nothing"), "Never said."])
    desk = Desk(create_agent(model, [], rate=MINUTE, wrap_up=True, limits=Limits(max_steps=2)), checkpoints)
    waiting = desk.run()
    assert is_parked(waiting)
    desk.cancel(waiting.run_id)
    clock.advance(60)
    assert (RunStatus.CANCELLED, 1) == (desk.wait(waiting.run_id).status, len(model.seen))


def test_an_extension_and_a_pause_reset_nothing(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """The rate is kept by a run that was given more, and its counters go on."""
    mail = Mail()
    model = ScriptedModel([*(call("send", to=name) for name in ("ana", "ben", "cid")), "Done."])
    limits = Limits(max_steps=1)
    desk = Desk(create_agent(model, [mail.send()], permissions=ALLOWED, limits=limits), checkpoints)
    stopped = desk.run()
    assert StopReason.MAX_STEPS == stopped.stop_reason
    desk.extend(stopped.run_id, steps=3)
    result = _to_its_end(desk, desk.wait(stopped.run_id), clock)
    assert (RunStatus.SUCCEEDED, ["ana", "ben", "cid"], 4) == (result.status, mail.sent, result.usage.steps)


def test_a_branch_from_before(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Goes on by the rate as well, whatever the other branch was let to do."""
    agent: Any = by_model(checkpoints=checkpoints)
    agent.invoke(TASK, {"configurable": {"thread_id": "first"}})
    agent.invoke(TASK, THREAD)
    fork = agent.get_state(THREAD).config
    clock.advance(60)
    assert "succeeded" == agent.invoke(Command(resume="go"), THREAD)["run"]["status"]
    again = agent.invoke(None, fork)
    while "__interrupt__" in again:
        clock.advance(60)
        again = agent.invoke(Command(resume="go"), THREAD)
    assert ("succeeded", 3) == (again["run"]["status"], len(agent.spec.model.seen))
