"""The guard's verdict about one call. Pure: neither the ledger nor the clock is asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from loopwright.policy import (
    Bounds,
    ProposedCall,
    Screening,
    passages,
    refuse_call,
    refuse_person,
    refuse_price,
    rules_for,
    screen,
    tighten,
)
from loopwright.state import (
    AgentState,
    Call,
    Limits,
    Outcome,
    Person,
    PersonDecision,
    UsageRecord,
    Verdict,
    add_tool_call,
    digest,
    excerpt,
    storable,
)
from loopwright.tools import Contract, UnfitArguments

from .context import observed_in, said_by_user, taint_of, told_before
from .questions import choices_of, needs_of
from .spec import AgentSpec


def screen_call(call: Call, state: AgentState, spec: AgentSpec, context: object) -> Call:
    """Return the call with its verdict; `context` is the run's, for the rules."""
    contract = spec.tools.get(call["name"])
    if contract is None:
        known = ", ".join(tool.name for tool in spec.offered) or "none"
        return _invalid(call, f"there is no tool {call['name']!r}; the tools are: {known}")
    try:
        args = contract.canonical_args(call["args"])
    except ValidationError as error:
        return _invalid(call, f"invalid arguments for {call['name']}: {_explain(error)}")
    except UnfitArguments as error:
        return _invalid(call, str(error))
    except Exception as error:  # noqa: BLE001 -- a schema may hold validators of the user's own
        return _invalid(call, f"invalid arguments for {call['name']}: {type(error).__name__}")
    checked = _checked(call, args, contract)
    if refused := _refused_before(checked, state):
        return {**checked, "verdict": Verdict.DENY, "why": refused, "by": "the earlier decision"}
    proposed = _proposed(checked, contract, state, spec, context)
    seen = tighten(screen(spec.rules, proposed), spec.rules, proposed)
    judged: Call = {**checked, "verdict": seen.verdict, "why": seen.why, "by": seen.by}
    if seen.verdict is Verdict.ASK and proposed.taint:
        judged["taint"] = passages(proposed)
    if contract.by_person and seen.verdict is Verdict.ALLOW:
        judged = {**judged, "verdict": Verdict.ASK, "why": "it is a question to a person", "by": "the tool"}
    return _on_terms(judged, seen)


def _on_terms(judged: Call, seen: Screening) -> Call:
    """Return the call with what the rules say of its question: who answers it, and until when."""
    if seen.needs is not None:
        judged["needs"] = seen.needs
    if seen.expires_in is not None:
        judged["expires_in"] = seen.expires_in
    if seen.remind_after is not None:
        judged["remind_after"] = seen.remind_after
    return judged


def _checked(call: Call, args: dict[str, Any], contract: Contract) -> Call:
    checked: Call = {**call, "args": args, "changes": not contract.is_read}
    return {**checked, "version": contract.version} if contract.version else checked


def _invalid(call: Call, why: str) -> Call:
    return {**call, "verdict": Verdict.INVALID, "why": storable(why), "by": "the schema"}


def _explain(error: ValidationError) -> str:
    """Name each field and what is wrong with it, without the values: they can be long, or secret."""
    parts = [f"{'.'.join(map(str, item['loc'])) or 'all'}: {item['msg']}" for item in error.errors()[:5]]
    return "; ".join(parts)


def _proposed(call: Call, contract: Contract, state: AgentState, spec: AgentSpec, context: object) -> ProposedCall:
    """Return what the rules see of a call.

    The whole transcript is read for it only where something looks: a rule with a predicate, or whoever is asked about
    a call that text by strangers may have led to. Else a long run would read it all again at each step.
    """
    rules = rules_for(spec.rules, call["name"], contract.effect)
    taint = taint_of(state, spec.tools) if rules or not contract.is_read else []
    bare = ProposedCall(
        call["name"], contract.effect.value, call["args"], state["run"], state["thread"], state.get("trail") or ()
    )
    if not taint and all(rule.when is None for rule in rules):
        return bare
    valid, messages = contract.schema.model_validate(call["args"]), state["messages"]
    fields = {name: getattr(valid, name) for name in contract.schema.model_fields}
    return replace(
        bare,
        args={**fields, **(valid.model_extra or {})},  # what a schema lets in beside its fields runs, too
        said=said_by_user(messages),
        told=told_before(messages),
        taint=taint,
        observed=observed_in(messages),
        context=context,
        state=spec.open_channels.of(cast("Mapping[str, Any]", state)),
        undescribed=tuple(name for name in call["args"] if name not in fields),
        turn=[earlier for earlier in state.get("turn") or () if earlier["ordinal"] < call["ordinal"]],
    )


