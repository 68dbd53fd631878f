"""What becomes of a call that fails: another try, a word about another tool, the run's end; and of its neighbours."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import Gate, wait_until
from tests.world.plans import planned

from loopwright import Checkpoints, NotDone, Runs, allow, create_agent, open_checkpoints, tool
from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.testing import call, check_transcript
from loopwright.tools import Retry


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("effect", ["read", "idempotent"])
def test_a_failure_that_can_pass_is_tried_again(checkpoints: Checkpoints, effect: Any, door: DoorName) -> None:
    """Under the same key, within one call; each try that failed is in the trail."""
    from loopwright import Effect

    keys: list[str] = []

    def look(code: str, handle: Effect) -> str:
        """Look at an order, by its code."""
        keys.append(handle.key)
        if len(keys) < 3:
            raise ConnectionError(f"away {len(keys)}")
        return f"order {code}"

    look.__annotations__ = {"code": str, "handle": Effect, "return": str}
    built = tool(effect=effect, retry=Retry(base=0))(look)
    agent = create_agent(planned([call("look", code="A1"), "Done."]), [built], permissions=[allow("look")])
    result = Desk(agent, checkpoints, door).run()
    assert ("done", "order A1") == (result.trail[0]["outcome"], result.trail[0]["observation"])
    assert ["ConnectionError: away 1", "ConnectionError: away 2"] == result.trail[0].get("tries")
    assert ([keys[0]] * 3, 1) == (keys, result.usage.tool_calls)


@pytest.mark.parametrize(
    ("failure", "effect", "tries", "said"),
    [
        (ConnectionError("away"), "read", 3, "away (tried 3 times); cached may do instead"),
        (TypeError("wrong"), "read", 1, "wrong; cached may do instead"),
        (NotDone("sold out"), "idempotent", 1, "sold out; cached may do instead"),
        (NotDone("sold out"), "write", 1, "sold out; cached may do instead"),
    ],
)
def test_c50_what_cannot_succeed_is_tried_once(
    checkpoints: Checkpoints, failure: Exception, effect: Any, tries: int, said: str
) -> None:
    """And the model is pointed to the tool that may do instead."""
    count = Counter[str]()

    @tool(effect=effect, retry=Retry(base=0), fallback="cached")
    def look(code: str) -> str:
        """Look at an order, by its code."""
        count[code] += 1
        raise failure

    @tool(effect="read")
    def cached(code: str) -> str:
        """Look at an order as it was yesterday, by its code."""
        return code

    plan = planned([call("look", code="A1"), call("cached", code="A1"), "Done."])
    result = Desk(create_agent(plan, [look, cached], permissions=[allow("look")]), checkpoints).run()
    assert (f"ERROR: {said}", tries) == (result.trail[0]["observation"], count["A1"])


def test_a_wait_that_is_too_long_is_not_begun(checkpoints: Checkpoints) -> None:
    """The service asks for more than the call's time has left: the error comes at once."""

    class Busy(ConnectionError):
        retry_after = 3600

    @tool(effect="read", timeout=20)
    def look(code: str) -> str:
        """Look at an order, by its code."""
        raise Busy(code)

    result = Desk(create_agent(planned([call("look", code="A1"), "Done."]), [look]), checkpoints).run()
    assert "ERROR: A1" == result.trail[0]["observation"]


def test_a_fallback_that_is_not_there() -> None:
    """It fails when the agent is built; so does a tool that falls back on itself, and an unknown answer to errors."""

    def look(code: str) -> str:
        """Look at an order, by its code."""
        return code

    with pytest.raises(UnknownTool, match="'cached'"):
        create_agent("demo", [tool(effect="read", fallback="cached")(look)])
    with pytest.raises(ConfigurationError, match="another tool"):
        tool(effect="read", fallback="look")(look)
    wrong: Any = {"on_error": "raise"}
    with pytest.raises(ConfigurationError, match="on_error"):
        tool(effect="read", **wrong)(look)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("on_error", ["observe", "stop"])
def test_c46_one_failing_call_loses_no_neighbour(checkpoints: Checkpoints, on_error: Any, door: DoorName) -> None:
    """Its neighbours' results are kept, in order; carried on with a new task, only what failed runs again."""
    count = Counter[str]()
    gate = Gate()

    @tool(effect="read", on_error=on_error)
    def look(code: str) -> str:
        """Look at an order, by its code."""
        count[code] += 1
        if code == "B" and count[code] == 1:
            gate.open()
            raise LookupError("no B")
        if code == "C":
            gate.pass_through()  # slow: ends after B has failed
        return f"order {code}"

    first = [call("look", code=code) for code in "ABC"]
    rest = ["Done."] if on_error == "stop" else [call("look", code="B"), "Done."]
    agent = create_agent(planned([first, *rest]), [look])
    result = Desk(agent, checkpoints, door).run()
    told = [message.text for message in result.messages if isinstance(message, ToolMessage)]
    assert ["order A", "ERROR: no B", "order C"] == told[:3]
    check_transcript(result.messages)
    if on_error == "stop":
        assert ("failed", "error", "look failed: no B") == (result.status, result.stop_reason, result.error)
        again = create_agent(planned([call("look", code="B"), "Done."]), [look])
        result = Desk(again, checkpoints, door).run("Go on.")
    assert ("succeeded", {"A": 1, "B": 2, "C": 1}) == (result.status, dict(count))


