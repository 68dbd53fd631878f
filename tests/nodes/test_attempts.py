"""The real clients against servers that fail: what is tried again, what goes to another model, and what it costs."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from tests.world.till import Till
from tests.world.wires import ANTHROPIC, CLAUDE, GPT, KEY, OPENAI, every_wire, opened

from loopwright import (
    EventKind,
    Limits,
    Price,
    Retry,
    RunResult,
    Runs,
    RunStatus,
    StopReason,
    SyncRuns,
    allow,
    aopen_checkpoints,
    approve,
    check,
    create_agent,
    open_checkpoints,
    open_model,
    tool,
)
from loopwright.checkpoints import Attempt, Clock
from loopwright.errors import ConfigurationError
from loopwright.graphs import Agent, change_agent
from loopwright.models import Cure
from loopwright.nodes.attempts import COOLDOWN, LONGEST_PAUSE, Failed, order_of, wait_before_next
from loopwright.state import no_usage
from loopwright.testing import Failure, ManualClock, Reply, ScriptedModel, call, check_transcript
from loopwright.testing.scripted_server import ScriptedServer, Turn

SOON = Retry(tries=3, base=0.001)
LOOK = [("look", '{"order_id": "A1"}')]
DOWN = Failure(503, "The server is overloaded.")


@dataclass(frozen=True)
class Outcome:
    """What came of a run, and what the ledger has of its attempts."""

    result: RunResult
    attempts: Sequence[Attempt]

    def names(self) -> list[tuple[str, str]]:
        """Return which model failed, and which one was asked then."""
        return [(failure["model"], failure["next"]) for failure in self.result.failures]


def blocking(agent: Agent, clock: Clock = time.time) -> Outcome:
    """Run one task in this thread."""
    with open_checkpoints("memory:", clock=clock) as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Refund A1.", thread_id="t")
        return Outcome(result, checkpoints.ledger.spend.of_run(result.run_id))


def awaited(agent: Agent, clock: Clock = time.time) -> Outcome:
    """Run one task in an event loop."""

    async def main() -> Outcome:
        async with await aopen_checkpoints("memory:", clock=clock) as checkpoints, Runs(agent, checkpoints) as runs:
            result = await runs.run("Refund A1.", thread_id="t")
            return Outcome(result, checkpoints.ledger.spend.of_run(result.run_id))

    return asyncio.run(main())


Door = Callable[..., Outcome]
both_doors = pytest.mark.parametrize("door", [blocking, awaited])


def agent_of(models: Sequence[BaseChatModel], **options: Any) -> Agent:
    """Build an agent that looks and pays."""
    till = Till()
    given: dict[str, Any] = {"retry": SOON, "permissions": [allow("pay")], **options}
    return create_agent(models, [till.look(), till.pay()], **given)


def serve(stack: ExitStack, wire: dict[str, Any], turns: Sequence[Turn], **quirks: Any) -> ScriptedServer:
    """Start a server for the time of the block."""
    server: ScriptedServer = stack.enter_context(wire["server"](turns, **quirks))
    return server


@every_wire
@both_doors
@pytest.mark.parametrize("status", [429, 503])
def test_what_can_pass_is_asked_again_in_the_same_step(wire: dict[str, Any], door: Door, status: int) -> None:
    """Two failures and a reply are one step of three attempts, each with its row; the failed ones cost nothing."""
    failures = [Failure(status, "Too busy."), Failure(status, "Too busy.", retry_after=0.002)]
    with wire["server"]([*failures, Reply(calls=LOOK), "Done."]) as server:
        came = door(agent_of([opened(wire, server)]))
    server.assert_done()
    assert (RunStatus.SUCCEEDED, "Done.", "") == (came.result.status, came.result.answer, came.result.error)
    assert (2, 4) == (came.result.usage.steps, came.result.usage.model_calls)
    assert [(1, 1, 0), (1, 2, 0)] == [(one.step, one.number, one.cost_nano) for one in came.attempts[:2]]
    assert all(one.settled for one in came.attempts)
    assert [1, 1] == [failure["step"] for failure in came.result.failures]
    assert f"Error code: {status}" in came.result.failures[0]["error"]


@pytest.mark.parametrize(("wire", "door"), [(GPT, blocking), (CLAUDE, awaited)])
@pytest.mark.parametrize(
    "failure",
    [
        Failure(400, "Unsupported parameter: 'x' is not supported with this model."),
        Failure(401, f"Incorrect API key provided: {KEY}."),
        Failure(403, "No access."),
        Failure(404, "No such model."),
        Failure(422, "Unprocessable."),
        Failure(429, "You exceeded your current quota.", "insufficient_quota"),
    ],
    ids=lambda failure: str(failure.status),
)
def test_what_cannot_pass_is_asked_once(wire: dict[str, Any], door: Door, failure: Failure) -> None:
    """The run ends with the server's words, without the key."""
    with wire["server"]([failure]) as server:
        came = door(agent_of([opened(wire, server)]))
    server.assert_done()
    assert (RunStatus.FAILED, StopReason.ERROR) == (came.result.status, came.result.stop_reason)
    assert failure.message.replace(KEY, "***") in came.result.error
    assert KEY not in str(came)
    assert (1, Decimal(0)) == (came.result.usage.model_calls, came.result.usage.cost)


