"""What the nursery's children do for the tests of final answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage
from tests.world.nursery import Channel
from tests.world.refund import die

from loopwright import Agent, ProposedAnswer, Reflect, SyncRuns, create_agent, open_checkpoints
from loopwright.testing import ScriptedModel

TASK, THREAD, RUN = "How many?", "t", "run-1"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def build(die_in: str = "", least: int = 9) -> Agent:
    """Build an agent whose model counts its answers, and which can be killed in a place.

    Args:
        die_in: `model:2` kills the process in the second model call, `check:2` in the check of the second answer,
            `reflect` while the model looks back.
        least: The first answer that passes.
    """

    def say(messages: list[AnyMessage]) -> Any:
        if messages[-1].text.startswith("Look back"):
            if die_in == "reflect":
                die()
            return "DONE"
        number = 1 + sum(isinstance(message, AIMessage) for message in messages)
        if die_in == f"model:{number}":
            die()
        return f'{{"n": {number}}}'

    def is_large(answer: ProposedAnswer) -> bool:
        if die_in == f"check:{answer.output['n']}":
            die()
        return bool(answer.output["n"] >= least)

    model = ScriptedModel([say] * 20)
    return create_agent(model, [], verify=is_large, response_format=SCHEMA, reflect=Reflect(), answer_retries=2)


def drive(_channel: Channel, *, folder: str, die_in: str, least: int = 9) -> None:
    """Carry a run on to its end, or to this process's."""
    with open_checkpoints(f"sqlite:///{Path(folder) / 'runs.db'}") as checkpoints:
        SyncRuns(build(die_in, least), checkpoints).run(TASK, thread_id=THREAD, run_id=RUN)
