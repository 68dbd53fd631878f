"""Takes a person's answer, and carries its run on there and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Any

from loopwright.checkpoints import Approval, Checkpoints, RunRow
from loopwright.runs import Receipt, SyncRuns, receipt_of
from loopwright.state import EXPIRE, Happened, NotHappened, Person, PersonDecision, Question

from .exits import Exit, exit_of
from .finding import find_approval, find_effect, find_run, short
from .following import follow
from .loading import load_agent_of, open_store
from .plain import plain_receipt, plain_result, plain_run
from .screen import Screen
from .text import age, call_text, clean, when

_PAST = {
    "approve": "approved",
    "edit": "edited",
    "reject": "rejected",
    "respond": "answered",
    "cancel": "withdrawn",
    "happened": "reported as happened",
    "not_happened": "reported as not happened",
}


@dataclass(frozen=True)
class _Matter:
    """What an answer is about."""

    name: str
    """How it is called on the screen."""
    tool: str
    row: RunRow
    store: Checkpoints
    screen: Screen


def decide(typed: str, decision: PersonDecision, by: Person, screen: Screen) -> Exit:
    """Take a decision about a question; a late one is told which one counts."""
    with open_store() as store:
        ledger = store.ledger
        approval = ledger.approvals.get(find_approval(ledger, typed))
        name = f"approval {short(approval.id, ledger.approvals.matching)}"
        matter = _Matter(name, approval.tool, find_run(ledger, approval.run_id), store, screen)
        if approval.decision is not None and approval.question != Question.PARKED:
            receipt = receipt_of(approval, accepted=False)
            return _late(receipt, matter, lambda counts: _is_same(counts, decision, approval))
        return _answer(
            lambda runs: runs.decide(approval.id, decision, by=by),
            matter,
            lambda counts: _is_same(counts, decision, approval),
        )


def resolve(typed: str, outcome: Happened | NotHappened, by: str, screen: Screen) -> Exit:
    """Say what became of an effect."""
    with open_store() as store:
        ledger = store.ledger
        effect = find_effect(ledger, typed)
        name = f"effect {short(effect.id, ledger.effects.matching)}"
        said = "happened" if isinstance(outcome, Happened) else "not_happened"
        return _answer(
            lambda runs: runs.resolve(effect.id, outcome, by=by),
            _Matter(name, effect.tool, find_run(ledger, effect.run_id), store, screen),
            lambda counts: counts["type"] == said,
        )


_Decision = Mapping[str, Any]


def _answer(take: Callable[[SyncRuns], Receipt], matter: _Matter, is_same: Callable[[_Decision], bool]) -> Exit:
    """Take an answer with the run's own agent; where it counts, drive the run on."""
    row, store, screen = matter.row, matter.store, matter.screen
    agent, reference = load_agent_of(row.agent, row.id)
    runs = SyncRuns(agent, store, reference=reference)
    receipt = take(runs)
    if receipt.missing:
        _show_votes(receipt, matter)
    elif not receipt.accepted:
        return _late(receipt, matter, is_same)
    else:
        screen.line(f"{matter.name}: {_told(receipt.decision)} by {clean(receipt.by)}")
    result = follow(agent, runs, row, store, screen)
    screen.data(plain_receipt(receipt, plain_result(result)))
    return exit_of(result.status)


def _show_votes(receipt: Receipt, matter: _Matter) -> None:
    """Tell who has approved so far, and how many are missing."""
    again = "" if receipt.accepted else "you have approved it before; "
    counted = f"{len(receipt.votes)} of {len(receipt.votes) + receipt.missing} have approved"
    matter.screen.prose(f"{matter.name}: {again}{counted}: {', '.join(receipt.votes)}")


def _late(receipt: Receipt, matter: _Matter, is_same: Callable[[_Decision], bool]) -> Exit:
    """Tell who decided what, and when; nothing is changed, the run neither."""
    ledger, screen = matter.store.ledger, matter.screen
    at = "" if receipt.at is None else f" on {when(receipt.at)} ({age(ledger.clock() - receipt.at)} ago)"
    has_expired = receipt.decision["type"] == EXPIRE
    told = "has expired unanswered" if has_expired else f"was already {_told(receipt.decision)} by {receipt.by}"
    screen.prose(f"{matter.name} {told}{at}; nothing was changed")
    _show_words(receipt.decision, matter.tool, screen)
    now = find_run(ledger, matter.row.id)
    run = short(now.id, ledger.runs.matching)
    reason = f" ({now.reason})" if now.reason else ""
    more = "show" if now.is_final else "resume"
    screen.line(f"run {run}: {now.status}{reason}; loopwright {more} {quote(run)}", dim=True)
    screen.data(plain_receipt(receipt, plain_run(now)))
    return Exit.DONE if is_same(receipt.decision) else Exit.ERROR


def _told(decision: _Decision) -> str:
    kind = str(decision["type"])
    return _PAST.get(kind, kind)


def _show_words(decision: _Decision, tool: str, screen: Screen) -> None:
    if decision.get("args"):
        screen.line("  " + call_text(decision.get("tool") or tool, decision["args"], screen.width - 2))
    said = decision.get("message") or decision.get("result")
    if said:
        screen.prose(f"“{said}”", indent="  ")


def _is_same(counts: _Decision, decision: PersonDecision, approval: Approval) -> bool:
    """Tell whether what counts is what was wanted; the reason of a rejection makes no difference."""
    if counts["type"] != decision.type:
        return False
    match decision.type:
        case "approve" | "reject":
            return True
        case "respond":
            return bool(counts["message"] == decision.message)
        case "edit":
            wanted = {**(approval.args if decision.args is None else decision.args), **(decision.changes or {})}
            return bool(counts["args"] == wanted and counts.get("tool", "") == decision.tool)
