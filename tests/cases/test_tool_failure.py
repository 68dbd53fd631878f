"""Cases from public bug reports: one failing call must not lose its neighbours (C46)."""

from __future__ import annotations

import threading

import pytest
from tests.world.doors import DOORS, Desk, DoorName

from loopwright import Checkpoints, create_agent, tool
from loopwright.testing import ScriptedModel, call, check_transcript


@pytest.mark.parametrize("door", DOORS)
def test_c46_the_results_of_the_others_are_kept(checkpoints: Checkpoints, door: DoorName) -> None:
    """A is done, B fails, C is done after B: all three are answered, in order, and each ran once."""
    ran: list[str] = []
    failed = threading.Event()

    @tool(effect="read")
    def work(name: str) -> str:
        """Work on something, by its name."""
        ran.append(name)
        if name == "B":
            failed.set()
            raise RuntimeError("B is broken")
        if name == "C":
            assert failed.wait(20)
        return f"{name} is done"

    turn = [call("work", name=name) for name in "ABC"]
    model = ScriptedModel([turn, "Done."])
    result = Desk(create_agent(model, [work]), checkpoints, door).run()
    assert ("succeeded", ["A", "B", "C"]) == (result.status, sorted(ran))
    answers = [message.text for message in model.seen[1] if message.type == "tool"]
    assert ["A is done", "ERROR: B is broken", "C is done"] == answers
    assert ["done", "error", "done"] == [entry["outcome"] for entry in result.trail]
    check_transcript(result.messages)
