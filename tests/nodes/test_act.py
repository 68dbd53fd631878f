"""Running one call: what becomes of it when the tool fails, is late, or cannot tell."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import StructuredTool, ToolException
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import Gate
from tests.world.plans import planned

from loopwright import (
    Checkpoints,
    Limits,
    NotDone,
    RunResult,
    Runs,
    allow,
    annotate,
    create_agent,
    happened,
    not_happened,
    open_checkpoints,
    respond,
    tool,
)
from loopwright.testing import call, check_transcript
from loopwright.tools import Retry, Tool, Verify

DO = call("work", code="A1")


class Work:
    """Counts how often it was done, and then fails as it is told."""

    def __init__(self, failure: BaseException | None = None) -> None:
        """Take what to raise after the work."""
        self.failure = failure
        self.keys: list[str] = []

    def build(self, **options: Any) -> Tool:
        """Build the tool."""
        from loopwright import Effect

        def work(code: str, handle: Effect) -> str:
            """Do some work about an order, by its code."""
            self.keys.append(handle.key)
            if self.failure:
                raise self.failure
            return f"did {code}"

        work.__annotations__ = {"code": str, "handle": Effect, "return": str}
        return tool(**options)(work)


def go(checkpoints: Checkpoints, built: Tool, *turns: Any, door: DoorName = "sync", **options: Any) -> RunResult:
    """Run a plan with one tool, which needs nobody's approval."""
    agent = create_agent(planned(turns or [DO, "Done."]), [built], permissions=[allow("work")], **options)
    result = Desk(agent, checkpoints, door).run()
    if result.status.is_final:
        check_transcript(result.messages)
    return result


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("failure", [NotDone("sold out"), ToolException("sold out")])
def test_a_tool_that_says_that_nothing_happened(checkpoints: Checkpoints, failure: Exception, door: DoorName) -> None:
    """Its words are an observation, and its effect is settled as failed."""
    result = go(checkpoints, Work(failure).build(effect="write"), door=door)
    assert ("succeeded", "error", "ERROR: sold out") == (
        result.status,
        result.trail[0]["outcome"],
        result.trail[0]["observation"],
    )
    assert ["failed"] == [row.status for row in checkpoints.ledger.effects.of_run(result.run_id)]


def adapted(effect: Any, *, handled: bool) -> Tool:
    """Build a tool as langchain-mcp-adapters does, of a server that tells an error."""

    async def call_tool(code: str) -> Any:
        raise ToolException(f"the bank hung up on {code}")

    call_tool.__module__ = "langchain_mcp_adapters.tools"
    made = StructuredTool.from_function(
        coroutine=call_tool,
        name="work",
        description="Do some work about an order, by its code.",
        response_format="content_and_artifact",
        handle_tool_error=str if handled else False,
    )
    return annotate(made, effect=effect)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("effect", "status", "observation"),
    [
        ("read", "succeeded", "ERROR: the bank hung up on A1"),
        ("idempotent", "succeeded", "ERROR: ToolError: the bank hung up on A1; it is safe to try again"),
        ("write", "waiting", ""),
    ],
)
def test_an_error_that_the_adapters_tell_may_have_come_too_late(
    checkpoints: Checkpoints, effect: str, status: str, observation: str, door: DoorName
) -> None:
    """They tell a server's `isError` as LangChain's `ToolException`: of a write nobody knows whether it happened."""
    result = go(checkpoints, adapted(effect, handled=door == "async"), door=door)
    assert status == result.status
    assert [observation] * (status == "succeeded") == [entry["observation"] for entry in result.trail]
    assert ["outcome_unknown"] * (status == "waiting") == [asked.question for asked in result.approvals]


@pytest.mark.parametrize("door", DOORS)
def test_a_write_that_raises_is_unknown(checkpoints: Checkpoints, door: DoorName) -> None:
    """It was begun: a person is asked, and the model cannot go on before."""
    work = Work(ConnectionError("reset by peer"))
    result = go(checkpoints, work.build(effect="write"), door=door)
    (asked,) = result.approvals
    assert ("waiting", "outcome_unknown") == (result.status, asked.question)
    assert "ConnectionError: reset by peer" in asked.description
    assert len(work.keys) == 1


