"""The command that ends a run."""

from __future__ import annotations

from loopwright.checkpoints import Checkpoints, RunRow
from loopwright.errors import ConfigurationError
from loopwright.runs import Receipt, SyncRuns

from .exits import Exit
from .finding import find_run, short
from .following import follow
from .loading import load_agent_of, open_store
from .plain import plain_receipt, plain_result, plain_run
from .screen import Screen
from .text import age, clean


def cancel(typed: str, by: str, screen: Screen) -> Exit:
    """End a run; where its agent cannot be loaded here, note the wish for who drives it."""
    with open_store() as store:
        row = find_run(store.ledger, typed)
        try:
            agent, reference = load_agent_of(row.agent, row.id)
        except ConfigurationError as error:
            return _noted(error, row, by, store, screen)
        runs = SyncRuns(agent, store, reference=reference)
        receipt = runs.cancel(row.id, by=by)
        if not receipt.accepted:
            return _late(receipt, store, screen)
        screen.line(f"run {short(row.id, store.ledger.runs.matching)}: cancelled by {clean(by)}")
        result = follow(agent, runs, find_run(store.ledger, row.id), store, screen)
        screen.data(plain_receipt(receipt, plain_result(result)))
        return Exit.DONE


def _noted(error: ConfigurationError, row: RunRow, by: str, store: Checkpoints, screen: Screen) -> Exit:
    """Note the cancellation in the ledger alone: every call of a model, or with an effect, looks there before."""
    won = store.ledger.cancel(row.id, by)
    now = find_run(store.ledger, row.id)
    kind = "cancel" if now.cancel_by else now.status
    receipt = Receipt(row.id, won, {"type": kind}, now.cancel_by or now.worker, now.updated_at)
    if not won:
        return _late(receipt, store, screen)
    screen.note(error.message)
    screen.prose("the cancellation is noted: the run ends before its next call of a model, or of a tool with an effect")
    screen.data(plain_receipt(receipt, plain_run(now)))
    return Exit.DONE


def _late(receipt: Receipt, store: Checkpoints, screen: Screen) -> Exit:
    """Tell that the run has ended, or is being ended by somebody else; nothing is changed."""
    ledger = store.ledger
    now = find_run(ledger, receipt.run_id)
    run = short(now.id, ledger.runs.matching)
    if now.cancel_by:
        told = f"run {run} was already cancelled by {clean(now.cancel_by)}"
    else:
        reason = f" ({now.reason})" if now.reason else ""
        told = f"run {run} has already ended, {age(ledger.clock() - now.updated_at)} ago: {now.status}{reason}"
    screen.prose(f"{told}; nothing was changed")
    screen.data(plain_receipt(receipt, plain_run(now)))
    return Exit.DONE if now.cancel_by or now.status == "cancelled" else Exit.ERROR