def broken_call(**fields: Any) -> AIMessage:
    """Return what a client of one's own may return: a message whose fields nobody has checked."""
    return AIMessage("I look.").model_copy(update=fields)


@both_doors
@pytest.mark.parametrize(
    "reply",
    [
        broken_call(tool_calls=None),
        broken_call(tool_calls=[{"name": 5, "args": {}, "id": 7}]),
    ],
    ids=["calls", "name"],
)
def test_a_reply_that_cannot_be_read_is_asked_for_again(door: Door, reply: AIMessage) -> None:
    """It counts as its worst case, and ends no run by an exception."""
    model = ScriptedModel([reply, "Done."])
    came = door(agent_of([model]))
    assert ("Done.", 2) == (came.result.answer, came.result.usage.model_calls)
    assert came.result.usage.output_tokens > 10_000
    assert [False, True] == [one.settled for one in came.attempts]


@both_doors
def test_arguments_that_are_no_object_are_told(door: Door) -> None:
    """Also where a client calls them a valid call."""
    model = ScriptedModel([broken_call(tool_calls=[{"name": "look", "args": [1], "id": "c"}]), "Done."])
    came = door(agent_of([model]))
    assert "no JSON object" in came.result.trail[0]["observation"]


@both_doors
def test_a_programming_error_is_no_reason_to_ask_again(door: Door) -> None:
    """Neither the same model nor another one."""
    first, second = ScriptedModel([TypeError("a bug")]), ScriptedModel([])
    came = door(agent_of([first, second]))
    assert (StopReason.ERROR, "TypeError: a bug") == (came.result.stop_reason, came.result.error)
    assert [] == second.seen


@both_doors
@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("failures", "asked"),
    [
        ([DOWN, DOWN, DOWN], 3),
        ([Failure(429, "You exceeded your current quota.", "insufficient_quota")], 1),
        ([Failure(400, "This model's maximum context length is 10 tokens.", "context_length_exceeded")], 1),
        ([Failure(400, "Unsupported value: 'x' does not support that with this model.")], 1),
    ],
    ids=["overload", "quota", "window", "unsupported"],
)
def test_where_one_model_cannot_reply_the_next_one_does(
    door: Door, failures: list[Failure], asked: int, *, streaming: bool
) -> None:
    """OpenAI's fails, Anthropic's answers, and back again after its cooldown: each row has its model's price."""
    stream = {"streaming": True, "stream_usage": True} if streaming else {}
    clock = ManualClock()

    @tool(effect="read")
    def look(order_id: str) -> str:
        """Look up what was paid for an order; takes a minute."""
        clock.advance(COOLDOWN)
        return f"{order_id} is 20 USD"

    with ExitStack() as stack:
        first = serve(stack, OPENAI, [*failures, Reply("Last words.", tokens=(300, 20))])
        second = serve(stack, ANTHROPIC, [Reply("I look.", LOOK, reasoning="Hm.", tokens=(1000, 100))])
        models = [opened({**OPENAI, "options": stream}, first), opened({**ANTHROPIC, "options": stream}, second)]
        agent = create_agent(models, [look, Till().pay()], retry=SOON)
        came = door(agent, clock)
    first.assert_done()
    second.assert_done()
    assert (RunStatus.SUCCEEDED, "Last words.") == (came.result.status, came.result.answer)
    assert (2, asked + 2) == (came.result.usage.steps, came.result.usage.model_calls)
    assert ("gpt-5-mini", "claude-haiku-4-5") == came.names()[-1]
    haiku, mini = came.attempts[asked], came.attempts[asked + 1]
    assert 1000 * 1_000 + 100 * 5_000 == haiku.cost_nano
    assert 300 * 250 + 20 * 2_000 == mini.cost_nano
    assert came.result.usage.cost == Decimal(haiku.cost_nano + mini.cost_nano) / 10**9
    check_transcript(came.result.messages)
    offered = {tool["function"]["name"] for tool in first.requests[0].body["tools"]}
    assert offered == {tool["name"] for tool in second.requests[0].body["tools"]} == {"look", "pay"}