@pytest.mark.parametrize(
    ("said", "outcome", "observation"),
    [
        (happened("it did"), "done", "it did"),
        (not_happened(), "error", "ERROR: OSError: broken (verified: nothing happened)"),
    ],
)
def test_a_hook_finds_out(checkpoints: Checkpoints, said: Any, outcome: str, observation: str) -> None:
    """Whether it happened after all; nobody has to be asked, and nothing is repeated."""
    work = Work(OSError("broken"))
    result = go(checkpoints, work.build(effect="write", verify=answering(said)))
    assert ("succeeded", outcome, observation, 1) == (
        result.status,
        result.trail[0]["outcome"],
        result.trail[0]["observation"],
        len(work.keys),
    )


class Later:
    """A hook that is an object, and is awaited."""

    async def __call__(self, *_: Any) -> Any:
        """Find out."""
        return happened("it did")


async def found_later(*_: Any) -> Any:
    """Find out, elsewhere."""
    return happened("it did")


def hands_on(*given: Any) -> Any:
    """Return what must be awaited, without being async."""
    return found_later(*given)


async def ends_the_process(*_: Any) -> Any:
    """Fail as nothing should."""
    raise SystemExit(3)


HOOKS: list[tuple[Any, str]] = [
    (found_later, "it did"),
    (functools.partial(found_later, 1), "it did"),
    (Later(), "it did"),
    (hands_on, "it did"),
    (ends_the_process, ""),
]


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("verify", "found"), HOOKS)
def test_a_hook_may_be_async(checkpoints: Checkpoints, verify: Any, found: str, door: DoorName) -> None:
    """It is awaited by both doors, whatever shape it has; one that breaks cannot tell."""
    work = Work(OSError("broken"))
    built = work.build(effect="write", verify=verify)
    agent = create_agent(planned([DO, "Done."]), [built], permissions=[allow("effect:write")])
    result = Desk(agent, checkpoints, door).run()
    asked = [approval.question for approval in result.approvals]
    observed = [entry["observation"] for entry in result.trail]
    assert ([], [found]) == (asked, observed) if found else (["outcome_unknown"], []) == (asked, observed)


def answering(said: Any) -> Verify:
    """Build a hook that knows."""
    return lambda _effect, _args: said


def _none(*_: Any) -> Any:
    return None


def _fail(*_: Any) -> Any:
    raise RuntimeError("the service is away")


@pytest.mark.parametrize("verify", [_none, _fail])
def test_a_hook_that_cannot_tell(checkpoints: Checkpoints, verify: Any) -> None:
    """Then a person is asked."""
    result = go(checkpoints, Work(OSError("broken")).build(effect="write", verify=verify))
    assert ["outcome_unknown"] == [asked.question for asked in result.approvals]


@pytest.mark.parametrize("door", DOORS)
def test_late_is_unknown(checkpoints: Checkpoints, door: DoorName) -> None:
    """A blocking tool that is late goes on in its thread: also a hook that found nothing yet cannot rule it out."""
    gate = Gate()

    @tool(effect="write", timeout=0.05, verify=answering(not_happened()))
    def work(code: str) -> str:
        """Do some work about an order, by its code."""
        gate.pass_through()
        return code

    result = go(checkpoints, work, door=door)
    gate.open()
    assert ["outcome_unknown"] == [asked.question for asked in result.approvals]
    assert "timed out after 0.05 s" in result.approvals[0].description


@pytest.mark.parametrize("door", DOORS)
def test_a_late_read_is_an_error(checkpoints: Checkpoints, door: DoorName) -> None:
    """Nothing changed, so the model can just go on."""
    gate = Gate()

    @tool(effect="read", timeout=0.05)
    def work(code: str) -> str:
        """Look at an order, by its code."""
        gate.pass_through()
        return code

    result = go(checkpoints, work, door=door)
    gate.open()
    assert ("succeeded", "ERROR: timed out after 0.05 s") == (result.status, result.trail[0]["observation"])


def test_an_idempotent_call_may_be_tried_again(checkpoints: Checkpoints) -> None:
    """By the model, in a later step: the service behind it sees the same key."""
    work = Work(OSError("broken"))

    def mend(_messages: Any) -> Any:
        work.failure = None
        return DO

    result = go(checkpoints, work.build(effect="idempotent", retry=Retry(tries=1)), DO, mend, "Done.")
    assert ["error", "done"] == [entry["outcome"] for entry in result.trail]
    assert "safe to try again" in result.trail[0]["observation"]
    assert work.keys == [work.keys[0]] * 2
    assert ["done"] == [row.status for row in checkpoints.ledger.effects.of_run(result.run_id)]


