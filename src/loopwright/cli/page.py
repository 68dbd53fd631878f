"""One run on one page: what `show RUN` prints."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.checkpoints import Approval, EffectRow, Ledger, RunRow, labels_of
from loopwright.runs import RunResult
from loopwright.state import Question, TrailEntry

from .finding import short
from .following import show_compaction, show_failure, show_objection, standing
from .loading import is_loadable
from .questions import show_question
from .records import show_records
from .screen import Screen
from .text import age, call_lines, counted, fit, hanging, took, when


def show_run(row: RunRow, result: RunResult, ledger: Ledger, screen: Screen) -> None:
    """Write the page; a section without content is left out."""
    _show_head(row, result, ledger, screen)
    _show_steps(result, screen)
    _show_failures(result, screen)
    _show_effects(ledger.effects.of_run(row.id), ledger, screen)
    _show_questions(ledger.approvals.of_run(row.id), ledger, screen, is_ours=is_loadable(row.agent))
    records = ledger.log.records(row.id)
    if records:
        _title("log", screen)
        show_records(records, screen, indent=" ")
    if result.answer:
        _title("answer", screen)
        screen.prose(result.answer, indent="  ")


def _title(text: str, screen: Screen) -> None:
    screen.line()
    screen.line(text, bold=True)


def _show_head(row: RunRow, result: RunResult, ledger: Ledger, screen: Screen) -> None:
    screen.line(fit(f"run {row.id}", screen.width), bold=True)
    screen.prose(row.task, indent="  ")
    screen.fact("thread", row.thread_id)
    screen.fact("status", standing(result))
    if result.error:
        screen.prose(f"error     {result.error}", indent="  ")
    if row.requester:
        screen.fact("for", row.requester)
    if labels := labels_of(row):
        screen.fact("labels", ", ".join(f"{name}={value}" for name, value in labels.items()))
    if row.cancel_by:
        screen.fact("cancelled", f"by {row.cancel_by}")
    screen.fact("began", f"{when(row.created_at)}, {age(ledger.clock() - row.created_at)} ago")
    screen.fact("changed", f"{when(row.updated_at)}, {age(ledger.clock() - row.updated_at)} ago")
    screen.fact(
        "active", f"{took(result.usage.seconds)} in {counted(result.usage.model_calls, 'model call')} and the tools"
    )
    screen.fact("agent", row.agent)
    screen.fact("worker", row.worker)


def _show_failures(result: RunResult, screen: Screen) -> None:
    if result.failures:
        _title("failed attempts at a model", screen)
    for failure in result.failures:
        show_failure(failure, screen)


def _show_steps(result: RunResult, screen: Screen) -> None:
    if result.trail or result.objections:
        _title("steps", screen)
    objections = [*result.objections]
    compactions = [*result.compactions]
    for entry in result.trail:
        while compactions and compactions[0]["step"] <= entry["step"]:
            show_compaction(compactions.pop(0), screen)
        while objections and objections[0]["step"] < entry["step"]:
            show_objection(objections.pop(0), screen)
        if entry["thought"]:
            screen.prose(f"thought: {entry['thought']}", indent="    ", dim=True)
        call = call_lines(entry["tool"], entry["args"], None)[0]
        for line in hanging(f"[{entry['step']}] ", f"{call} -> {entry['observation']}", screen.page):
            screen.line(line)
        screen.prose(_verdict(entry), indent="    ", dim=True)
    for objection in objections:
        show_objection(objection, screen)
    for made in compactions:
        show_compaction(made, screen)


def _verdict(entry: TrailEntry) -> str:
    before = {name: value for name, value in entry.get("proposed", {}).items() if entry["args"].get(name) != value}
    changed = f"; proposed was {', '.join(f'{name}={value!r}' for name, value in before.items())}" if before else ""
    lasted = f" in {took(entry['seconds'])}" if entry["seconds"] else ""
    loop = f"; the model was told that it goes in circles ({entry['loop']})" if "loop" in entry else ""
    return f"{entry['verdict']} by {entry['by']}: {entry['why']}{changed}; {entry['outcome']}{lasted}{loop}"


def _show_effects(effects: list[EffectRow], ledger: Ledger, screen: Screen) -> None:
    if effects:
        _title("effects", screen)
    for effect in effects:
        id_ = short(effect.id, ledger.effects.matching)
        tries = f", claim {effect.generation}" if effect.generation > 1 else ""
        result = "" if effect.result is None else f": {effect.result}"
        for line in hanging(f"  {id_}  ", f"{effect.tool} {effect.status}{tries}{result}", screen.page):
            screen.line(line)


def _show_questions(approvals: Sequence[Approval], ledger: Ledger, screen: Screen, *, is_ours: bool) -> None:
    if approvals:
        _title("questions", screen)
    for approval in approvals:
        if approval.decision is None:
            show_question(approval, ledger, screen, is_ours=is_ours)
            continue
        id_ = short(approval.id, ledger.approvals.matching)
        if approval.question == Question.PARKED:
            screen.prose(f"{id_}  {approval.tool} was parked until {when(approval.expires_at or 0.0)}", indent="  ")
            continue
        first, *others = call_lines(approval.tool, approval.payload.get("args", approval.args), screen.page, "    ")
        for line in [f"  {id_}  {first.lstrip()}", *others]:
            screen.line(line)
        said = approval.decision.get("message")
        words = f": {said}" if said else ""
        at = "" if approval.decided_at is None else f" on {when(approval.decided_at)}"
        screen.prose(f"{approval.decision['type']} by {approval.decided_by}{at}{words}", indent="    ", dim=True)
