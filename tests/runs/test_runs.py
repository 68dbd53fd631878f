"""The faces: starting, listing, streaming, draining."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pydoc
from collections.abc import Callable
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.sqlite import connection_of
from tests.world.till import Till

from loopwright import Agent, Checkpoints, Event, Runs, RunStatus, SyncRuns, approve, create_agent, open_checkpoints
from loopwright.checkpoints import OpeningOptions
from loopwright.errors import ConfigurationError, RunNotFound
from loopwright.runs import DrivingOptions, ExtendOptions, RunOptions
from loopwright.testing import ManualClock, ScriptedModel, call

PAY = call("pay", order_id="A1", amount=5)


def build(*turns: Any) -> Agent:
    """Build an agent that looks and pays."""
    return create_agent(planned(turns or [call("look", order_id="A1"), PAY, "Done."]), [Till().look(), Till().pay()])


def test_both_faces_have_the_same_names() -> None:
    """`Runs` has `drain` besides: a `SyncRuns` does nothing behind anybody's back."""

    def parameters(kind: type) -> dict[str, list[str]]:
        public = {name: function for name, function in vars(kind).items() if not name.startswith("_")}
        return {name: [*inspect.signature(function).parameters] for name, function in public.items()}

    asynchronous = parameters(Runs)
    assert [*asynchronous.pop("drain")] == ["self"]
    assert asynchronous == parameters(SyncRuns)


@pytest.mark.parametrize("door", DOORS)
def test_an_id_of_ones_own(checkpoints: Checkpoints, door: DoorName) -> None:
    """Started twice, it is one run; for another message or thread it is refused."""
    desk = Desk(build("Done."), checkpoints, door)
    first = desk.run("Hello.", run_id="request-1")
    assert first == desk.run("Hello.", run_id="request-1")
    assert first.run_id == "request-1"
    for message, thread in (("Other.", "t"), ("Hello.", "other")):
        with pytest.raises(ConfigurationError, match="request-1"):
            desk.run(message, thread_id=thread, run_id="request-1")
    assert len(checkpoints.ledger.runs.list()) == 1


@pytest.mark.parametrize(
    ("message", "told"),
    [
        ("", "is empty; say"),
        (" \n", "is empty; say"),
        (None, "is a NoneType; give a text"),
        (["hi"], "is a list; give"),
    ],
)
def test_an_empty_message(checkpoints: Checkpoints, message: Any, told: str) -> None:
    """There is nothing to do: refused, with what is wanted, and nothing is noted."""
    with pytest.raises(ConfigurationError, match=f"the message {told}"):
        Desk(build("Done."), checkpoints).run(message)
    assert checkpoints.ledger.runs.list() == []


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("run", {"thread_id": "t", "run_idd": "r"}, "a run has no option run_idd; did you mean run_id"),
        ("start", {"thread_id": "t", "by": "ana"}, "a run has no option by; there are run_id, requester"),
        ("extend", {"by": "ana", "step": 1}, "an extension has no option step; did you mean steps"),
    ],
)
def test_an_option_that_is_none(
    checkpoints: Checkpoints, door: DoorName, method: str, options: dict[str, Any], said: str
) -> None:
    """It is refused with the one that was meant, and nothing is noted."""
    desk = Desk(build("Done."), checkpoints, door)
    with pytest.raises(ConfigurationError, match=said):
        desk.call(method, "Hello.", **options)
    assert checkpoints.ledger.runs.list() == []


def test_what_runs_themselves_have_no_option_for(checkpoints: Checkpoints) -> None:
    """A misspelt hook would never be called, and a stream refuses as the others do."""
    agent = build("Done.")
    hook: dict[str, Any] = {"on_remind": print}
    misspelt: dict[str, Any] = {"requesters": "ana"}
    for kind in (Runs, SyncRuns):
        with pytest.raises(ConfigurationError, match="Runs has no option on_remind; did you mean on_reminder"):
            kind(agent, checkpoints, **hook)
    with pytest.raises(ConfigurationError, match="did you mean requester"):
        next(SyncRuns(agent, checkpoints).stream("Hello.", thread_id="t", **misspelt))


