"""Final answers: checked, sent back with the reason, and never taken because a check went wrong."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.types import interrupt
from pydantic import BaseModel
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import Gate
from tests.world.till import Till

from loopwright import Checkpoints, Limits, ProposedAnswer, RunResult, Runs, StopReason, SyncRuns, create_agent
from loopwright.errors import ConfigurationError
from loopwright.graphs import change_agent
from loopwright.models.protocol import speak_json
from loopwright.testing import ScriptedModel, call, check_transcript

LOOK = call("look", order_id="A1")


class Total(BaseModel):
    """What is asked for."""

    euros: int
    note: str = "none"


def names_a1(answer: ProposedAnswer) -> str | None:
    """A check."""
    return None if "A1" in answer.text else "it does not name the order A1"


async def names_a1_later(answer: ProposedAnswer) -> str | None:
    """The same, awaited."""
    await asyncio.to_thread(str)
    return names_a1(answer)


def run(
    checkpoints: Checkpoints, turns: Sequence[Any], door: DoorName = "sync", **options: Any
) -> tuple[RunResult, ScriptedModel]:
    """Run a task over a script; all of it is said, and what is left is a transcript that every provider takes."""
    model = ScriptedModel(turns)
    result = Desk(create_agent(model, [Till().look()], **options), checkpoints, door).run("What about A1?")
    model.assert_done()
    check_transcript(result.messages)
    return result, model


@pytest.mark.parametrize("check", [names_a1, names_a1_later])
@pytest.mark.parametrize("door", DOORS)
def test_a_wrong_answer_goes_back_with_the_reason(
    checkpoints: Checkpoints, door: DoorName, check: Callable[..., Any]
) -> None:
    """The model may call tools again, and what was wrong stays with the run."""
    result, model = run(checkpoints, ["It is there.", LOOK, "A1 is there."], door, verify=check)
    assert ("succeeded", "answered", "A1 is there.") == (result.status, result.stop_reason, result.answer)
    assert (3, 1) == (result.usage.steps, result.usage.tool_calls)
    told = f"- {check.__name__}: it does not name the order A1"
    assert told in model.seen[1][-1].text
    wrong = {"by": check.__name__, "step": 1, "text": f"{check.__name__}: it does not name the order A1"}
    assert [wrong] == [*result.objections]
    assert "" == result.error


@pytest.mark.parametrize("door", DOORS)
def test_it_ends_when_no_retry_is_left(checkpoints: Checkpoints, door: DoorName) -> None:
    """With the newest answer, which is no success, and what was wrong with it."""
    result, _ = run(checkpoints, ["One.", "Two.", "Three."], door, verify=[names_a1])
    assert ("stopped", StopReason.UNVERIFIED, "Three.") == (result.status, result.stop_reason, result.answer)
    assert "the answer could not be verified: names_a1: it does not name the order A1" == result.error
    assert [1, 2, 3] == [objection["step"] for objection in result.objections]


def test_without_retries_the_first_answer_counts(checkpoints: Checkpoints) -> None:
    """Also on the next run of the thread, which counts anew."""
    for _ in range(2):
        result, _ = run(checkpoints, ["One."], verify=names_a1, answer_retries=0)
        assert (StopReason.UNVERIFIED, 1) == (result.stop_reason, len(result.objections))


def test_all_that_is_wrong_is_told_at_once(checkpoints: Checkpoints) -> None:
    """One retry for several checks."""

    def is_short(answer: ProposedAnswer) -> bool:
        return len(answer.text) < 20

    result, model = run(checkpoints, ["It is there, as far as I see.", "A1 is there."], verify=[names_a1, is_short])
    assert "- names_a1: it does not name the order A1\n- is_short: it says no\n" in model.seen[1][-1].text
    assert ["names_a1, is_short"] == [objection["by"] for objection in result.objections]


def raises(_answer: ProposedAnswer) -> None:
    """A check with a fault."""
    raise KeyError("price")


async def raises_later(_answer: ProposedAnswer) -> None:
    """The same, awaited."""
    await asyncio.to_thread(str)
    raise KeyError("price")


def pauses(_answer: ProposedAnswer) -> None:
    """A check that would ask somebody."""
    interrupt("Is it good?")


def leaves(_answer: ProposedAnswer) -> None:
    """A check that wants to end the process."""
    raise SystemExit(3)


async def leaves_later(_answer: ProposedAnswer) -> None:
    """The same, awaited."""
    await asyncio.to_thread(str)
    raise SystemExit(3)


async def gives_up_later(_answer: ProposedAnswer) -> None:
    """A check in which something is cancelled."""
    raise asyncio.CancelledError


def counts(_answer: ProposedAnswer) -> int:
    """A check whose author thought of C."""
    return 1


def says_no(_answer: ProposedAnswer) -> bool:
    """A check that nothing passes."""
    return False


def returns_what_is_awaited(answer: ProposedAnswer) -> Any:
    """A plain function around an async one."""
    return names_a1_later(answer)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(
    ("check", "told"),
    [
        (raises, "raises: it failed: KeyError: 'price'"),
        (raises_later, "raises_later: it failed: KeyError: 'price'"),
        (pauses, "pauses: it failed: GraphInterrupt"),
        (leaves, "leaves: it failed: "),
        (leaves_later, "leaves_later: it failed: "),
        (gives_up_later, "gives_up_later: it failed: "),
        (counts, "counts: it returned a int"),
        (returns_what_is_awaited, "returns_what_is_awaited: it does not name the order A1"),
    ],
)
def test_a_check_that_fails_lets_nothing_pass(
    checkpoints: Checkpoints, door: DoorName, check: Callable[..., Any], told: str
) -> None:
    """Whatever it does, the run ends, and names the check."""
    result, _ = run(checkpoints, ["It is there.", "It is."], door, verify=check, answer_retries=1)
    assert ("stopped", StopReason.UNVERIFIED, ()) == (result.status, result.stop_reason, result.approvals)
    assert told in result.error


@pytest.mark.parametrize("door", DOORS)
def test_a_check_that_hangs_is_given_up(checkpoints: Checkpoints, door: DoorName) -> None:
    """Sync or async, it has its time, and has not passed."""
    let_go = threading.Event()

    def hangs(_answer: ProposedAnswer) -> None:
        let_go.wait(30)

    async def hangs_later(_answer: ProposedAnswer) -> None:
        await asyncio.Event().wait()

    options: dict[str, Any] = {"verify_seconds": 0.05, "answer_retries": 0}
    result, _ = run(checkpoints, ["It is there."], door, verify=[hangs, hangs_later], **options)
    let_go.set()
    assert StopReason.UNVERIFIED == result.stop_reason
    assert result.error.endswith("hangs: it was not done after 0.05 s; hangs_later: it was not done after 0.05 s")


def test_a_blocking_check_blocks_no_loop(checkpoints: Checkpoints) -> None:
    """While it waits, the loop that it was called from lets it go on."""
    gate = Gate()

    def waits(_answer: ProposedAnswer) -> None:
        gate.pass_through()

    async def open_it() -> None:
        await asyncio.to_thread(gate.wait_until_reached)
        gate.open()

    async def main() -> RunResult:
        agent = create_agent(ScriptedModel(["It is there."]), [], verify=waits)
        async with Runs(agent, checkpoints) as runs:
            result, _ = await asyncio.gather(runs.run("What about A1?", thread_id="t"), open_it())
            return result

    assert StopReason.ANSWERED == asyncio.run(main()).stop_reason


def test_what_a_check_sees_is_a_copy(checkpoints: Checkpoints) -> None:
    """All that it needs is there; whatever it does to it, neither the run nor the next check sees it."""

    def spoils(answer: ProposedAnswer) -> None:
        assert ("What about A1?", answer.text) == (answer.task, answer.messages[-1].text)
        assert ["look"] == [entry["tool"] for entry in answer.trail]
        answer.run["status"] = "succeeded"
        answer.run["retries"] = -9
        answer.trail[0]["args"].clear()
        answer.messages[0].content = "Pay everything."
        answer.output.euros = 9

    def sees_nothing_of_it(answer: ProposedAnswer) -> bool:
        clean = (answer.run["status"], answer.trail[0]["args"], answer.messages[0].text, answer.output.euros)
        return clean == ("running", {"order_id": "A1"}, "What about A1?", 3)

    verify = [spoils, sees_nothing_of_it]
    result, _ = run(checkpoints, [LOOK, '{"euros": 3}'], verify=verify, response_format=Total)
    assert (StopReason.ANSWERED, Total(euros=3)) == (result.stop_reason, result.output)
    assert ({"order_id": "A1"}, "What about A1?") == (result.trail[0]["args"], result.messages[0].text)


@pytest.mark.parametrize("limit", ["max_steps", "max_tokens"])
def test_a_limit_comes_before_the_retries(checkpoints: Checkpoints, limit: str) -> None:
    """The run ends by the limit, with the answer that did not pass as the best so far; it is no success."""
    limits = Limits(max_steps=2) if limit == "max_steps" else Limits(max_tokens=130)
    model = ScriptedModel(["One.", "Two.", "Three."])
    agent = create_agent(model, [], verify=names_a1, limits=limits, answer_retries=10)
    result = Desk(agent, checkpoints).run()
    assert ("stopped", limit) == (result.status, result.stop_reason)
    assert result.answer in ("One.", "Two.")
    assert result.usage.steps <= 2


def test_a_check_has_no_more_time_than_the_run(checkpoints: Checkpoints) -> None:
    """What is left of the run's seconds bounds it too, and then the run is over by that limit."""
    let_go = threading.Event()

    def hangs(_answer: ProposedAnswer) -> None:
        let_go.wait(30)

    result, _ = run(checkpoints, ["It is there."], verify=hangs, limits=Limits(max_seconds=0.5))
    let_go.set()
    assert ("stopped", StopReason.DEADLINE, "It is there.") == (result.status, result.stop_reason, result.answer)
    assert ["hangs"] == [objection["by"] for objection in result.objections]


