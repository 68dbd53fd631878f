"""A model's text as it comes: the same run, the same usage, and pieces on the way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator, Sequence
from contextlib import closing
from typing import Any, cast

import pytest
from tests.world.till import Till
from tests.world.wires import ANTHROPIC, GPT, OPENAI, opened

from loopwright import (
    Event,
    EventKind,
    Limits,
    Retry,
    RunResult,
    Runs,
    RunStatus,
    SyncRuns,
    allow,
    aopen_checkpoints,
    create_agent,
    open_checkpoints,
    open_model,
    tool,
)
from loopwright.graphs import Agent
from loopwright.runs.alongside import alongside
from loopwright.testing import Reply, ScriptedModel, call, check_transcript
from loopwright.testing.scripted_server import ScriptedServer

LOOK = [("look", '{"order_id": "A1"}'), ("pay", '{"order_id": "A1", "amount": 25}')]
TURNS = [Reply("I look it up, then pay.", LOOK, tokens=(120, 30)), Reply("It is done: 25 paid.", tokens=(200, 9))]
BOTH: list[Any] = [
    pytest.param({**OPENAI, "options": {"stream_usage": True}}, id="openai"),
    pytest.param({**ANTHROPIC, "options": {}}, id="anthropic"),
]
both_wires = pytest.mark.parametrize("wire", BOTH)
both_doors = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
SOON = Retry(base=0.001)


def drive(agent: Agent, *, is_async: bool, tokens: bool = True, url: str = "memory:") -> list[Event]:
    """Run one task; returns all events."""
    if not is_async:
        with open_checkpoints(url) as checkpoints:
            return [*SyncRuns(agent, checkpoints).stream("Refund A1.", thread_id="t", tokens=tokens)]

    async def main() -> list[Event]:
        async with await aopen_checkpoints(url) as checkpoints, Runs(agent, checkpoints) as runs:
            return [event async for event in runs.stream("Refund A1.", thread_id="t", tokens=tokens)]

    return asyncio.run(main())


def agent_at(server: ScriptedServer, wire: dict[str, Any], **options: Any) -> Agent:
    """Build an agent that looks and pays, over the real client."""
    till = Till()
    given: dict[str, Any] = {"permissions": [allow("pay")], "retry": SOON, **options}
    return create_agent(opened(wire, server), [till.look(), till.pay()], **given)


def result_of(events: Sequence[Event]) -> RunResult:
    """Return what the last event holds."""
    result = events[-1].result
    assert result is not None
    check_transcript(result.messages)
    return result


def texts_of(events: Sequence[Event]) -> list[list[str]]:
    """Return the pieces of each reply, in order."""
    replies: list[list[str]] = [[]]
    for event in events:
        if event.kind is EventKind.TEXT:
            replies[-1].append(event.text)
        elif replies[-1]:
            replies.append([])
    return [reply for reply in replies if reply]


def told(result: RunResult) -> dict[str, Any]:
    """Return what a run must have in common with the same one that nobody listens to."""
    return {
        "answer": result.answer,
        "usage": {**vars_of(result), "seconds": 0.0},
        "calls": [(one["tool"], one["args"], one["thought"], one["outcome"]) for one in result.trail],
        "messages": [(message.type, message.text, getattr(message, "tool_calls", [])) for message in result.messages],
    }


def vars_of(result: RunResult) -> dict[str, Any]:
    """Return a run's usage as plain data."""
    return {name: getattr(result.usage, name) for name in result.usage.__dataclass_fields__}


@both_wires
@both_doors
def test_who_listens_gets_the_text_in_pieces_and_the_same_result(wire: dict[str, Any], *, is_async: bool) -> None:
    """Streamed or not: one transcript, one trail, one usage; the pieces are the texts."""
    came: list[list[Event]] = []
    for tokens in (True, False):
        with wire["server"](TURNS) as server:
            came.append(drive(agent_at(server, wire), is_async=is_async, tokens=tokens))
        server.assert_done()
        assert [tokens] * 2 == [bool(request.body.get("stream")) for request in server.requests]
    streamed, whole = came
    assert told(result_of(whole)) == told(result_of(streamed))
    assert [] == texts_of(whole)
    pieces = texts_of(streamed)
    assert ["I look it up, then pay.", "It is done: 25 paid."] == ["".join(reply) for reply in pieces]
    assert all(len(reply) > 1 for reply in pieces)
    kinds = [event.kind for event in streamed if event.kind is not EventKind.TEXT]
    assert kinds == [event.kind for event in whole]


@both_doors
def test_pieces_come_while_the_reply_is_made(*, is_async: bool) -> None:
    """The first piece is there before the model has said the last one; also where one thing runs at a time."""
    with OPENAI["server"]([Reply("A long answer, piece by piece.", pause=0.05)]) as server:
        agent = agent_at(server, GPT, limits=Limits(max_parallel=1))
        events = drive(agent, is_async=is_async)
    assert RunStatus.SUCCEEDED == result_of(events).status
    assert len(texts_of(events)[0]) > 3


