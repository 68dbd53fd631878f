"""Drives a run and shows each step as it happens."""

from __future__ import annotations

from shlex import quote

import click

from loopwright.checkpoints import Checkpoints, RunRow
from loopwright.graphs import Agent
from loopwright.models.demo import BANNER, DemoModel
from loopwright.nodes import told_next
from loopwright.policy import REFLECTION
from loopwright.runs import Event, EventKind, RunResult, SyncRuns
from loopwright.state import CompactionRecord, FailedAttempt, Objection, RunStatus, TrailEntry, excerpt

from .finding import short
from .questions import asked, show_parked, show_question
from .screen import Screen
from .text import age, counted, fit, money, step_line

_THOUGHT = 400


def follow(agent: Agent, runs: SyncRuns, row: RunRow, store: Checkpoints, screen: Screen) -> RunResult:
    """Drive a run until it pauses or ends, or wait for who drives it; shows the steps, then how it stands."""
    if type(agent.spec.model) is DemoModel and not row.is_final:
        screen.note_once(BANNER)
    _show_who_drives(row, store, screen)
    speech = Speech(screen)
    try:
        result = _followed(runs, row, speech, screen)
        show_standing(result, store, screen, is_told=speech.text.strip() == result.answer.strip())
    except (KeyboardInterrupt, BrokenPipeError) as error:
        why = "interrupted" if isinstance(error, KeyboardInterrupt) else "nobody reads the output any more"
        id_ = short(row.id, store.ledger.runs.matching)
        screen.note(f"{why}; run {id_} is kept as it stands, carry it on with: loopwright resume {quote(id_)}")
        raise
    return result


class Speech:
    """A model's text, shown as it comes.

    Attributes:
        text: What was shown of the newest reply.
    """

    def __init__(self, screen: Screen) -> None:
        """Nothing is said yet."""
        self.text = ""
        self._screen = screen
        self._is_open = False

    def say(self, text: str) -> None:
        """Show a piece."""
        if not self._is_open:
            self._screen.gap()
            self.text = ""
        self._is_open = True
        self.text += text
        self._screen.piece(text)

    def end(self) -> None:
        """End the line that a piece has left open."""
        if self._is_open:
            self._screen.end_piece()
        self._is_open = False

    def forget(self) -> None:
        """Take a reply for not said: another one comes in its place."""
        self.end()
        self.text = ""


def _show_who_drives(row: RunRow, store: Checkpoints, screen: Screen) -> None:
    lease = store.ledger.leases.holder(row.thread_id)
    if lease is not None:
        left = age(lease.until - store.ledger.clock() + 1)
        screen.note(f"worker {lease.owner} has this thread, for {left} more unless it says otherwise; waiting for it")


def _followed(runs: SyncRuns, row: RunRow, speech: Speech, screen: Screen) -> RunResult:
    for event in runs.follow(row.id, tokens=screen.streams):
        if event.kind is EventKind.TEXT:
            speech.say(event.text)
            continue
        speech.end()
        if event.result is not None:
            return event.result
        _show(event, speech, screen)
    raise click.ClickException(f"run {row.id} came to no rest")


def _show(event: Event, speech: Speech, screen: Screen) -> None:
    if event.kind is EventKind.DECIDED:
        thought = (event.decision or {}).get("thought")
        if thought and not speech.text:
            screen.prose(f"thought: {excerpt(thought, _THOUGHT)}", indent="    ", dim=True)
    if event.progress is not None:
        screen.prose(f"{event.progress.tool}: {event.progress.text}", indent="    ", dim=True)
    if event.entry is not None:
        show_step(event.entry, screen)
    if event.objection is not None:
        show_objection(event.objection, screen)
    if event.compaction is not None:
        show_compaction(event.compaction, screen)
    if event.failure is not None:
        speech.forget()
        show_failure(event.failure, screen)


def show_failure(failure: FailedAttempt, screen: Screen) -> None:
    """Write a failed attempt at a model, and what follows it."""
    mark = "[retry]" if failure["next"] else "[failed]"
    text = f"{mark} {failure['model']}: {failure['error']}; {told_next(failure)}"
    screen.line(fit(text, screen.width), dim=True)


def show_step(entry: TrailEntry, screen: Screen) -> None:
    """Write one call of the trail on one line."""
    screen.line(step_line(entry["step"], entry["tool"], entry["args"], entry["observation"], screen.width))


def show_objection(objection: Objection, screen: Screen) -> None:
    """Write on one line what was wrong with a final answer: what a check said, or the model itself."""
    by = "reflect" if objection["by"] == REFLECTION else "check"
    screen.line(fit(f"[{by}] {objection['text']}", screen.width))


def show_compaction(made: CompactionRecord, screen: Screen) -> None:
    """Write on one line what the model is no longer sent whole: a summary's words, or what else was done."""
    if made["made"]:
        screen.line(fit(f"[summary] {made['left_out']} messages are now: {made['summary']}", screen.width))
    elif made["gap"]:
        screen.line(fit(f"[left out] {made['gap'].strip('()')}", screen.width))
    else:
        screen.line(fit(f"[shortened] old results; about {made['tokens']:,} tokens are sent now", screen.width))


def show_standing(result: RunResult, store: Checkpoints, screen: Screen, *, is_told: bool = False) -> None:
    """Write how a run stands: what it asks, or its answer unless it is told already, with what it used."""
    ledger = store.ledger
    if result.status is RunStatus.WAITING:
        for approval in result.approvals:
            screen.gap()
            screen.line(f"waiting for a person: {asked(approval.question)}")
            show_question(approval, ledger, screen)
        if result.parked is not None:
            screen.gap()
            show_parked(result.parked, ledger, screen)
    elif result.answer and not is_told:
        screen.gap()
        screen.prose(result.answer)
    if result.error:
        screen.gap()
        screen.prose(f"error: {result.error}")
    screen.gap()
    run = short(result.run_id, ledger.runs.matching)
    screen.prose(f"{standing(result)}\nrun {run}, thread {result.thread_id}", dim=True)


def standing(result: RunResult) -> str:
    """Say in one line how a run stands, and what it used so far."""
    reason = f" ({result.stop_reason})" if result.stop_reason else ""
    over = f", over the limit {result.over_limit}" if result.over_limit else ""
    over = f", {result.limit}" if result.limit and not result.limit.startswith("the run") else over
    usage = result.usage
    used = [counted(usage.steps, "step"), counted(usage.tool_calls, "tool call"), counted(usage.tokens, "token")]
    cost = [money(usage.cost)] if usage.cost else []
    return f"{result.status}{reason}{over}: {', '.join([*used, *cost])}"