def test_last_words_are_not_checked(checkpoints: Checkpoints) -> None:
    """They end a run that gave up, so that nobody takes them for an answer."""
    turns = ["One.", "I found nothing."]
    options: dict[str, Any] = {"limits": Limits(max_steps=2), "wrap_up": True, "response_format": Total}
    result, model = run(checkpoints, turns, verify=names_a1, **options)
    assert (StopReason.MAX_STEPS, "I found nothing.", None) == (result.stop_reason, result.answer, result.output)
    assert "JSON schema" not in model.seen[1][0].text


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_has_its_form(checkpoints: Checkpoints, door: DoorName) -> None:
    """The model is told the form, reads what did not fit, and the value comes back typed."""
    turns = [LOOK, "3 euros", '{"euros": "three"}', 'So: {"euros": 3}']
    result, model = run(checkpoints, turns, door, system_prompt="Be brief.", response_format=Total)
    assert ("succeeded", 'So: {"euros": 3}', Total(euros=3)) == (result.status, result.answer, result.output)
    assert model.seen[0][0].text.startswith("Be brief.\n\nYour final answer is one JSON object")
    assert '"euros"' in model.seen[0][0].text
    assert "no JSON objects" in model.seen[2][-1].text
    assert "euros: Input should be a valid integer" in model.seen[3][-1].text
    assert [{}, {}, {}, {}] == model.told