def test_runs_want_an_agent_and_checkpoints(checkpoints: Checkpoints) -> None:
    """Given in the other order, or as a URL, they are refused, without the value: it may hold a password."""
    kind: Any
    for kind in (Runs, SyncRuns):
        with pytest.raises(ConfigurationError, match=r"agent is a Checkpoints; .* Runs\(agent, checkpoints\)"):
            kind(checkpoints, build())
        with pytest.raises(ConfigurationError, match="checkpoints is a str; give what open_checkpoints"):
            kind(build(), "postgresql://app:secret@db/shop")
        with pytest.raises(ConfigurationError, match="checkpoints is a NoneType; give what open_checkpoints"):
            kind(build(), None)


def test_what_is_printed_says_what_it_is(checkpoints: Checkpoints) -> None:
    """An agent, its tools and where it runs, each in one short line: for a log, or a prompt."""
    agent = create_agent(ScriptedModel([]), [Till().pay()], name="shop")
    assert "<Agent 'shop': scripted, tools: pay>" == repr(agent)
    assert ("<Checkpoints in ':memory:'>", "<Runs of 'shop' in ':memory:'>", "<SyncRuns of 'shop' in ':memory:'>") == (
        repr(checkpoints),
        repr(Runs(agent, checkpoints)),
        repr(SyncRuns(agent, checkpoints)),
    )
    with open_checkpoints("memory:", encryption=[b"k" * 32]) as sealed:
        assert "<Checkpoints in ':memory:', encrypted>" == repr(sealed)
    (tool,) = agent.spec.offered
    assert repr(tool).startswith("Tool(name='pay', effect='write', description='")
    assert "contract" not in str(tool)


def test_a_printed_result_is_short(checkpoints: Checkpoints) -> None:
    """It can be logged: how the run stands and what waits, without the transcript, the trail or a client's payload."""
    result = SyncRuns(build(), checkpoints).run("Pay my bill.", thread_id="t")
    assert ("waiting", 1) == (result.status, len(result.approvals))
    assert "approvals=(Approval(id=" in repr(result)
    assert [] == [name for name in ("messages=", "trail=", "payload=", "HumanMessage") if name in repr(result)]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (Runs.__init__, DrivingOptions),
        (Runs.start, RunOptions),
        (Runs.extend, ExtendOptions),
        (open_checkpoints, OpeningOptions),
    ],
)
def test_help_names_every_option(function: Callable[..., Any], options: type) -> None:
    """Their documentation stands once, at the type; whoever asks for help reads what there is."""
    told = pydoc.render_doc(function)
    assert options.__name__ in told
    assert [] == [name for name in options.__annotations__ if f"`{name}`" not in told]


@pytest.mark.parametrize("method", ["get", "wait"])
def test_what_is_no_run(checkpoints: Checkpoints, method: str) -> None:
    """The error says where to look."""
    with pytest.raises(RunNotFound, match="loopwright show"):
        getattr(SyncRuns(build(), checkpoints), method)("nope")


