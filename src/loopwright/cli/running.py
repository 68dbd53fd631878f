"""The commands that drive runs: run, resume and recover."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from loopwright.checkpoints import Checkpoints, RunRow
from loopwright.errors import LoopwrightError
from loopwright.runs import RunResult, SyncRuns

from .exits import Exit, exit_of
from .finding import find_run, short
from .following import follow
from .loading import Reference, is_loadable, load_agent, load_agent_of, open_store, parse_reference
from .plain import Plain, plain_result
from .screen import Screen
from .text import age, fit


def run_task(
    message: str,
    thread_id: str | None,
    agent: str,
    changes: Mapping[str, str],
    screen: Screen,
    *,
    requester: str = "",
    labels: Mapping[str, str] | None = None,
    context: Mapping[str, Any] | None = None,
    state: Mapping[str, Any] | None = None,
) -> Exit:
    """Start a run and drive it until it pauses or ends."""
    plain = parse_reference(agent)
    reference = Reference(plain.target, {**plain.changes, **changes})
    loaded = load_agent(reference)
    with open_store(create=True) as store:
        runs = SyncRuns(loaded, store, reference=str(reference))
        thread = uuid.uuid4().hex[:12] if thread_id is None else thread_id
        started = runs.start(
            message, thread_id=thread, requester=requester, labels=labels, context=context, state=state
        )
        result = follow(loaded, runs, find_run(store.ledger, started.id), store, screen)
    screen.data(plain_result(result))
    return exit_of(result.status)


def resume_run(typed: str, screen: Screen) -> Exit:
    """Drive a run that nobody drives; of one that waits or has ended, say so."""
    with open_store() as store:
        result = drive(find_run(store.ledger, typed), store, screen)
    screen.data(plain_result(result))
    return exit_of(result.status)


def drive(row: RunRow, store: Checkpoints, screen: Screen) -> RunResult:
    """Load the agent of a run's row, and drive the run until it pauses or ends."""
    agent, reference = load_agent_of(row.agent, row.id)
    return follow(agent, SyncRuns(agent, store, reference=reference), row, store, screen)


@dataclass
class _Recovered:
    runs: list[Plain] = field(default_factory=list[Plain])
    failed: list[Plain] = field(default_factory=list[Plain])
    left: list[Plain] = field(default_factory=list[Plain])
    """What only the program that started it can carry on."""
    held: list[Plain] = field(default_factory=list[Plain])
    """What a worker drives, or seemed to a moment ago."""


def recover_runs(screen: Screen) -> Exit:
    """Carry on what crashed workers have left, whatever agents it belongs to."""
    done = _Recovered()
    with open_store() as store:
        for row in store.ledger.runs.unfinished():
            _recover(row, store, done, screen)
        _show_held(store, done, screen)
    if not (done.runs or done.failed or done.held):
        screen.line("nothing to recover")
    screen.data({"runs": done.runs, "failed": done.failed, "left": done.left, "held": done.held})
    return Exit.ERROR if done.failed else Exit.DONE


def _recover(row: RunRow, store: Checkpoints, done: _Recovered, screen: Screen) -> None:
    if not is_loadable(row.agent):
        if store.ledger.end_abandoned(row):
            return
        done.left.append({"run_id": row.id, "agent": row.agent})
        return
    id_ = short(row.id, store.ledger.runs.matching)
    screen.line(fit(f"run {id_}: {row.task}", screen.width), bold=True)
    try:
        done.runs.append(plain_result(drive(row, store, screen)))
    except LoopwrightError as error:
        done.failed.append({"run_id": row.id, **error.to_json()})
        screen.note(f"error: run {id_}: {error.message}")
    screen.gap()


def _show_held(store: Checkpoints, done: _Recovered, screen: Screen) -> None:
    """Name the runs with a live lease: a worker that has just crashed is not missed before its lease runs out."""
    recovered = {run["run_id"] for run in done.runs}
    for row in store.ledger.runs.list(status="running"):
        lease = store.ledger.leases.holder(row.thread_id)
        if lease is None or row.id in recovered:
            continue
        done.held.append({"run_id": row.id, "worker": lease.owner, "until": lease.until})
        id_ = short(row.id, store.ledger.runs.matching)
        left = age(lease.until - store.ledger.clock() + 1)
        screen.line(
            fit(f"run {id_}: worker {lease.owner} drives it; if it is gone, recover again in {left}", screen.width)
        )