def test_the_form_comes_before_the_checks(checkpoints: Checkpoints) -> None:
    """A check sees typed values only."""

    def is_small(answer: ProposedAnswer) -> str | None:
        return None if answer.output.euros < 5 else f"{answer.output.euros} euros are too many"

    result, _ = run(checkpoints, ["9", '{"euros": 9}', '{"euros": 4}'], verify=is_small, response_format=Total)
    assert ["response_format", "is_small"] == [objection["by"] for objection in result.objections]
    assert Total(euros=4) == result.output


def test_no_output_without_success(checkpoints: Checkpoints) -> None:
    """An answer that fits its form and passes no check is text, and no value that a program might take."""
    turns = ['{"euros": 9}']
    result, _ = run(checkpoints, turns, verify=says_no, response_format=Total, answer_retries=0)
    assert (StopReason.UNVERIFIED, '{"euros": 9}', None) == (result.stop_reason, result.answer, result.output)


def test_the_output_is_kept_as_plain_data(checkpoints: Checkpoints) -> None:
    """Another process reads it with the class, and the command line without."""
    result, model = run(checkpoints, ['{"euros": 3}'], response_format=Total)
    typed = SyncRuns(create_agent(model, [Till().look()], response_format=Total), checkpoints).get(result.run_id)
    plain = SyncRuns(create_agent(model, [Till().look()]), checkpoints).get(result.run_id)
    assert (Total(euros=3), {"euros": 3, "note": "none"}) == (typed.output, plain.output)


@pytest.mark.parametrize("door", DOORS)
def test_by_the_json_protocol(checkpoints: Checkpoints, door: DoorName) -> None:
    """The answer of a decision is read the same way, as a text or as the object that it is."""
    turns = [
        '{"type": "tool", "tool": "look", "input": {"order_id": "A1"}}',
        '{"type": "final", "answer": "3"}',
        '{"type": "final", "answer": {"euros": 3}}',
    ]
    model = ScriptedModel(turns)
    agent = create_agent(speak_json(model), [Till().look()], response_format=Total)
    result = Desk(agent, checkpoints, door).run()
    model.assert_done()
    check_transcript(result.messages)
    assert (Total(euros=3), 3) == (result.output, result.usage.steps)


def test_a_plain_invoke_is_judged_too() -> None:
    """Without saver and ledger, by the graph itself."""
    model = ScriptedModel(["It is there.", "A1 is there."])
    agent = create_agent(model, [], verify=names_a1)
    state: Any = agent.invoke({"messages": [HumanMessage("What about A1?")]})  # pyright: ignore[reportUnknownMemberType]  # as in graphs/agent.py
    assert ("answered", "A1 is there.", 1) == (state["run"]["reason"], state["run"]["answer"], state["run"]["retries"])


def test_another_model_keeps_the_rules(checkpoints: Checkpoints) -> None:
    """Checks and form belong to the agent."""
    agent = change_agent(create_agent(ScriptedModel([]), [], verify=names_a1), model=ScriptedModel(["It.", "A1."]))
    assert 1 == len(Desk(agent, checkpoints).run().objections)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"verify": 3}, "verify is 3"),
        ({"response_format": int}, "response_format is"),
        ({"reflect": 1}, "reflect is 1"),
        ({"answer_retries": None}, "answer_retries is None"),
        ({"verify_seconds": "1"}, "verify_seconds is '1'"),
        ({"verifyy": names_a1}, "no option verifyy"),
    ],
)
def test_a_mistake_fails_when_the_agent_is_built(options: dict[str, Any], match: str) -> None:
    """By the option's name."""
    with pytest.raises(ConfigurationError, match=match):
        create_agent(ScriptedModel([]), [], **options)
