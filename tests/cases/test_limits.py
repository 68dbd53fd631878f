"""Cases from public bug reports: a limit must not throw away the work (C23, C25)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.doors import Desk
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Checkpoints, Limits, StopReason, create_agent
from loopwright.testing import ScriptedModel, call, check_transcript

LOOKS = [call("look", order_id=str(number)) for number in range(400)]


@pytest.mark.parametrize("steps", [1, 3, 30, 100])
def test_c25_a_result_with_all_that_was_found(checkpoints: Checkpoints, steps: int) -> None:
    """At any size of limit ours strikes first; the thread goes on with a larger one."""
    till = Till()
    limits = Limits(max_steps=steps, max_tool_calls=None, max_tokens=None)
    result = Desk(create_agent(planned(LOOKS, calls=500), [till.look()], limits=limits), checkpoints).run()
    assert ("stopped", "max_steps", steps) == (result.status, result.stop_reason, result.usage.steps)
    assert len(result.messages) == 1 + 2 * steps
    assert len(result.trail) == len(till.looked) == steps
    check_transcript(result.messages)
    model = ScriptedModel([LOOKS[0], "Here it is."])
    further = Desk(create_agent(model, [till.look()]), checkpoints).run("Go on.")
    assert ("succeeded", "Here it is.") == (further.status, further.answer)
    check_transcript(further.messages)


def test_c25_the_final_text_crosses_the_limit(checkpoints: Checkpoints) -> None:
    """It was paid for: it is returned, and flagged."""
    usage: Any = {"input_tokens": 90, "output_tokens": 20, "total_tokens": 110}
    agent = create_agent(
        ScriptedModel([AIMessage("It is 4.", usage_metadata=usage)]), [], limits=Limits(max_tokens=100)
    )
    result = Desk(agent, checkpoints).run()
    assert ("It is 4.", StopReason.ANSWERED, StopReason.MAX_TOKENS, 110) == (
        result.answer,
        result.stop_reason,
        result.over_limit,
        result.usage.tokens,
    )


@pytest.mark.parametrize(("limit", "before"), [(6, 4), (2, 0), (0, 0)])
def test_c23_a_batch_cannot_walk_over_a_limit(checkpoints: Checkpoints, limit: int, before: int) -> None:
    """Those that fit run, in their order; the rest is answered, and the run stops. Nothing fits a limit of none."""
    till = Till()
    turns: list[Any] = [*LOOKS[:before], LOOKS[10:15]]
    agent = create_agent(ScriptedModel(turns), [till.look()], limits=Limits(max_tool_calls=limit))
    result = Desk(agent, checkpoints).run()
    ran = [*range(before), *range(10, 10 + limit - before)]
    assert [str(number) for number in ran] == sorted(till.looked, key=int)
    assert (StopReason.MAX_TOOL_CALLS, limit) == (result.stop_reason, result.usage.tool_calls)
    assert ["done"] * limit + ["not_run"] * (5 + before - limit) == [entry["outcome"] for entry in result.trail]
    check_transcript(result.messages)


def test_c23_nor_over_that_of_its_thread(checkpoints: Checkpoints) -> None:
    """The totals go on from run to run; when they are used up, no call of the model is made any more."""
    till = Till()
    limits = Limits(thread=Limits(max_tool_calls=4, max_steps=3))
    turns: list[Any] = [LOOKS[:3], "Three.", LOOKS[3:6]]
    model = ScriptedModel(turns)
    desk = Desk(create_agent(model, [till.look()], limits=limits), checkpoints)
    assert "succeeded" == desk.run().status
    second = desk.run("Go on.")
    assert (StopReason.MAX_TOOL_CALLS, "the thread's max_tool_calls of 4") == (second.stop_reason, second.limit)
    assert ["0", "1", "2", "3"] == sorted(till.looked)
    check_transcript(second.messages)
    third = desk.run("And now?")
    assert (StopReason.MAX_STEPS, "the thread's max_steps of 3", 0) == (
        third.stop_reason,
        third.limit,
        third.usage.model_calls,
    )
    check_transcript(third.messages)