@both_doors
def test_a_model_that_is_down_is_asked_once_a_run_and_not_once_a_step(door: Door) -> None:
    """Of three steps the first alone tries it; the price and the cap of each later attempt are the other one's."""
    limits = Limits(max_tokens=6_000, max_cost=Decimal("0.02"))
    with ExitStack() as stack:
        first = serve(stack, OPENAI, [DOWN, DOWN, DOWN])
        second = serve(stack, ANTHROPIC, [Reply(calls=LOOK, tokens=(900, 50)), Reply(calls=LOOK), "Done."])
        came = door(agent_of([opened(GPT, first), opened(CLAUDE, second)], limits=limits))
    first.assert_done()
    second.assert_done()
    assert ("Done.", 3, 6) == (came.result.answer, came.result.usage.steps, came.result.usage.model_calls)
    assert [1, 1, 1, 1, 2, 3] == [one.step for one in came.attempts]
    assert 900 * 1_000 + 50 * 5_000 == came.attempts[3].cost_nano
    assert all(0 < request.body["max_tokens"] < 6_000 for request in second.requests)


@both_doors
def test_a_model_that_was_down_is_asked_where_no_other_can_reply(door: Door) -> None:
    """The second goes down during the first one's cooldown: the first is asked again, and the run goes on with it."""
    refused = ConnectionRefusedError("refused")
    first = ScriptedModel([refused, "I am back."])
    second = ScriptedModel([call("look", order_id="A1"), refused])
    came = door(agent_of([first, second], retry=Retry(tries=1)))
    first.assert_done()
    second.assert_done()
    assert ("I am back.", 4) == (came.result.answer, came.result.usage.model_calls)


def test_what_is_known_of_models_outlives_a_pause_and_ends_with_the_run() -> None:
    """Whoever carries it on asks the one that works at once; the next run begins with the first."""
    with ExitStack() as stack:
        first = serve(stack, OPENAI, [DOWN, "And hello."])
        second = serve(stack, ANTHROPIC, [call("pay", order_id="A1", amount=5), "Paid."])
        models = [opened(GPT, first), opened(CLAUDE, second)]
        agent = agent_of(models, permissions=[], retry=Retry(tries=1))
        with open_checkpoints("memory:") as checkpoints:
            waiting = SyncRuns(agent, checkpoints).run("Pay A1.", thread_id="t")
            runs = SyncRuns(agent, checkpoints)
            runs.decide(waiting.approvals[0].id, approve(), by="ana")
            assert "Paid." == runs.wait(waiting.run_id).answer
            assert 1 == len(first.requests)
            assert "And hello." == runs.run("Hello.", thread_id="t").answer


@pytest.mark.parametrize(
    ("cooldowns", "count", "order"),
    [
        ([], 3, [0, 1, 2]),
        ([101.0, 0.0, 0.0], 3, [1, 2, 0]),
        ([102.0, 101.0, 0.0], 3, [2, 1, 0]),
        ([102.0, 101.0], 2, [1, 0]),
        ([100.0, 101.0], 2, [0, 1]),
        ([101.0, 0.0], 3, [0, 1, 2]),
    ],
)
def test_the_order_in_which_models_are_asked(cooldowns: list[float], count: int, order: list[int]) -> None:
    """Those with a cooldown last, whose ends first before the others; another list of models begins anew."""
    assert order == order_of(cooldowns, count, 100.0)


