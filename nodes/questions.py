"""What a person is shown, and what their answers mean. Pure functions, total: no answer can make them raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from pydantic_core import to_jsonable_python

from loopwright.checkpoints import NewApproval
from loopwright.policy import describe_requirement
from loopwright.state import (
    Call,
    Question,
    Requirement,
    Result,
    Verdict,
    digest,
    in_utc,
    is_too_deep,
    require_nothing,
    storable,
    storable_data,
)
from loopwright.tools import to_text

OUTCOME_DECISIONS = ("respond", "reject")
_DECISIONS: dict[str, tuple[str, ...]] = {
    Question.WORDS: ("respond", "reject"),
    Question.PAUSE: ("respond", "reject"),
    Question.FAILURE: ("approve", "respond", "reject"),
    Question.PARKED: (),
}
"""What can be decided where one person answers, whoever the rules want for it."""
LEFT_UNKNOWN = "ERROR: it was begun, and nobody knows whether it happened; do not repeat it"
"""What the model reads of a call whose outcome nobody will be asked about any more."""
WAKE = {"type": "wake"}
"""What a resume carries when the decision stands in the ledger."""

_SYNONYMS = {"accept": "approve", "ignore": "reject", "response": "respond"}


def approval_id(call: Call, *, schema: object, thread_id: str, run_id: str, step: int) -> str:
    """Return the digest that binds an approval to exactly this call."""
    place = [thread_id, run_id, step, call["ordinal"], call["attempt"], call["branch"], call["question"]]
    if revision := call.get("revision", 0):
        place.append(revision)
    if answered := call.get("resumes"):
        place += ["answered", len(answered)]
    if parkings := call.get("parkings", 0):
        place += ["parked", parkings]
    return digest(call["name"], schema, call["args"], place, call["effect"])


def question_of(call: Call, run_id: str) -> NewApproval:
    """Return the question about a call, as the ledger keeps it."""
    is_approval = call["question"] == Question.APPROVAL
    is_before = is_approval or call["question"] == Question.WORDS
    return NewApproval(
        id=call["approval"],
        question=call["question"],
        tool=call["name"],
        args=call["args"],
        payload=payload_of(call, run_id),
        effect_id=call["effect"],
        expires_in=call.get("expires_in") if is_before else None,
        until=_until(call) if call["question"] == Question.PARKED else None,
        remind_after=call.get("remind_after") if is_before else None,
        needs=needs_of(call) if call["question"] != Question.OUTCOME else None,
        vote=call.get("edited_by", "") if is_approval else "",
    )


def _until(call: Call) -> float:
    """Return when a call that is parked goes on; at once, where a state that was changed by hand does not say."""
    return call["held"].get("until", 0.0) if "held" in call else 0.0


def needs_of(call: Call) -> Requirement:
    """Return who may decide about a call; what became of an effect may be told by anybody who knows."""
    if call["question"] == Question.OUTCOME:
        return {**require_nothing(), "decisions": [*OUTCOME_DECISIONS]}
    needs = call.get("needs") or require_nothing()
    decisions = _DECISIONS.get(call["question"])
    return needs if decisions is None else {**needs, "number": 1, "decisions": [*decisions]}


def payload_of(call: Call, run_id: str) -> dict[str, Any]:
    """Return what an interrupt shows: keys that LangChain's clients, Agent Inbox and Studio all understand."""
    if call["question"] == Question.PARKED:
        return _parked_payload(call, run_id)
    needs = needs_of(call)
    allowed = needs["decisions"]
    description = _describe(call)
    action = {"name": call["name"], "args": call["args"], "arguments": call["args"], "description": description}
    shown: dict[str, Any] = {
        "type": call["question"],
        "action_requests": [action],
        "review_configs": [{"action_name": call["name"], "allowed_decisions": allowed}],
        "tool_call_id": call["id"],
        "name": call["name"],
        "args": call["args"],
        "description": description,
        "why": call["why"],
        "rule": call["by"],
        "allowed": allowed,
        "approval_id": call["approval"],
        "run_id": run_id,
    }
    if call["question"] != Question.OUTCOME:
        shown["needs"] = needs
    if call["question"] == Question.PAUSE:
        shown["value"] = call["held"].get("asked") if "held" in call else None
    if call["question"] == Question.APPROVAL:
        shown["votes"] = call.get("votes", [])
    if taint := call.get("taint"):
        shown["taint"] = taint
    if call["effect"]:
        shown["effect_id"] = call["effect"]
    if call["error"]:
        shown["error"] = call["error"]
    return shown


