"""One call to run, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NotRequired

from langgraph.errors import GraphInterrupt
from typing_extensions import TypedDict

from loopwright.checkpoints import EffectRow
from loopwright.policy import seconds_left
from loopwright.state import Call, Outcome, UsageRecord
from loopwright.tools import (
    Contract,
    Output,
)

from .pausing import Asked, asked_by
from .port import Port


class ActTask(TypedDict):
    """What a `Send` brings to one `act` task."""

    call: Call
    run_id: str
    step: int
    usage: UsageRecord
    seconds_left: NotRequired[float | None]
    """Of the run's active time; None for any number. From release 0.2 on."""
    branch: NotRequired[str]
    """Of the run; empty on the first."""
    labels: NotRequired[dict[str, str]]
    """The run's. From release 0.2 on."""


class Where(TypedDict):
    """The place of a call: what names its effect."""

    thread_id: str
    run_id: str
    step: int


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a call."""

    outcome: Outcome
    text: str
    effect: str = ""
    output: Output | None = None
    """What the tool returned; None where it was not this call that brought it."""
    row: EffectRow | None = None
    """The effect whose stored result answers the call."""
    asked: Asked | None = None
    """What the tool wants to know of a person, where it has paused for that."""
    until: float | None = None
    """When it may be tried again, where it is parked: seconds since the epoch."""
    cost_nano: int = 0
    """Of a priced tool."""


def branch_of(task: ActTask) -> str:
    """Return the branch that a call is on: its run's, or the one that it was asked about anew on."""
    return task.get("branch") or task["call"]["branch"]


def seconds_for(contract: Contract, task: ActTask, port: Port) -> float:
    """No call outlives what is left of the run's active time."""
    left = left_of(task, port)
    return contract.timeout if left is None else min(contract.timeout, left)


def left_of(task: ActTask, port: Port) -> float | None:
    """Return the run's active seconds that are left, less what this call has waited."""
    left = task["seconds_left"] if "seconds_left" in task else seconds_left(port.spec.limits, task["usage"])
    return None if left is None else left - port.elapsed()


def error_text(said: str) -> str:
    """Return what the model reads of a failure."""
    return f"ERROR: {said}"


def where_of(task: ActTask, port: Port) -> Where:
    """Return the place of the call."""
    return {"thread_id": port.place.thread_id, "run_id": task["run_id"], "step": task["step"]}


def came_paused(pause: GraphInterrupt) -> Came:
    """Return what a tool asks that has paused by LangGraph's `interrupt`: the guard puts it to a person."""
    asked = asked_by(pause)
    if asked is None:
        text = "nobody was asked: a graph within it asks several things at once; let it ask one after the other"
        return Came(Outcome.ERROR, error_text(text))
    return Came(Outcome.NOT_RUN, asked.text, asked=asked)


def came_answered(output: Output) -> Came:
    """Return what a tool brought; a `Command` that goes too far is told to the model, and changes nothing here."""
    if output.refused:
        return Came(Outcome.ERROR, error_text(f"it ran, but its result was refused: {output.refused}"), output=output)
    return Came(Outcome.DONE, output.text, output=output)