@both_doors
def test_refusals_and_filters_are_not_taken_elsewhere(door: Door) -> None:
    """Another model is no way around a refusal."""
    with ExitStack() as stack:
        refuses = serve(stack, OPENAI, [Reply(refusal="I will not.")])
        other = serve(stack, ANTHROPIC, [])
        models = [opened(GPT, refuses), opened(CLAUDE, other)]
        came = door(agent_of(models))
    assert (StopReason.REFUSED, "I will not.") == (came.result.stop_reason, came.result.answer)
    assert [] == other.requests


@both_doors
def test_when_all_fail_the_last_words_are_the_last_ones(door: Door) -> None:
    """The run ends with the newest error; all attempts are kept, and the log has each."""
    with ExitStack() as stack:
        first, second = serve(stack, OPENAI, [DOWN, DOWN]), serve(stack, ANTHROPIC, [Failure(401, "No such key.")])
        models = [opened(GPT, first), opened(CLAUDE, second)]
        came = door(agent_of(models, retry=Retry(tries=2, base=0.001)))
    assert StopReason.ERROR == came.result.stop_reason
    assert "No such key." in came.result.error
    names = [("gpt-5-mini", "gpt-5-mini"), ("gpt-5-mini", "claude-haiku-4-5"), ("claude-haiku-4-5", "")]
    assert names == came.names()
    assert [0, 0, 0] == [one.cost_nano for one in came.attempts]


@both_doors
def test_a_reply_that_got_lost_counts_as_its_worst_case(door: Door) -> None:
    """The provider may have written it to its end: the row stays open, at what was reserved."""
    price = Price(Decimal(1), Decimal(10))
    model = ScriptedModel([ConnectionResetError("reset"), "Done."])
    limits = Limits(max_tokens=50_000, max_cost=Decimal(1))
    came = door(create_agent(model, [], retry=SOON, price=price, limits=limits))
    lost, answered = came.attempts
    assert (False, True) == (lost.settled, answered.settled)
    assert lost.tokens.output > 10_000
    assert came.result.usage.cost == Decimal(lost.cost_nano + answered.cost_nano) / 10**9
    assert came.result.usage.estimated
    (left,) = [told["max_tokens"] for told in model.told[1:]]
    assert left <= 50_000 - lost.tokens.input - lost.tokens.output


@both_doors
def test_no_attempt_is_made_that_could_pass_a_limit(door: Door) -> None:
    """Once lost replies have used the limit up, the run stops with it, and says what had failed."""
    model = ScriptedModel([ConnectionResetError("reset")])
    came = door(create_agent(model, [], retry=SOON, limits=Limits(max_tokens=20_000)))
    assert (RunStatus.STOPPED, StopReason.MAX_TOKENS) == (came.result.status, came.result.stop_reason)
    assert "ConnectionResetError: reset" == came.result.error
    assert came.result.usage.tokens <= 20_000
    model.assert_done()


@every_wire
@both_doors
def test_an_attempt_that_takes_too_long_is_given_up(wire: dict[str, Any], door: Door) -> None:
    """Its late reply is dropped, its worst case counts, and the next model answers."""
    with ExitStack() as stack:
        slow = serve(stack, wire, [Reply("Too late.", pause=0.4)])
        quick = serve(stack, OPENAI, ["In time."])
        models = [opened(wire, slow), opened(GPT, quick)]
        came = door(agent_of(models, retry=Retry(tries=1), model_timeout=0.2))
    assert "In time." == came.result.answer
    assert "no reply within 0.2 s" == came.result.failures[0]["error"]
    assert [False, True] == [one.settled for one in came.attempts]


@both_doors
def test_time_that_is_up_ends_the_run_whatever_could_follow(door: Door) -> None:
    """`max_seconds` is no reason to ask another model."""
    with ExitStack() as stack:
        slow = serve(stack, OPENAI, [Reply("Too late.", pause=0.5)])
        models = [opened(GPT, slow), ScriptedModel([])]
        came = door(agent_of(models, limits=Limits(max_seconds=0.2), model_timeout=30))
    assert StopReason.DEADLINE == came.result.stop_reason