def admit(call: Call, usage: UsageRecord, limits: Limits | Bounds, *, cost_nano: int = 0) -> tuple[Call, UsageRecord]:
    """Count a call that may run, or be asked about, if it still fits; calls are admitted in their order.

    Args:
        call: Judged.
        usage: Of its run so far.
        limits: What bounds the run.
        cost_nano: The price of the call, and of those of its turn that were admitted before it.
    """
    if call["verdict"] not in (Verdict.ALLOW, Verdict.ASK):
        return call, usage
    if why := refuse_call(limits, usage, call["name"]) or refuse_price(limits, usage, cost_nano):
        return {**call, "verdict": Verdict.NOT_RUN, "why": why, "by": "the limits"}, usage
    return call, add_tool_call(usage, call["name"])


def price_of(turn: Iterable[Call], spec: AgentSpec) -> int:
    """Return what the calls of a turn that are to run, or be asked about, will cost at least, in nano-dollars."""
    admitted = [call for call in turn if call["verdict"] in (Verdict.ALLOW, Verdict.ASK) and not call.get("result")]
    return sum(spec.tools[call["name"]].price_nano for call in admitted if call["name"] in spec.tools)


def call_digest(call: Call) -> str:
    """Return the digest over tool and canonical arguments: what makes two calls the same."""
    return digest(call["name"], call["args"])


def _refused_before(call: Call, state: AgentState) -> str:
    """Say why a person already refused this very call in this run; empty when nobody did."""
    rejected, run_id = Outcome.REJECTED.value, state["run"]["id"]
    refused = [e for e in state.get("trail") or () if e["outcome"] == rejected and e["run"] == run_id]
    same = call_digest(call) if refused else ""
    for entry in refused:
        if entry["digest"] == same:
            return f"{entry['why']} (the same call was refused before)"
    return ""


def edited_call(call: Call, decision: Mapping[str, Any]) -> Call:
    """Return the call that an edit makes of another one; what rules required of that one goes with it."""
    proposed = call.get("proposed", call["args"])
    edited: Call = {
        **call,
        "name": decision.get("tool") or call["name"],
        "args": decision["args"],
        "proposed": proposed,
    }
    edited.pop("needs", None)
    edited.pop("expires_in", None)
    edited.pop("remind_after", None)
    edited.pop("votes", None)
    edited.pop("edited_by", None)
    return edited


def normal_decision(call: Call, decision: PersonDecision) -> dict[str, Any]:
    """Return a decision as the plain data that is stored: the arguments of an edit are laid out whole."""
    match decision.type:
        case "approve":
            return {"type": "approve"}
        case "edit":
            base = call["args"] if decision.args is None else decision.args
            whole: dict[str, Any] = to_jsonable_python(
                {**base, **(decision.changes or {})}, fallback=repr, inf_nan_mode="strings"
            )
            return {"type": "edit", "args": whole} | ({"tool": decision.tool} if decision.tool else {})
        case "reject" | "respond":
            return {"type": decision.type, "message": storable(decision.message)}


def refuse_decision(
    call: Call,
    decision: Mapping[str, Any],
    by: Person | None,
    state: AgentState,
    spec: AgentSpec,
    *,
    context: object,
) -> str:
    """Say why a decision cannot be taken on this question; empty when it can.

    Args:
        call: What is asked about.
        decision: As plain data.
        by: Who decides; None: nobody knows.
        state: For the rules that judge an edit.
        spec: Likewise.
        context: Likewise; the run's.
    """
    kind, needs = decision["type"], needs_of(call)
    if kind not in needs["decisions"]:
        return f"{kind!r} cannot be taken here; take one of: {', '.join(needs['decisions'])}"
    if refused := refuse_person(needs, by, kind):
        return refused
    if kind == "respond":
        return _refuse_words(call, str(decision.get("message") or ""))
    if kind != "edit":
        return ""
    return refuse_edit(screen_call(edited_call(call, decision), state, spec, context), by, spec)


def _refuse_words(call: Call, text: str) -> str:
    if not text:
        return "'respond' needs a text, which answers in the tool's place"
    choices = choices_of(call)
    if not choices or text in choices:
        return ""
    return f"{excerpt(text, 100)!r} is none of the choices; answer with one of: {', '.join(choices)}"


def refuse_edit(edited: Call, by: Person | None, spec: AgentSpec) -> str:
    """Say why an edit cannot be taken: the rules for what it makes of the call are not kept by who edits."""
    if (contract := spec.tools.get(edited["name"])) is not None and contract.by_person:
        return (
            f"an edit cannot make a question of the call: {edited['name']} never runs; respond with an answer instead"
        )
    if edited["verdict"] in (Verdict.INVALID, Verdict.DENY):
        return f"the edited call cannot run: {excerpt(edited['why'], 400)}"
    if edited["verdict"] != Verdict.ASK:
        return ""
    needs = needs_of(edited)
    if "edit" not in needs["decisions"]:
        return f"the edited call cannot run: the rules for {edited['name']} do not allow an edit"
    refused = refuse_person(needs, by, "edit")
    return f"the edited call cannot run so: {refused}" if refused else ""