@pytest.mark.parametrize("blocks", [True, False])
def test_c48_cancelled_in_the_middle_of_a_tool(blocks: bool, tmp_path: Any) -> None:  # noqa: FBT001 -- a column
    """The caller is free at once; the thread loads, and goes on with a new message; what ends late changes nothing."""
    gate = Gate()

    async def main() -> list[str]:
        @tool(effect="read")
        def slow(code: str) -> str:
            """Look at an order slowly, by its code."""
            gate.pass_through()
            return f"late {code}"

        @tool(effect="read", name="slow")
        async def waiting(code: str) -> str:
            """Look at an order slowly, by its code."""
            gate.reach()
            await asyncio.Event().wait()
            return code

        tools = [slow if blocks else waiting]
        with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
            runs = Runs(create_agent(planned([call("slow", code="A1"), "Done."]), tools), checkpoints)
            task = asyncio.ensure_future(follow(runs))
            await asyncio.to_thread(gate.wait_until_reached)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            after = Runs(create_agent(planned(["Done."]), tools), checkpoints)
            result = await after.run("Never mind.", thread_id="t")
            gate.open()
            check_transcript(result.messages)
            return [message.text for message in result.messages if isinstance(message, ToolMessage)]

    (told,) = asyncio.run(main())
    assert "cancelled" in told


async def follow(runs: Runs) -> None:
    """Drive a run from here: whoever cancels this ends its tool."""
    async for _ in runs.stream("Look.", thread_id="t"):
        pass


@pytest.mark.parametrize("door", DOORS)
def test_what_ends_late_settles_its_effect(checkpoints: Checkpoints, door: DoorName) -> None:
    """A blocking write that was given up does end after all: its effect is known then, and nobody need be asked."""
    gate = Gate()

    @tool(effect="write", timeout=0.05)
    def pay(code: str) -> str:
        """Pay for an order, by its code."""
        gate.pass_through()
        return f"paid {code}"

    agent = create_agent(planned([call("pay", code="A1"), "Done."]), [pay], permissions=[allow("pay")])
    desk = Desk(agent, checkpoints, door)
    waiting = desk.run()
    assert ["outcome_unknown"] == [asked.question for asked in waiting.approvals]
    gate.open()
    wait_until(lambda: not checkpoints.ledger.approvals.list_open(waiting.run_id, 5))
    result = desk.wait(waiting.run_id)
    assert ("succeeded", "paid A1") == (result.status, result.trail[0]["observation"])


@pytest.mark.parametrize("door", DOORS)
def test_what_a_result_still_has_to_bring_takes_the_calls_time(checkpoints: Checkpoints, door: DoorName) -> None:
    """An iterator within a result is read in a thread, and no longer than the call may take; nothing else waits."""
    gate = Gate()

    def pages() -> Generator[str]:
        gate.pass_through()
        yield "page"

    @tool(effect="read", timeout=0.05)
    async def listed() -> dict[str, Any]:
        """List the pages of a book."""
        return {"pages": [pages()]}

    agent = create_agent(planned([call("listed"), "Done."]), [listed])
    result = Desk(agent, checkpoints, door).run()
    gate.open()
    assert ("succeeded", "ERROR: timed out after 0.05 s") == (result.status, result.trail[0]["observation"])


class Rough(BaseException):
    """What most code does not reckon with."""


class Rude(Exception):
    """An error that cannot be printed."""

    def __str__(self) -> str:
        raise ValueError("no")


@pytest.mark.parametrize("blocks", [True, False])
@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (asyncio.CancelledError(), "cancelled"),
        (StopIteration(1), "StopIteration"),
        (Rude(), "Rude"),
        (Rough("no"), "Rough: no"),
        (BaseExceptionGroup("two", [SystemExit(1)]), "BaseExceptionGroup"),
        (ExceptionGroup("two", [ValueError("a"), Rude()]), "ValueError: a; Rude: Rude"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_whatever_a_tool_raises(failure: BaseException, said: str, blocks: bool) -> None:  # noqa: FBT001 -- a column
    """It is an observation, and the run goes on."""

    @tool(effect="read", name="fail")
    def fail() -> str:
        """Fail in some way."""
        raise failure

    @tool(effect="read", name="fail")
    async def afail() -> str:
        """Fail in some way."""
        raise failure

    async def main() -> str:
        agent = create_agent(planned([call("fail"), "Done."]), [fail if blocks else afail])
        with open_checkpoints("memory:") as checkpoints:
            async with Runs(agent, checkpoints) as runs:
                result = await runs.run("Try.", thread_id="t")
        assert "succeeded" == result.status
        return result.trail[0]["observation"]

    assert said.lower() in asyncio.run(main()).lower()