@pytest.mark.parametrize(
    ("cure", "tried", "asked", "left", "wait"),
    [
        (Cure.AGAIN, 1, 0.0, None, 1.25),
        (Cure.AGAIN, 2, 0.0, None, 2.5),
        (Cure.AGAIN, 3, 0.0, None, 5.0),
        (Cure.AGAIN, 4, 0.0, None, None),
        (Cure.AGAIN, 1, 7.0, None, 7.0),
        (Cure.AGAIN, 1, LONGEST_PAUSE + 1, None, None),
        (Cure.AGAIN, 1, 0.0, 1.2, None),
        (Cure.AGAIN, 1, 7.0, 6.0, None),
        (Cure.AGAIN, 1, 7.0, 8.0, 7.0),
        (Cure.ELSEWHERE, 1, 0.0, None, None),
        (Cure.NONE, 1, 0.0, None, None),
    ],
)
def test_how_long_is_waited(cure: Cure, tried: int, asked: float, left: float | None, wait: float | None) -> None:
    """Doubling, with chance; as long as the provider asks for; never over the time that is left."""
    failed = Failed(ValueError("no"), "no", cure, no_usage(), 1)
    assert wait == wait_before_next(Retry(tries=4, base=1.0), failed, tried, asked, left, 0.5)


def test_the_agents_own_errors_can_pass_too() -> None:
    """`Retry(on=…)` names what a client of one's own raises."""
    failed = Failed(ValueError("busy"), "busy", Cure.NONE, no_usage(), 1)
    assert wait_before_next(Retry(base=0.5, on=(ValueError,)), failed, 1, 0.0, None, 0.0) == 0.5
    model = ScriptedModel([ValueError("busy"), "Done."])
    assert "Done." == blocking(create_agent(model, [], retry=Retry(base=0.001, on=(ValueError,)))).result.answer


def test_a_cancelled_run_waits_no_longer() -> None:
    """Who cancels during a pause need not wait for its end; no further attempt is made."""
    model = ScriptedModel([ConnectionRefusedError("refused")])
    agent = create_agent(model, [], retry=Retry(tries=2, base=30.0))

    async def main() -> RunResult:
        async with await aopen_checkpoints("memory:") as checkpoints, Runs(agent, checkpoints) as runs:
            async for event in runs.stream("Do it.", thread_id="t", tokens=True):
                if event.kind is EventKind.FAILED_ATTEMPT:
                    await runs.cancel(event.run_id, by="ana")
                if event.result is not None:
                    return event.result
        raise AssertionError("no result")

    result = asyncio.run(main())
    assert StopReason.CANCELLED == result.stop_reason
    assert result.usage.seconds < 20
    model.assert_done()


def test_each_failed_attempt_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """To the log, and to whoever follows: after the step, or at once where tokens are asked for."""
    caplog.set_level(logging.WARNING)
    for tokens in (False, True):
        model = ScriptedModel([ConnectionRefusedError("refused"), call("look", order_id="A1"), "Done."])
        with open_checkpoints("memory:") as checkpoints:
            runs = SyncRuns(agent_of([model]), checkpoints)
            events = [*runs.stream("Do it.", thread_id="t", tokens=tokens)]
        told = [event.failure for event in events if event.failure is not None]
        assert [("scripted", "scripted", 1)] == [(one["model"], one["next"], one["step"]) for one in told]
        kinds = [event.kind for event in events if event.kind is not EventKind.TEXT]
        assert kinds[:3] == [EventKind.BEGAN, EventKind.FAILED_ATTEMPT, EventKind.DECIDED]
    assert caplog.text.count("scripted failed: ConnectionRefusedError: refused; again in") == 2