def test_a_twin_of_what_is_in_doubt_is_not_run(checkpoints: Checkpoints) -> None:
    """Two equal calls in one turn: while the first is in doubt, the second is blocked."""
    work = Work(OSError("broken"))
    agent = create_agent(
        planned([[DO, DO], "Done."]),
        [work.build(effect="write")],
        permissions=[allow("work")],
        limits=Limits(max_parallel=1),
    )
    desk = Desk(agent, checkpoints)
    waiting = desk.run()
    assert (len(waiting.approvals), len(work.keys)) == (1, 1)
    result = desk.answer(waiting, respond("it did"))
    assert ["done", "not_run"] == [entry["outcome"] for entry in result.trail]
    assert len(work.keys) == 1
    check_transcript(result.messages)


def test_equal_calls_are_two_effects(checkpoints: Checkpoints) -> None:
    """Without a key of its own, a call is named by its place: what the model asks for twice happens twice."""
    work = Work()
    result = go(checkpoints, work.build(effect="write"), [DO, DO], "Done.")
    assert (2, ["done", "done"]) == (len(set(work.keys)), [entry["outcome"] for entry in result.trail])


def test_a_key_of_its_own_holds_over_all_threads(checkpoints: Checkpoints) -> None:
    """The same key again is answered with what is known, and says so; other arguments are a conflict."""
    work = Work()

    @tool(effect="write", key="{code}")
    def work_on(code: str, amount: int) -> str:
        """Do some work about an order, by its code, for an amount."""
        work.keys.append(code)
        return f"did {code} for {amount}"

    def run(thread: str, amount: int) -> str:
        plan = planned([call("work_on", code="A1", amount=amount), "Done."])
        agent = create_agent(plan, [work_on], permissions=[allow("work_on")])
        return Desk(agent, checkpoints).run(thread_id=thread).trail[0]["observation"]

    assert run("a", 5) == "did A1 for 5"
    again = run("b", 5)
    assert again.startswith("already done on 2027-01-15 08:00 UTC in run ")
    assert again.endswith(": did A1 for 5")
    assert "already used for a call with other arguments" in run("c", 6)
    assert work.keys == ["A1"]


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_that_exits_has_failed(checkpoints: Checkpoints, door: DoorName) -> None:
    """`sys.exit` in a tool ends neither the run nor the process."""
    result = go(checkpoints, Work(SystemExit(3)).build(effect="read"), door=door)
    assert ("succeeded", "ERROR: SystemExit: 3") == (result.status, result.trail[0]["observation"])


def test_a_driver_that_is_cancelled_leaves_a_doubt(tmp_path: Path) -> None:
    """Whoever stops awaiting a run ends its tool in the middle: the effect is unknown, and is asked about."""
    begun: list[str] = []

    async def main() -> None:
        started = asyncio.Event()

        @tool(effect="write")
        async def work(code: str) -> str:
            """Do some work about an order, by its code."""
            begun.append(code)
            started.set()
            await asyncio.Event().wait()
            return code

        agent = create_agent(planned([DO, "Done."]), [work], permissions=[allow("work")])
        with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
            runs = Runs(agent, checkpoints)
            events = runs.stream("Do it.", thread_id="t")

            async def follow() -> None:
                async for _ in events:
                    pass

            following = asyncio.ensure_future(follow())
            await started.wait()
            following.cancel()
            with pytest.raises(asyncio.CancelledError):
                await following
            (run,) = await runs.list()
            assert ["unknown"] == [row.status for row in checkpoints.ledger.effects.of_run(run.id)]
            (result,) = await runs.recover()
            assert ["outcome_unknown"] == [asked.question for asked in result.approvals]

    asyncio.run(main())
    assert begun == ["A1"]


def test_no_call_outlives_the_runs_time(tmp_path: Path) -> None:
    """The tool's own limit is longer than what is left: the run's counts."""
    gate = Gate()

    @tool(effect="read", timeout=60)
    def work(code: str) -> str:
        """Look at an order, by its code."""
        gate.pass_through()
        return code

    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        result = go(checkpoints, work, limits=Limits(max_seconds=0.3))
    gate.open()
    assert ("stopped", "deadline") == (result.status, result.stop_reason)
    assert "timed out" in result.trail[0]["observation"]
