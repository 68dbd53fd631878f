"""Models with a plan: what they say follows from the transcript, so that any process can carry a run on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage

from loopwright.testing import ScriptedModel

MANY = 200


def planned(turns: Sequence[Any], *, calls: int = MANY) -> ScriptedModel:
    """Build a model that says `turns[n]` when it has spoken n times since the task; then the last turn, for ever."""

    def say(messages: list[AnyMessage]) -> Any:
        return turns[min(spoken(messages), len(turns) - 1)]

    return ScriptedModel([say] * calls)


def spoken(messages: Sequence[AnyMessage]) -> int:
    """Count how often the model spoke since the newest message of the user."""
    count = 0
    for message in reversed(messages):
        if message.type == "human":
            break
        count += isinstance(message, AIMessage)
    return count