def test_several_models_are_checked_when_the_agent_is_built() -> None:
    """Each is opened, bound and priced; what is set up wrongly is said at once."""
    price = Price(Decimal(1), Decimal(2))
    limits = Limits(max_cost=Decimal(1))
    known = open_model("openai:gpt-5-mini", api_key=KEY)
    with pytest.raises(ConfigurationError, match="price of 'scripted' is not known"):
        create_agent([known, ScriptedModel([])], [], limits=limits)
    with pytest.raises(ConfigurationError, match="one for 2 models"):
        create_agent([known, ScriptedModel([])], [], limits=limits, price=price)
    with pytest.raises(ConfigurationError, match="names 'gpt-6', which is no model of this agent"):
        create_agent([known, ScriptedModel([])], [], price={"gpt-6": price})
    with pytest.raises(ConfigurationError, match="give a name such as"):
        create_agent([], [])
    with pytest.raises(ConfigurationError, match="give a name such as"):
        create_agent([known, 3], [])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]  # wrong on purpose
    with pytest.raises(ConfigurationError, match="model_timeout is 0"):
        create_agent(known, [], model_timeout=0)
    with pytest.raises(ConfigurationError, match="retry is 3"):
        create_agent(known, [], retry=3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # wrong on purpose
    agent = create_agent([known, ScriptedModel([])], [], limits=limits, price={"scripted": price})
    assert ["gpt-5-mini", "scripted"] == [one.model_name for one in agent.spec.by_model]
    assert "asks gpt-5-mini, then scripted, up to 3 times each" in str(check(agent))


def test_another_model_takes_the_place_of_all() -> None:
    """`change_agent` keeps no fallback of the old model, and can bring several; limits reach each of them."""
    agent = create_agent([ScriptedModel([]), ScriptedModel([])], [])
    assert 1 == len(change_agent(agent, model=ScriptedModel([])).spec.by_model)
    two = change_agent(agent, model=[ScriptedModel([]), ScriptedModel(["Done."])], limits=Limits(max_steps=3))
    assert [3, 3] == [one.limits.max_steps for one in two.spec.by_model]
    changed = change_agent(agent, limits=Limits(max_steps=2))
    assert [2, 2] == [one.limits.max_steps for one in changed.spec.by_model]
    with pytest.raises(ConfigurationError, match="price of 'scripted' is not known"):
        change_agent(agent, limits=Limits(max_cost=Decimal(1)))


def test_the_cap_goes_out_under_each_clients_own_name() -> None:
    """OpenAI's newer models take `max_completion_tokens`, Anthropic's `max_tokens`."""
    with ExitStack() as stack:
        first = serve(stack, OPENAI, [Failure(404, "No such model.")])
        second = serve(stack, ANTHROPIC, ["Done."])
        models = [opened(GPT, first), opened(CLAUDE, second)]
        blocking(agent_of(models, limits=Limits(max_tokens=4000)))
    assert first.requests[0].body["max_completion_tokens"] < 4000
    assert second.requests[0].body["max_tokens"] < 4000


@every_wire
def test_the_clients_own_retries_are_off_unless_asked_for(wire: dict[str, Any]) -> None:
    """Each attempt is one that was reserved: a client that tries again by itself would spend unseen."""
    with wire["server"]([DOWN]) as server:
        model = opened(wire, server)
        blocking(agent_of([model], retry=Retry(tries=1)))
    server.assert_done()
    assert 0 == getattr(model, "max_retries", None)
    assert 2 == getattr(opened(wire, server, max_retries=2), "max_retries", None)


def test_what_another_provider_thought_is_told_as_text() -> None:
    """A thread that one provider's model began goes on with another's, both ways, and each takes all of it."""
    with ExitStack() as stack:
        claude = serve(stack, ANTHROPIC, [Reply("I look.", LOOK, reasoning="Hm."), "Found."])
        gpt = serve(stack, OPENAI, ["And again.", "Done."])
        agents = [
            agent_of([opened({**wire, "options": {}}, server)]) for wire, server in ((ANTHROPIC, claude), (OPENAI, gpt))
        ]
        with open_checkpoints("memory:") as checkpoints:
            for agent in (agents[0], agents[1]):
                result = SyncRuns(agent, checkpoints, reference="one").run("Where is A1?", thread_id="t")
    claude.assert_done()
    assert [] == gpt.refused
    assert "And again." == result.answer
    assert "I look." == gpt.requests[0].body["messages"][1]["content"]
    (said,) = [m for m in result.messages if isinstance(m, AIMessage) and m.tool_calls]
    assert isinstance(said.content, list)
