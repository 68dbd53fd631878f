"""Every way in which a run can end, and what its result then says."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Agent, Checkpoints, Limits, Price, RunStatus, StopReason, allow, create_agent, tool
from loopwright.testing import ScriptedModel, call, check_transcript

ANY = Decimal(1)
LOOKS = [call("look", order_id=f"A{number}") for number in range(50)]


def reply(
    text: str = "", *, calls: Any = (), finish: str = "stop", tokens: tuple[int, int] = (10, 5), **extra: Any
) -> Any:
    """One message of a model, as a provider would send it."""
    return AIMessage(
        text,
        tool_calls=[*calls],
        response_metadata={"finish_reason": finish},
        usage_metadata={"input_tokens": tokens[0], "output_tokens": tokens[1], "total_tokens": sum(tokens)},
        additional_kwargs=extra,
    )


@tool(effect="write", hands_over=True)
def escalate(why: str) -> str:
    """Hand the matter over to a person, who takes it from there."""
    return f"a person looks at it: {why}"


def build(turns: list[Any], **options: Any) -> Agent:
    """Build an agent that may look and pay without asking."""
    till = Till()
    rules = [allow("pay"), allow("escalate")]
    return create_agent(planned(turns), [till.look(), till.pay(), escalate], permissions=rules, **options)


ENDINGS: dict[str, tuple[Agent, StopReason, str]] = {
    "an answer": (build(["It is done."]), StopReason.ANSWERED, "It is done."),
    "an answer after work": (build([LOOKS[0], "It is done."]), StopReason.ANSWERED, "It is done."),
    "steps": (
        build([reply("Let me see.", calls=[{**LOOKS[0], "id": "c1"}]), *LOOKS], limits=Limits(max_steps=3)),
        StopReason.MAX_STEPS,
        "Let me see.",
    ),
    "no steps at all": (build(["no"], limits=Limits(max_steps=0)), StopReason.MAX_STEPS, ""),
    "tool calls": (build(LOOKS, limits=Limits(max_tool_calls=3)), StopReason.MAX_TOOL_CALLS, ""),
    "no tool calls at all": (build(LOOKS, limits=Limits(max_tool_calls=0)), StopReason.MAX_TOOL_CALLS, ""),
    "tokens": (build(LOOKS, limits=Limits(max_tokens=100)), StopReason.MAX_TOKENS, ""),
    "money": (
        build(LOOKS, limits=Limits(max_cost=Decimal("0.0001")), price=Price(ANY, ANY)),
        StopReason.MAX_COST,
        "",
    ),
    "time": (build(LOOKS, limits=Limits(max_seconds=0)), StopReason.DEADLINE, ""),
    "a loop": (build([LOOKS[0]]), StopReason.LOOP, ""),
    "a refusal": (build([reply(refusal="I cannot do that.")]), StopReason.REFUSED, "I cannot do that."),
    "a filter": (
        build([reply(finish="content_filter")]),
        StopReason.REFUSED,
        "The model's provider filtered the reply.",
    ),
    "nothing but silence": (build([reply()]), StopReason.EMPTY, ""),
    "cut replies": (build([reply("It is", finish="length")]), StopReason.TRUNCATED, "It is"),
    "a person takes over": (
        build([call("escalate", why="odd")]),
        StopReason.ESCALATED,
        "a person looks at it: odd",
    ),
    "a broken model": (build([ValueError("no connection")]), StopReason.ERROR, ""),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("agent", "reason", "answer"), ENDINGS.values(), ids=ENDINGS.keys())
def test_every_ending_has_one_shape(
    checkpoints: Checkpoints, agent: Agent, reason: StopReason, answer: str, door: DoorName
) -> None:
    """Status, reason, best answer so far, usage, trail, and a transcript that every provider takes; no exception."""
    result = Desk(agent, checkpoints, door).run()
    assert (reason.status, reason, answer) == (result.status, result.stop_reason, result.answer)
    assert bool(result.error) == (reason is StopReason.ERROR)
    check_transcript(result.messages)
    assert result.usage.tool_calls == sum(entry["outcome"] == "done" for entry in result.trail)
    assert result.approvals == ()
    (row,) = checkpoints.ledger.runs.list()
    assert (reason.status, reason, Decimal(row.cost_nano) / 10**9) == (row.status, row.reason, result.usage.cost)
    assert "ended" == checkpoints.ledger.log.records()[-1].event


@pytest.mark.parametrize(("agent", "reason", "_answer"), ENDINGS.values(), ids=ENDINGS.keys())
def test_after_every_ending_the_thread_goes_on(
    checkpoints: Checkpoints, agent: Agent, reason: StopReason, _answer: str
) -> None:
    """With a new task its counters begin at zero, and the model sees a valid transcript."""
    first = Desk(agent, checkpoints).run()
    next_agent = create_agent(ScriptedModel(["Now it is done."]), [Till().look(), Till().pay(), escalate])
    result = Desk(next_agent, checkpoints).run("And now?")
    assert (RunStatus.SUCCEEDED, "Now it is done.", 1) == (result.status, result.answer, result.usage.steps)
    check_transcript(result.messages)
    again = Desk(agent, checkpoints).wait(first.run_id)
    assert (reason.status, reason) == (again.status, again.stop_reason)


def test_an_answer_that_goes_over_a_limit_is_kept(checkpoints: Checkpoints) -> None:
    """It was paid for: the result is a success, and names the limit."""
    agent = build([reply("Long.", tokens=(500, 800))], limits=Limits(max_tokens=1000))
    result = Desk(agent, checkpoints).run()
    assert ("succeeded", "Long.", StopReason.MAX_TOKENS) == (result.status, result.answer, result.over_limit)


def test_unusable_replies_are_bounded_and_told(checkpoints: Checkpoints) -> None:
    """Each one counts as a step, and is followed by a nudge; after a usable one the count begins anew."""
    turns = [reply(), reply(), LOOKS[0], reply(" \n"), "Done."]
    model = ScriptedModel(turns)
    agent = create_agent(model, [Till().look()])
    result = Desk(agent, checkpoints).run()
    assert (5, "Done.") == (result.usage.steps, result.answer)
    assert ["human", "human", "human", "ai", "tool", "human", "ai"] == [message.type for message in result.messages]
    check_transcript(result.messages)
    model.assert_done()


def test_only_the_text_counts_as_an_answer(checkpoints: Checkpoints) -> None:
    """Also when it comes as blocks, some of which are no text."""
    blocks: Any = [{"type": "reasoning", "reasoning": "hm"}, {"type": "text", "text": " Done. "}]
    assert Desk(build([AIMessage(blocks)]), checkpoints).run().answer == "Done."
