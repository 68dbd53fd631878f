"""Shows what a person is asked, and exactly how to answer."""

from __future__ import annotations

from shlex import quote

from loopwright.checkpoints import Approval, Ledger
from loopwright.policy import describe_requirement
from loopwright.runs import Parked, parked_of
from loopwright.state import Passage, Question

from .finding import short
from .screen import Screen
from .text import age, call_lines, clean, columns, fit, when

_INDENT = "  "


def show_question(approval: Approval, ledger: Ledger, screen: Screen, *, is_ours: bool = True) -> None:
    """Write one question: the call, why it is asked about, by which rule, until when, and the ways to answer.

    Args:
        approval: The question.
        ledger: Where ids are looked up, so that the shortest ones can be shown.
        screen: Where it is written.
        is_ours: Whether it can be answered here; else only the program that started the run can take an answer.
    """
    if approval.question == Question.PARKED:
        show_parked(parked_of([approval]), ledger, screen)
        return
    for line in call_lines(approval.tool, _in_order(approval), screen.page, _INDENT):
        screen.line(line, bold=True)
    if approval.question == Question.OUTCOME:
        why = approval.payload.get("why", "")
        screen.prose(f"It was begun, and nobody knows whether it happened: {why}.", indent=_INDENT)
        effect = ledger.effects.get(approval.effect_id)
        screen.prose(f"begun: {when(effect.began_at)}, under the idempotency key {effect.key}", indent=_INDENT)
    elif approval.question in (Question.WORDS, Question.PAUSE):
        screen.prose(f"asked: {approval.description}", indent=_INDENT)
    elif approval.question == Question.FAILURE:
        screen.prose(approval.description, indent=_INDENT)
    else:
        screen.prose(f"why: {approval.payload.get('why', '')}", indent=_INDENT)
        screen.line(fit(f"{_INDENT}rule: {approval.payload.get('rule', '')}", screen.width), dim=True)
    _show_who(approval, screen)
    for passage in approval.payload.get("taint", ()):
        _show_passage(passage, screen)
    _show_end(approval, ledger, screen)
    if not is_ours:
        screen.prose("the run belongs to the program that started it: answer there", indent=_INDENT)
    elif approval.question == Question.OUTCOME:
        _show_outcome_ways(approval, ledger, screen)
    else:
        _show_approval_ways(approval, ledger, screen)


def show_parked(parked: Parked | None, ledger: Ledger, screen: Screen) -> None:
    """Write for which rate a run waits, and until when; nothing for one that waits for none."""
    if parked is None:
        return
    left = parked.until - ledger.clock()
    told = f"at {when(parked.until)}, in {age(left)}" if left > 0 else "with the next `loopwright recover`"
    screen.prose(f"parked: {parked.name} ({parked.why}); it goes on by itself {told}", indent=_INDENT)


def _show_passage(passage: Passage, screen: Screen) -> None:
    """Write where an argument's value stands in text by strangers; without one, only where such text came from."""
    source = f"{passage['tool']}({passage['origin']}), step {passage['step']}"
    if not passage["argument"]:
        screen.prose(f"text by strangers came from {source}", indent=_INDENT)
        return
    screen.prose(f"{passage['argument']} stands in text by strangers, from {source}:", indent=_INDENT)
    screen.prose(passage["text"], indent=_INDENT * 2)


def asked(question: str) -> str:
    """Say in a few words what a question of this kind asks."""
    return _ASKED.get(question, "may this call run?")


_ASKED: dict[str, str] = {
    Question.OUTCOME: "did this call happen?",
    Question.WORDS: "what is the answer?",
    Question.PAUSE: "what is the answer?",
    Question.FAILURE: "it failed: once more?",
    Question.PARKED: "waiting for a rate",
}


def _in_order(approval: Approval) -> dict[str, object]:
    """Return the arguments in the order of the tool's parameters, which the payload has kept."""
    in_order: dict[str, object] = approval.payload.get("args", approval.args)
    return in_order


def _show_who(approval: Approval, screen: Screen) -> None:
    """Say who may decide, and how many have, where that is not just anybody."""
    who = describe_requirement(approval.needs)
    if approval.votes:
        who += f"; {len(approval.votes)} of {approval.needs['number']} have approved: {', '.join(approval.votes)}"
    if who:
        screen.prose(f"who: {who}", indent=_INDENT)


def _show_end(approval: Approval, ledger: Ledger, screen: Screen) -> None:
    if approval.expires_at is None:
        return
    left = approval.expires_at - ledger.clock()
    told = f"unanswered, it counts as rejected in {age(left)}" if left > 0 else "its time is up: it counts as rejected"
    screen.prose(told, indent=_INDENT)


def _show_approval_ways(approval: Approval, ledger: Ledger, screen: Screen) -> None:
    id_ = short(approval.id, ledger.approvals.matching)
    by = " ".join(["--by NAME", *(f"--role {quote(clean(role))}" for role in approval.needs["roles"])])
    ways = {
        "approve": f"loopwright approve {id_} {by}",
        "edit": _edit_way(f"loopwright edit {id_} {by}", approval, screen.width - 2 * len(_INDENT)),
        "reject": f'loopwright reject {id_} {by} --reason "…"',
        "respond": f'loopwright respond {id_} {by} "…"',
    }
    _show_ways([way for decision, way in ways.items() if decision in approval.allowed], screen)


def _edit_way(begin: str, approval: Approval, width: int) -> str:
    """Name the arguments that can be changed, as long as they fit."""
    named = " ".join([begin, *(f"{clean(name)}=VALUE" for name in _in_order(approval))])
    return named if named != begin and columns(named) <= width else f"{begin} ARGUMENT=VALUE"


def _show_outcome_ways(approval: Approval, ledger: Ledger, screen: Screen) -> None:
    id_ = short(approval.id, ledger.approvals.matching)
    effect = short(approval.effect_id, ledger.effects.matching)
    screen.prose("Find out. If it happened, RESULT is what the tool would have returned:", indent=_INDENT)
    _show_ways([f'loopwright resolve {effect} --by NAME --happened "RESULT"'], screen)
    screen.prose("If it did not happen, and the call is to be asked about anew:", indent=_INDENT)
    _show_ways([f"loopwright resolve {effect} --by NAME --not-happened"], screen)
    screen.prose("If it did not happen, and shall not run:", indent=_INDENT)
    _show_ways([f"loopwright reject {id_} --by NAME"], screen)


def _show_ways(commands: list[str], screen: Screen) -> None:
    """Write commands whole, however narrow the terminal: they are there to be copied."""
    for command in commands:
        screen.line(f"{_INDENT * 2}{command}")
