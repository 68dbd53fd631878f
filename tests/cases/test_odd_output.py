"""Cases from public bug reports: odd output of a model (C34, C37)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.till import Till

from loopwright import Checkpoints, EventKind, SyncRuns, approve, create_agent, tool
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


def test_c37_a_nested_argument_that_arrives_as_a_string(checkpoints: Checkpoints) -> None:
    """It is decoded where the schema wants a list, before the person sees it; a field of text stays what it is."""
    ran: list[tuple[list[int], str]] = []

    @tool(effect="write")
    def book(items: list[int], note: str) -> str:
        """Book some items."""
        ran.append((items, note))
        return "booked"

    model = ScriptedModel([call("book", items="[1,2]", note='{"a":1}'), "Done."])
    runs = SyncRuns(create_agent(model, [book]), checkpoints)
    waiting = runs.run("Book.", thread_id="t")
    assert {"items": [1, 2], "note": '{"a":1}'} == waiting.approvals[0].args
    runs.decide(waiting.approvals[0].id, approve(), by="ana")
    assert "Done." == runs.wait(waiting.run_id).answer
    assert [([1, 2], '{"a":1}')] == ran


@pytest.mark.parametrize("items", ["[1,2", '{"a":1}', '["x"]', '"[1]"'])
def test_c37_a_string_that_does_not_decode_to_what_is_wanted_is_told(checkpoints: Checkpoints, items: str) -> None:
    """Which field, and why; nothing runs and nobody is asked."""

    @tool(effect="write")
    def book(items: list[int]) -> str:
        """Book some items."""
        raise AssertionError(items)

    result = SyncRuns(create_agent(ScriptedModel([call("book", items=items), "No."]), [book]), checkpoints).run(
        "Book.", thread_id="t"
    )
    assert ["invalid"] == [entry["outcome"] for entry in result.trail]
    assert "items" in result.trail[0]["observation"]
