"""Cases from public bug reports: a limit must not throw away the work (C25)."""

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
