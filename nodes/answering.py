"""A final answer before it counts: its form, its checks, and whether the model looks back at it."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from loopwright.models import UnfitAnswer, hide_keys
from loopwright.policy import (
    FORM,
    REFLECTION,
    AnswerCheck,
    Bounds,
    ProposedAnswer,
    limit_met,
    objection_of,
    reflection_of,
    seconds_left,
)
from loopwright.state import (
    NUDGE,
    AgentState,
    Decision,
    FinalAnswer,
    Objection,
    Purpose,
    RunRecord,
    StopReason,
    UsageRecord,
    add_seconds,
    digest,
    excerpt,
    storable,
)
from loopwright.tools import OutOfTime, safe_str

from .port import Port
from .reflecting import GO_ON, question_of

OBJECTION_CHARACTERS = 1000
"""Of an objection, so many are told and kept."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What becomes of a final answer."""

    run: RunRecord
    """With what was found."""
    reason: StopReason | None = None
    """Why the run ends with it; None: it goes on."""
    messages: tuple[AnyMessage, ...] = ()
    """What the model is told, or said itself."""


async def judge_answer(text: str, state: AgentState, port: Port) -> Judged:
    """Find out what is wrong with a proposed answer; where nothing is, the model may have to look back at it first.

    May be called again for the same answer, after a crash: so may the checks.
    """
    run = state["run"]
    output, found = _read(text, port)
    if not found:
        said = [(check.name, await _wrong(check, text, output, state, port)) for check in port.spec.answers.checks]
        found = [(by, wrong) for by, wrong in said if wrong]
    if found:
        return _sent_back(text, found, state, port)
    accepted: RunRecord = {**run, "answer": text}
    if port.spec.form is not None:
        accepted["output"] = output
    if _looks_back(state, port):
        return Judged({**accepted, "purpose": Purpose.REFLECT, "reflections": run.get("reflections", 0) + 1})
    return Judged(accepted, StopReason.ANSWERED)


def _read(text: str, port: Port) -> tuple[Any, list[tuple[str, str]]]:
    """Return the answer as plain data, and what is wrong with its form."""
    if port.spec.form is None:
        return None, []
    try:
        _, plain = port.spec.form.read(text)
    except UnfitAnswer as error:
        return None, [(FORM, str(error))]
    return plain, []


async def _wrong(check: AnswerCheck, text: str, output: Any, state: AgentState, port: Port) -> str:
    """Return what one check objects to, empty for nothing; whatever it does, it never passes an answer by failing."""
    left = seconds_left(_bounds(state, port), _usage(state, port))
    seconds = min(port.spec.answers.seconds, left) if left is not None else port.spec.answers.seconds
    try:
        wrong = objection_of(await port.check(check, _proposed(text, output, state, port), seconds))
    except OutOfTime:
        wrong = f"it was not done after {seconds:g} s"
    except Exception as error:  # noqa: BLE001 -- whatever a check raises, also a pause: the answer has not passed
        wrong = f"it failed: {type(error).__name__}: {hide_keys(safe_str(error), port.spec.model)}"
    return excerpt(storable(wrong), OBJECTION_CHARACTERS)


def _proposed(text: str, output: Any, state: AgentState, port: Port) -> ProposedAnswer:
    """Return what a check sees: nothing in it is the run's own."""
    messages = [message.model_copy(deep=True) for message in state["messages"]]
    run = copy.deepcopy(state["run"])
    task = next((message.text for message in reversed(messages) if message.id == run["task_id"]), run["task"])
    return ProposedAnswer(
        text=text,
        output=port.spec.form.rebuild(output) if port.spec.form is not None else None,
        task=task,
        run=run,
        thread=copy.deepcopy(state["thread"]),
        trail=copy.deepcopy(state["trail"]),
        messages=messages,
    )


def _sent_back(text: str, found: Sequence[tuple[str, str]], state: AgentState, port: Port) -> Judged:
    """Tell the model what is wrong, while there are retries left."""
    retries = state["run"].get("retries", 0)
    told = "; ".join(f"{by}: {wrong}" for by, wrong in found)
    run: RunRecord = {
        **_objected(", ".join(by for by, _ in found), told, state),
        "answer": text,
        "malformed": 0,
    }
    if retries >= port.spec.answers.retries:
        run["error"] = f"the answer could not be verified: {told}"
        return Judged(run, StopReason.UNVERIFIED)
    lines = "\n".join(f"- {by}: {wrong}" for by, wrong in found)
    nudge = HumanMessage(f"{_NOT_YET}\n{lines}\n{_MEND}", id=_nudge_id(state, "check"))
    run["retries"] = retries + 1
    return Judged(run, messages=(nudge,))


_NOT_YET = "Your answer was checked, and it cannot be taken yet:"
_MEND = "Mend that: call a tool if you need one, then give the whole final answer again."


def _objected(by: str, text: str, state: AgentState) -> RunRecord:
    run = state["run"]
    objection = Objection(by=by, step=state["usage"]["steps"], text=excerpt(text, OBJECTION_CHARACTERS))
    return {**run, "objections": [*run.get("objections", ()), objection]}


def _nudge_id(state: AgentState, kind: str) -> str:
    return f"{NUDGE}{state['run']['id']}-{state['usage']['steps']}-{kind}"


_STEPS_TO_LOOK_BACK = 2
"""One to look back, and one to do something about it: with fewer, an answer that passed would come to nothing."""


def _looks_back(state: AgentState, port: Port) -> bool:
    reflect, bounds = port.spec.answers.reflect, _bounds(state, port)
    if reflect is None or state["run"].get("reflections", 0) >= reflect.times:
        return False
    steps = state["usage"]["steps"]
    has_steps = bounds.max_steps is None or bounds.max_steps - steps >= _STEPS_TO_LOOK_BACK
    return has_steps and limit_met(bounds, _usage(state, port), state["run"], state["thread"]) is None


def hear_reflection(decision: Decision, state: AgentState, port: Port) -> Judged:
    """Let the answer stand that the model looked back at, or let the model go on with what it found missing.

    Where it could not look back, or a limit leaves no room to do anything about it, the answer stands: it has passed
    all checks.
    """
    run: RunRecord = {**state["run"], "purpose": Purpose.DECIDE}
    found = reflection_of(decision.text) if isinstance(decision, FinalAnswer) else ""
    if not found:
        return Judged(run, StopReason.ANSWERED)
    run = {**_objected(REFLECTION, found, state), "purpose": Purpose.DECIDE}
    if limit_met(_bounds(state, port), _usage(state, port), run, state["thread"]) is not None:
        return Judged(run, StopReason.ANSWERED)
    # In the model's own voice: whatever strangers have made it say, it must not be read as the user's word.
    said = AIMessage(found, id=f"ai-{digest(run['id'], state['usage']['steps'], REFLECTION)[:24]}")
    asked = HumanMessage(question_of(port.spec.answers.reflect), id=_nudge_id(state, "reflect"))
    run.pop("output", None)
    return Judged(run, messages=(asked, said, HumanMessage(GO_ON, id=_nudge_id(state, "go-on"))))


def _bounds(state: AgentState, port: Port) -> Bounds:
    return port.spec.bounds(state["run"], state["thread"])


def _usage(state: AgentState, port: Port) -> UsageRecord:
    """Return what is used up, this execution's own time included."""
    return add_seconds(state["usage"], port.elapsed())
