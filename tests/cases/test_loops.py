"""Cases from public bug reports: the same call again and again (C31)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName

from loopwright import Checkpoints, StopReason, create_agent, tool
from loopwright.testing import ScriptedModel, check_transcript

VARIANTS: dict[str, list[dict[str, Any]]] = {
    "the very same": [{"q": "x", "page": 1}],
    "another order of the arguments": [{"q": "x", "page": 1}, {"page": 1, "q": "x"}],
    "1 and 1.0": [{"q": "x", "page": 1}, {"q": "x", "page": 1.0}],
    "a trailing space": [{"q": "x", "page": 1}, {"q": "x ", "page": 1}, {"q": "  x", "page": 1}],
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("variants", VARIANTS.values(), ids=VARIANTS.keys())
def test_c31_the_same_call_again_and_again(
    checkpoints: Checkpoints, variants: list[dict[str, Any]], door: DoorName
) -> None:
    """`search('x')` ten times: it runs three times, is not run twice, and the run ends after five model calls."""
    searched: list[str] = []

    @tool(effect="read")
    def search(q: str, page: int | float) -> str:  # noqa: PYI041 -- both forms are to reach the tool
        """Search the shop's pages for a phrase, one page of results at a time."""
        searched.append(f"{q} {page}")
        return "nothing found"

    turns = [
        {"name": "search", "args": variants[number % len(variants)], "id": f"c{number}", "type": "tool_call"}
        for number in range(10)
    ]
    model: Any = ScriptedModel(turns)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # the order of the arguments counts
    result = Desk(create_agent(model, [search]), checkpoints, door).run()
    assert (StopReason.LOOP, 5, 5, 3) == (result.stop_reason, result.usage.steps, len(model.seen), len(searched))
    assert ["done", "done", "done", "not_run", "not_run"] == [entry["outcome"] for entry in result.trail]
    told = [message.text for message in result.messages if message.type == "tool"]
    assert [False, False, True, False, False] == ["[loop guard]" in text for text in told]
    assert all(text.startswith("not run: it is part of a loop") for text in told[3:])
    check_transcript(result.messages)