def _parked_payload(call: Call, run_id: str) -> dict[str, Any]:
    why = call["held"]["text"] if "held" in call else ""
    shown = parked_payload(name=call["name"], why=why, until=_until(call), run_id=run_id, approval_id=call["approval"])
    return {**shown, "tool_call_id": call["id"], "args": call["args"]}


def parked_payload(*, name: str, why: str, until: float, run_id: str, approval_id: str) -> dict[str, Any]:
    """Return what an interrupt shows of a run that waits for a rate: nothing is asked, and any answer wakes it.

    Args:
        name: Of the tool, or what the rate of the model is kept for.
        why: Which rate it is.
        until: Seconds since the epoch.
        run_id: Of the run.
        approval_id: Under which the ledger knows until when.
    """
    told = f"{name} is called too often now ({why}); the run goes on by itself at {in_utc(until)}. Nothing is asked. "
    return {
        "type": Question.PARKED.value,
        "action_requests": [],
        "review_configs": [],
        "name": name,
        "description": told + 'From then on any answer wakes it, best {"type": "wake"}, which decides nothing.',
        "why": why,
        "until": until,
        "allowed": [],
        "approval_id": approval_id,
        "run_id": run_id,
    }


def _describe(call: Call) -> str:
    if call["question"] == Question.OUTCOME:
        return (
            f"{call['name']} was begun, and nobody knows whether it happened ({call['why']}). Find out, then: respond "
            "with its result if it happened; reject if it did not happen and shall not run."
        )
    if call["question"] in _DECISIONS:
        return _describe_asked(call)
    thought = f" The model's words: {call['thought']}" if call["thought"] else ""
    who = describe_requirement(needs_of(call))
    decides = f" It takes {who}." if who else ""
    return f"May {call['name']} run with these arguments? ({call['why']}){decides}{thought}{_describe_taint(call)}"


def choices_of(call: Call) -> list[str]:
    """Return the only answers that a question of the model takes; empty where any text will do."""
    return [str(choice) for choice in call["args"].get("choices") or ()] if call["question"] == Question.WORDS else []


def _describe_asked(call: Call) -> str:
    choices = choices_of(call)
    told = {
        Question.WORDS: str(call["args"].get("question", "")),
        Question.PAUSE: f"{call['name']} asks: {call['why']}",
        Question.FAILURE: f"{call['name']} failed ({call['why']}). Approve to try once more, respond with what the "
        "model shall read in its place, or reject to let the failure stand.",
    }[Question(call["question"])]
    one_of = f" Answer with one of: {', '.join(choices)}." if choices else ""
    who = describe_requirement(needs_of(call))
    answers = f" It takes {who}." if who else ""
    return f"{told}{one_of}{answers}"


def failed(call: Call, said: str = "") -> Call:
    """Return a call whose failure stands: it is what the model reads, with what a person said of it."""
    if "held" not in call:  # from a state that was changed by hand
        return {**call, "verdict": Verdict.NOT_RUN, "why": "not run: what was known of it is lost"}
    held = {key: value for key, value in call["held"].items() if key not in ("asks", "asked")}
    result = cast("Result", {**held, "text": call["held"]["text"] + said})
    return {**call, "verdict": Verdict.ALLOW, "result": result}