def test_listing(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """Newest first, with what each is about; questions oldest first."""
    runs = SyncRuns(build(), checkpoints)
    for thread in "ab":
        runs.run(f"Pay {thread}.", thread_id=thread)
        clock.advance(1)
    assert [("Pay b.", "b"), ("Pay a.", "a")] == [(run.task, run.thread_id) for run in runs.list()]
    assert ["a", "b"] == [asked.thread_id for asked in runs.approvals()]
    (only,) = runs.list(status=RunStatus.WAITING, thread_id="a")
    assert (only.status, only.stop_reason, only.created_at) == ("waiting", None, clock() - 2)
    assert [only.id] == [asked.run_id for asked in runs.approvals(only.id)]


def test_starting_alone_drives_nothing(checkpoints: Checkpoints) -> None:
    """A `SyncRuns` writes down what is to be done; whoever waits does it."""
    model = planned(["Done."])
    runs = SyncRuns(create_agent(model, []), checkpoints)
    run = runs.start("Do it.", thread_id="t")
    assert (RunStatus.RUNNING, []) == (run.status, model.seen)
    assert runs.get(run.id).status == "running"
    assert runs.wait(run.id).answer == "Done."


def test_starting_drives_in_the_background(checkpoints: Checkpoints) -> None:
    """`Runs` does it by itself; draining waits for all of it."""

    async def main() -> None:
        async with Runs(build("Done."), checkpoints) as runs:
            started = [await runs.start("Do it.", thread_id=thread) for thread in "abc"]
            await runs.drain()
            assert ["Done."] * 3 == [(await runs.get(run.id)).answer for run in started]

    asyncio.run(main())


def test_a_wait_that_is_given_up_stops_nothing(checkpoints: Checkpoints) -> None:
    """The caller's cancellation is the caller's alone."""

    async def main() -> None:
        async with Runs(build("Done."), checkpoints) as runs:
            run = await runs.start("Do it.", thread_id="t")
            waiting = asyncio.ensure_future(runs.wait(run.id))
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert (await runs.wait(run.id)).answer == "Done."

    asyncio.run(main())


def stream(runs: Any, door: DoorName, run_id: str = "") -> list[Event]:
    """Collect the events of a new run, or of one that is carried on."""
    if door == "sync":
        return [*(runs.follow(run_id) if run_id else runs.stream("Pay.", thread_id="t"))]

    async def main() -> list[Event]:
        events = runs.follow(run_id) if run_id else runs.stream("Pay.", thread_id="t")
        return [event async for event in events]

    return asyncio.run(main())


@pytest.mark.parametrize("door", DOORS)
def test_streaming(checkpoints: Checkpoints, door: DoorName) -> None:
    """Each thing once, as it happens; a pause is one event, the last, with the questions; then on from there."""
    runs = (SyncRuns if door == "sync" else Runs)(build(), checkpoints)
    events = stream(runs, door)
    assert ["began", "decided", "observed", "decided", "waiting"] == [event.kind for event in events]
    assert events[2].entry is not None
    assert ("look", "done") == (events[2].entry["tool"], events[2].entry["outcome"])
    (last,) = [event.result for event in events if event.result is not None]
    assert [*last.approvals] == checkpoints.ledger.approvals.list_open()
    SyncRuns(build(), checkpoints).decide(last.approvals[0].id, approve(), by="ana")
    events = stream(runs, door, last.run_id)
    assert ["observed", "decided", "ended"] == [event.kind for event in events]
    assert ["ended"] == [event.kind for event in stream(runs, door, last.run_id)]


def test_a_stream_that_is_left_can_be_followed(checkpoints: Checkpoints) -> None:
    """Whoever stops reading leaves the run where it is; the thread is free at once."""
    runs = SyncRuns(build(), checkpoints)
    events = runs.stream("Pay.", thread_id="t")
    run_id = next(events).run_id
    events.close()  # type: ignore[attr-defined] # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]  # a generator
    assert checkpoints.ledger.leases.holder("t") is None
    assert runs.wait(run_id).status == "waiting"


def test_one_broken_run_does_not_hold_up_the_others(checkpoints: Checkpoints, caplog: pytest.LogCaptureFixture) -> None:
    """Recovery logs it, and goes on with the next."""
    runs = SyncRuns(build("Done."), checkpoints)
    for run_id in ("r1", "r2"):
        runs.start("Do it.", thread_id=run_id, run_id=run_id)
    connection_of(checkpoints.ledger).execute("update lw_runs set thread_id = '' where id = 'r1'")
    with caplog.at_level(logging.WARNING):
        assert ["r2"] == [result.run_id for result in runs.recover()]
    assert "run r1 could not be carried on" in caplog.text


def test_only_ones_own_agent_is_recovered(checkpoints: Checkpoints) -> None:
    """A run of another agent is left to whoever has it."""
    mine = SyncRuns(build("Mine."), checkpoints, reference="app:mine")
    other = SyncRuns(build("Other."), checkpoints, reference="app:other")
    mine.start("Do it.", thread_id="a")
    other.start("Do it.", thread_id="b")
    assert ["Mine."] == [result.answer for result in mine.recover()]
    assert ["running", "succeeded"] == sorted(run.status for run in mine.list())


def test_messages_are_copies(checkpoints: Checkpoints) -> None:
    """Whoever changes a result changes nothing that is stored."""
    runs = SyncRuns(create_agent(ScriptedModel(["Done."]), []), checkpoints)
    result = runs.run("Do it.", thread_id="t")
    result.messages[0].content = "changed"
    assert "Do it." == runs.get(result.run_id).messages[0].text
