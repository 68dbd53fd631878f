"""What the nursery's children do for the tests of summaries."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from tests.world.nursery import Channel

from loopwright import Agent, Compaction, SyncRuns, create_agent, open_checkpoints, tool
from loopwright.nodes.summary import SUMMARISER
from loopwright.testing import ScriptedModel, call

TASK, THREAD, RUN, NOTES = "Read the report.", "t", "run-1", "NOTES: pages were read."
PAGES = 12


@tool(effect="read")
def page(number: int) -> str:
    """Read one page of the report, by its number from 0 on. Returns its text."""
    return f"page {number}: " + "word " * 800


def is_summing_up(messages: list[AnyMessage]) -> bool:
    """Tell whether a model was asked for a summary."""
    return messages[0].text == SUMMARISER


def build() -> tuple[Agent, ScriptedModel]:
    """Build an agent whose model reads page after page, in a context window for three of them."""

    def say(messages: list[AnyMessage]) -> Any:
        if is_summing_up(messages):
            return NOTES
        read = [message.text for message in messages if message.type == "tool"]
        number = int(read[-1].split(":")[0].split()[-1]) + 1 if read else 0
        return call("page", number=number) if number < PAGES else "It was read."

    model = ScriptedModel([say] * 40)
    return create_agent(model, [page], compaction=Compaction(window=4_000)), model


def drive(_channel: Channel, *, folder: str) -> None:
    """Carry a run on to its end, or to this process's."""
    with open_checkpoints(f"sqlite:///{Path(folder) / 'runs.db'}") as checkpoints:
        SyncRuns(build()[0], checkpoints).run(TASK, thread_id=THREAD, run_id=RUN)
