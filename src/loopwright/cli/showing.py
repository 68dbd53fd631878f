"""The commands that only look: inbox, show and check."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from shlex import quote

from loopwright.checkpoints import Approval, Checkpoints, Ledger, RunRow
from loopwright.errors import ConfigurationError, ThreadNotFound
from loopwright.graphs import check, create_agent
from loopwright.runs import RunResult, SyncRuns
from loopwright.state import NANO

from .arguments import parse_moment
from .exits import Exit
from .finding import find_run, short
from .loading import is_loadable, load_agent, open_store, parse_reference, place
from .page import show_run
from .plain import Plain, plain_approval, plain_attempt, plain_effect, plain_record, plain_result, plain_run
from .questions import asked, show_question
from .screen import Screen
from .text import age, counted, fit, money, table


def show_inbox(limit: int, screen: Screen) -> Exit:
    """List what waits for a person, oldest first, each with the ways to answer; then what waits for a rate."""
    with open_store() as store:
        ledger = store.ledger
        open_, parked = ledger.approvals.list_open(limit=limit + 1), ledger.approvals.list_parked(limit=limit)
        there_are_more, open_ = len(open_) > limit, open_[:limit]
        rows = {approval.run_id: find_run(ledger, approval.run_id) for approval in [*open_, *parked]}
        for approval in [*open_, *parked]:
            _show_asked(approval, rows[approval.run_id], ledger, screen)
        _show_count(len(open_), len(parked), limit if there_are_more else None, screen)
        screen.data([{**plain_approval(each), "task": rows[each.run_id].task} for each in [*open_, *parked]])
    return Exit.DONE


def _show_count(questions: int, parked: int, limit: int | None, screen: Screen) -> None:
    """Say how many questions wait; with a limit, that it left some out."""
    told = counted(questions, "question")
    if limit is not None:
        told = f"{told} shown of those open in {place()}, the oldest first; for more: --limit {2 * limit}"
    else:
        told = f"{told} open in {place()}" if questions else f"nothing waits for a person in {place()}"
    screen.prose(f"{told}; {parked} parked" if parked else told)


def _show_asked(approval: Approval, row: RunRow, ledger: Ledger, screen: Screen) -> None:
    since = age(ledger.clock() - approval.created_at)
    run = short(row.id, ledger.runs.matching)
    screen.prose(f"{asked(approval.question)} ({since} ago, run {run}, thread {row.thread_id})")
    if row.requester:
        screen.prose(f"for: {row.requester}", indent="  ")
    screen.prose(f"task: {row.task}", indent="  ")
    show_question(approval, ledger, screen, is_ours=is_loadable(row.agent))
    screen.line()


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are to be listed, as it was typed."""

    thread_id: str
    status: str
    since: str | None
    before: str | None
    limit: int

    @property
    def is_narrowed(self) -> bool:
        """Whether some runs are left out besides those of other threads."""
        return bool(self.status or self.since or self.before)


def show_runs(wanted: Wanted, screen: Screen) -> Exit:
    """List runs, newest first, and say how to see older ones.

    Raises:
        ThreadNotFound: If nothing is stored for the thread that is asked for.
    """
    with open_store() as store:
        rows = _wanted(wanted, store.ledger)
        rows, older = rows[: wanted.limit], rows[wanted.limit :]
        if wanted.thread_id and not rows and not wanted.is_narrowed:
            text = f"no runs on thread {wanted.thread_id!r} in {place()}; "
            text += "`loopwright show` lists the runs with their threads"
            raise ThreadNotFound(text, thread_id=wanted.thread_id)
        if rows:
            for line in table(_listed(rows, store.ledger), screen.width):
                screen.line(line)
        else:
            screen.line(f"no such runs in {place()}" if wanted.is_narrowed else f"no runs in {place()}")
        if older:
            last = short(rows[-1].id, store.ledger.runs.matching)
            screen.prose(f"{counted(len(rows), 'run')} shown, the newest first; for older ones: --before {quote(last)}")
        screen.data([plain_run(row) for row in rows])
    return Exit.DONE


def _wanted(wanted: Wanted, ledger: Ledger) -> Sequence[RunRow]:
    """Read the runs from their index, and one more, which tells whether there are older ones."""
    now = ledger.clock()
    since = 0.0 if wanted.since is None else parse_moment("--since", wanted.since, now)
    before = math.inf if wanted.before is None else _before(wanted.before, ledger, now)
    times: dict[str, float] = {"since": since, "before": before}
    return ledger.runs.list(status=wanted.status, thread_id=wanted.thread_id, limit=wanted.limit + 1, **times)


def _before(typed: str, ledger: Ledger, now: float) -> float:
    """Return the time that is meant: one, or when a run began."""
    try:
        return parse_moment("--before", typed, now)
    except ConfigurationError:
        return find_run(ledger, typed).created_at


def _listed(rows: Sequence[RunRow], ledger: Ledger) -> list[list[str]]:
    """Return the table's rows under their head; a column for the cost stands there only if something has cost."""
    has_cost = any(row.cost_nano for row in rows)
    lines = [["run", "thread", "age", "status", *(["cost"] if has_cost else []), "task"]]
    for row in rows:
        status = f"{row.status} ({row.reason})" if row.reason else row.status
        if row.parked_until is not None:
            status = f"{status} (parked, {age(row.parked_until - ledger.clock())})"
        cost = [money(Decimal(row.cost_nano) / NANO)] if has_cost else []
        since = age(ledger.clock() - row.created_at)
        lines.append([short(row.id, ledger.runs.matching), fit(row.thread_id, 12), since, status, *cost, row.task])
    return lines


def show_one(typed: str, screen: Screen) -> Exit:
    """Show all that is known of one run."""
    with open_store() as store:
        row = find_run(store.ledger, typed)
        result = _read(row, store)
        show_run(row, result, store.ledger, screen)
        screen.data(_plain_page(row, result, store.ledger))
    return Exit.DONE


def _read(row: RunRow, store: Checkpoints) -> RunResult:
    """Read a run's state. All agents share one ring, so that this needs none of the user's code."""
    reader = create_agent("demo", [])
    return SyncRuns(reader, store).get(row.id)


def _plain_page(row: RunRow, result: RunResult, ledger: Ledger) -> Plain:
    return {
        **plain_run(row),
        **plain_result(result),
        "approvals": [plain_approval(approval) for approval in ledger.approvals.of_run(row.id)],
        "effects": [plain_effect(effect) for effect in ledger.effects.of_run(row.id)],
        "attempts": [plain_attempt(attempt) for attempt in ledger.spend.of_run(row.id)],
        "log": [plain_record(record) for record in ledger.log.records(row.id)],
    }


def check_agent(agent: str, screen: Screen) -> Exit:
    """Print what `check` finds."""
    report = check(load_agent(parse_reference(agent)))
    screen.line(f"agent {report.name!r}", bold=True)
    for question, answer in report.answers:
        screen.line()
        screen.prose(question)
        screen.prose(answer, indent="  ")
    screen.line()
    screen.line(counted(len(report.findings), "finding"), bold=True)
    for found in report.findings:
        screen.prose(f"{found.tool}: {found.problem}; {found.way_out}", indent="  ")
    answers = [{"question": question, "answer": answer} for question, answer in report.answers]
    findings = [{"tool": each.tool, "problem": each.problem, "way_out": each.way_out} for each in report.findings]
    screen.data({"name": report.name, "answers": answers, "findings": findings})
    return Exit.DONE
