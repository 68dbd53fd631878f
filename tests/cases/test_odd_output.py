"""Cases from public bug reports: odd output of a model (C34)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.till import Till

from loopwright import Checkpoints, EventKind, SyncRuns, create_agent
from loopwright.testing import ScriptedModel, call, check_transcript

LOOK: Any = {**call("look", order_id="A1"), "id": "c1"}


@pytest.mark.parametrize("content", ["Let me look.", [{"type": "text", "text": "Let me look."}]])
def test_c34_text_beside_a_call(checkpoints: Checkpoints, content: Any) -> None:
    """The call runs, the later text is the answer; the first one stays in the history, the trail and the stream."""
    till = Till()
    model = ScriptedModel([AIMessage(content, tool_calls=[LOOK]), "It is 4."])
    events = [*SyncRuns(create_agent(model, [till.look()]), checkpoints).stream("Look.", thread_id="t")]
    result = events[-1].result
    assert result is not None
    assert ("It is 4.", ["A1"]) == (result.answer, till.looked)
    assert "Let me look." == result.messages[1].text
    assert "Let me look." == result.trail[0]["thought"]
    decided = [event.decision for event in events if event.kind is EventKind.DECIDED]
    assert decided[0] is not None
    assert "Let me look." == decided[0]["thought"]
    check_transcript(result.messages)