def _describe_taint(call: Call) -> str:
    """Show an approver where the call's values stand in text by strangers."""
    told = [
        f"{each['argument']} stands in text by strangers, from {each['tool']}({each['origin']}): {each['text']}"
        for each in call.get("taint", ())
        if each["argument"]
    ]
    return "".join(f"\n{line}" for line in told)


def parse_answer(answer: object) -> dict[str, Any] | None:
    """Read an answer in any of the shapes that clients send; None when it is no decision.

    Taken are `{"decisions": [d]}`, `d`, `[d]` and Agent Inbox's `[{"type": "accept", "args": …}]`. The result has a
    `type` among the four decisions, `args` for an edit, and a `message`.
    """
    given = cast("Mapping[str, Any]", answer).get("decisions", answer) if isinstance(answer, Mapping) else answer
    if isinstance(given, list) and len(cast("list[object]", given)) == 1:
        given = cast("list[object]", given)[0]
    if not isinstance(given, Mapping):
        return None
    one = cast("Mapping[str, Any]", given)
    kind = one.get("type")
    kind = _SYNONYMS.get(kind, kind) if isinstance(kind, str) else kind
    match kind:
        case "edit":
            return _parse_edit(one)
        case "approve":
            return {"type": "approve"}
        case "reject" | "respond":
            return _parse_text(one, kind)
        case _:
            return None


def read_answer(call: Call, answer: object) -> dict[str, Any] | None:
    """Read an answer that came without `Runs`, for one question.

    A bare text answers the model; anything that is no decision answers a tool, as with LangGraph's `interrupt`.
    """
    parsed = parse_answer(answer)
    if parsed is not None:
        return parsed
    if call["question"] == Question.WORDS and isinstance(answer, str) and answer:
        return {"type": "respond", "message": storable(answer)}
    return respond_with(answer) if call["question"] == Question.PAUSE else None


def question_meant(answer: object) -> str:
    """Return the id of the question that a decision says it is for; empty where it does not say, or is none."""
    parts = cast("list[object]", answer) if isinstance(answer, list) else [answer]
    if not (parts and isinstance(parts[0], Mapping)):
        return ""
    given = cast("Mapping[str, object]", parts[0])
    named = given.get("approval_id") if "type" in given or "decisions" in given else None
    return named if isinstance(named, str) else ""


def respond_with(value: object) -> dict[str, Any]:
    """Return the decision that answers a tool with any plain value."""
    plain = storable_data(to_jsonable_python(value, fallback=repr, inf_nan_mode="strings"))
    return {"type": "respond", "message": to_text(plain), "value": plain}


def _parse_edit(given: Mapping[str, Any]) -> dict[str, Any] | None:
    """Read an edit: `edited_action` (LangChain), `args` (ours), `args.action` and `args.args` (Agent Inbox)."""
    action = given.get("edited_action", given.get("args"))
    if not isinstance(action, Mapping):
        return None
    inner = cast("Mapping[str, Any]", action)
    named = "action" in inner or "name" in inner
    wrapped = named and isinstance(inner.get("args"), Mapping) and set(inner) <= {"args", "action", "name"}
    args = inner["args"] if wrapped else inner
    if is_too_deep(args):
        return None
    tool = (inner.get("action") or inner.get("name")) if wrapped else given.get("tool")
    edited: dict[str, Any] = {
        "type": "edit",
        "args": to_jsonable_python(dict(args), fallback=repr, inf_nan_mode="strings"),
    }
    return {**edited, "tool": tool} if isinstance(tool, str) and tool else edited


def _parse_text(given: Mapping[str, Any], kind: str) -> dict[str, Any] | None:
    message = given.get("message", given.get("args"))
    if isinstance(message, str) and (message or kind == "reject"):
        return {"type": kind, "message": storable(message)}
    return {"type": "reject", "message": ""} if kind == "reject" and message is None else None
