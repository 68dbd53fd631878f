"""The command that gives a stopped run more."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from loopwright.runs import SyncRuns

from .exits import Exit, exit_of
from .finding import find_run, short
from .following import follow
from .loading import load_agent_of, open_store
from .plain import plain_receipt, plain_result
from .screen import Screen
from .text import clean


def extend(typed: str, more: Mapping[str, Any], cost: Decimal, by: str, screen: Screen) -> Exit:
    """Add to the limits of a run that stopped at one, and drive it on."""
    with open_store() as store:
        row = find_run(store.ledger, typed)
        agent, reference = load_agent_of(row.agent, row.id)
        runs = SyncRuns(agent, store, reference=reference)
        receipt = runs.extend(row.id, by=by, cost=cost, **more)
        run = short(row.id, store.ledger.runs.matching)
        if receipt.accepted:
            screen.line(f"run {run}: extended by {clean(by)}")
        else:
            screen.prose(f"run {run} was already extended by {clean(receipt.by)}; nothing was added")
        result = follow(agent, runs, find_run(store.ledger, row.id), store, screen)
        screen.data(plain_receipt(receipt, plain_result(result)))
        return exit_of(result.status)
