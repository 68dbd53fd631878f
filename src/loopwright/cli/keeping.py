"""The commands about what is kept: log, prune and reseal."""

from __future__ import annotations

import math

from .arguments import parse_moment
from .exits import Exit
from .finding import find_run
from .loading import open_store, place
from .plain import plain_record
from .records import show_records
from .screen import Screen
from .text import counted

DAY = 86_400


def show_log(typed: str | None, screen: Screen, *, since: str | None = None, until: str | None = None) -> Exit:
    """List the log's records, of one run or all, oldest first; of a time, if one is given."""
    with open_store() as store:
        now = store.ledger.clock()
        records = store.ledger.log.records(
            find_run(store.ledger, typed).id if typed else "",
            since=0.0 if since is None else parse_moment("--since", since, now),
            until=math.inf if until is None else parse_moment("--until", until, now),
        )
        show_records(records, screen, has_runs=not typed)
        screen.line(f"{counted(len(records), 'record')} in {place()}")
        screen.data([plain_record(record) for record in records])
    return Exit.DONE


def verify_log(screen: Screen) -> Exit:
    """Recompute the log's chain, and tell of every record that was changed, moved, left out or added."""
    with open_store() as store:
        report = store.ledger.log.verify()
    for problem in report.problems:
        screen.prose(problem)
    told = counted(report.records, "record")
    whole = f"the log of {place()} is whole: {told}, each chained to the one before"
    screen.prose(whole if report.is_whole else f"the log of {place()} was tampered with: see above")
    screen.data({"records": report.records, "is_whole": report.is_whole, "problems": [*report.problems]})
    return Exit.DONE if report.is_whole else Exit.ERROR


def prune_threads(days: float, screen: Screen) -> Exit:
    """Shrink what ended more than so many days ago to its last state."""
    with open_store() as store:
        report = store.prune(older_than=days * DAY)
    told = f"{counted(report.threads, 'thread')} shrunk, {counted(report.checkpoints, 'checkpoint')} deleted"
    busy = f"; {counted(report.busy, 'thread')} left alone, since somebody drives them" if report.busy else ""
    screen.line(f"{told}{busy} in {place()}")
    screen.data({"threads": report.threads, "checkpoints": report.checkpoints, "busy": report.busy})
    return Exit.DONE


def reseal_all(screen: Screen) -> Exit:
    """Seal all anew with the first key; tell what still needs another one."""
    with open_store() as store:
        report = store.reseal()
    for problem in report.problems:
        screen.prose(problem)
    left = f"{counted(report.left, 'row')} still need another key: keep it" if report.left else "none needs another key"
    screen.line(f"{counted(report.rewritten, 'row')} sealed anew with the first key in {place()}; {left}")
    screen.data({"rewritten": report.rewritten, "left": report.left, "problems": [*report.problems]})
    return Exit.DONE if report.is_complete else Exit.ERROR