@both_doors
def test_nothing_but_the_stream_itself_is_asked_of_the_server(*, is_async: bool) -> None:
    """`stream_options` is sent where the user says `stream_usage=True`; else the usage is estimated, and marked so."""
    with OPENAI["server"](["Done."]) as server:
        result = result_of(drive(agent_at(server, GPT), is_async=is_async))
    assert {"model", "messages", "stream", "tools"} == set(server.requests[0].body)
    assert result.usage.estimated
    assert result.usage.output_tokens > 0


@both_wires
@both_doors
def test_a_stream_that_breaks_is_void_and_is_asked_for_again(wire: dict[str, Any], *, is_async: bool) -> None:
    """Its pieces were told, so their end is told too; no call of it runs; what it may have cost is counted."""
    cut = Reply("I will pay it at once.", LOOK, cut_after=5)
    with wire["server"]([cut, Reply("Nothing to pay.")]) as server:
        events = drive(agent_at(server, wire), is_async=is_async)
    server.assert_done()
    result = result_of(events)
    assert ("Nothing to pay.", ()) == (result.answer, result.trail)
    assert result.usage.estimated
    kinds = list(dict.fromkeys(event.kind for event in events))
    text, failed = kinds.index(EventKind.TEXT), kinds.index(EventKind.FAILED_ATTEMPT)
    assert text < failed < kinds.index(EventKind.DECIDED)
    assert "Nothing to pay." == "".join(texts_of(events)[-1])


@both_doors
def test_a_model_that_cannot_stream_is_told_in_one_piece(*, is_async: bool) -> None:
    """Whoever listens gets each text, however it came."""
    events = drive(create_agent(ScriptedModel(["It is done."]), []), is_async=is_async)
    assert [["It is done."]] == texts_of(events)


@both_doors
def test_a_reply_that_comes_too_late_is_heard_no_more(*, is_async: bool) -> None:
    """Once an attempt is given up, nothing of it reaches anyone."""
    with OPENAI["server"]([Reply("Too late, and far too long.", pause=0.15)]) as server:
        agent = create_agent(
            [opened(GPT, server), ScriptedModel(["In time."])], [], retry=Retry(tries=1), model_timeout=0.4
        )
        events = drive(agent, is_async=is_async)
    assert "In time." == result_of(events).answer
    after = events[[event.kind for event in events].index(EventKind.FAILED_ATTEMPT) :]
    assert "In time." == "".join(event.text for event in after)


def test_last_words_are_heard() -> None:
    """What is asked for at a limit is shown like any other text."""
    model = ScriptedModel([call("look", order_id="A1"), "I found nothing yet."])
    agent = create_agent(model, [Till().look()], limits=Limits(max_steps=2), wrap_up=True)
    events = drive(agent, is_async=False)
    assert [["I found nothing yet."]] == texts_of(events)


def test_who_stops_listening_stops_the_run_at_its_next_step() -> None:
    """The step that is on is done; the next one is not begun, and another caller can carry the run on."""
    steps: list[str] = []

    @tool(effect="read")
    def look(code: str) -> str:
        """Look up an order by its code; returns its status."""
        steps.append(code)
        return "there"

    turns = [call("look", code=f"A{number}") for number in range(3)]
    agent = create_agent(ScriptedModel([*turns, "Done."]), [look])
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        started = runs.start("Look.", thread_id="t")
        with closing(cast("Generator[Event]", runs.follow(started.id, tokens=True))) as events:
            for event in events:
                if event.kind is EventKind.OBSERVED:
                    break
        assert ["A0"] == steps
        assert "Done." == runs.wait(started.id).answer
    assert ["A0", "A1", "A2"] == steps


def test_what_another_thread_raises_reaches_the_caller() -> None:
    """And what was made before it, in order."""

    def start(say: Any) -> Any:
        yield 1
        say("between")
        raise ValueError("broken")

    parts: list[Any] = []
    with pytest.raises(ValueError, match="broken"):
        parts.extend(alongside(start))
    drive_ = alongside(start)
    assert [(True, 1), (False, "between")] == [next(drive_), next(drive_)]
    drive_.close()
    assert [] == [thread for thread in threading.enumerate() if thread.name == "loopwright-drive"]


def test_a_cancelled_task_closes_its_connection() -> None:
    """The provider is told that nobody waits: its end of the connection is closed."""

    async def main() -> None:
        asked, closed = asyncio.Event(), asyncio.Event()

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            asked.set()
            while await reader.read(4096):
                pass
            closed.set()
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        for tokens in (False, True):
            asked.clear()
            closed.clear()
            agent = create_agent(open_model(OPENAI["name"], base_url=url, api_key="a key"), [])
            async with await aopen_checkpoints("memory:") as checkpoints:
                runs = Runs(agent, checkpoints)
                task = asyncio.ensure_future(anext_result(runs, tokens=tokens))
                await asked.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await closed.wait()
        server.close()

    asyncio.run(main())


async def anext_result(runs: Runs, *, tokens: bool) -> RunResult | None:
    """Follow a run to its end."""
    result = None
    async for event in runs.stream("Do it.", thread_id=f"t{tokens}", tokens=tokens):
        result = event.result
    return result
