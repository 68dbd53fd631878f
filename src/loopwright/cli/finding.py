"""Ids as people type them: the beginning is enough, as long as it names one thing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from loopwright.checkpoints import EffectRow, Ledger, RunRow
from loopwright.errors import ApprovalNotFound, EffectNotFound, InvalidDecision, RunNotFound

from .loading import place

SHORTEST = 6
"""Characters of an id that are shown at least: more than are needed today, so that they still do tomorrow."""

Matching = Callable[[str], Sequence[str]]
"""Returns a few ids that begin so."""


def short(id_: str, matching: Matching) -> str:
    """Return the beginning of an id that names nothing else now."""
    for length in range(SHORTEST, len(id_)):
        if len(matching(id_[:length])) <= 1:
            return id_[:length]
    return id_


def find_approval(ledger: Ledger, typed: str) -> str:
    """Return the id of the approval that is meant.

    Raises:
        ApprovalNotFound: If none, or more than one, begins so.
    """
    found = _one(typed, ledger.approvals.matching, "approval")
    if found is None:
        text = f"no approval {typed!r} in {place()}; `loopwright inbox` lists what is open"
        raise ApprovalNotFound(text, approval_id=typed)
    return found


def find_run(ledger: Ledger, typed: str) -> RunRow:
    """Return the row of the run that is meant.

    Raises:
        RunNotFound: If none, or more than one, begins so.
    """
    row = ledger.runs.find(typed)
    if row is None and (found := _one(typed, ledger.runs.matching, "run")):
        row = ledger.runs.find(found)
    if row is None:
        raise RunNotFound(f"no run {typed!r} in {place()}; `loopwright show` lists the runs", run_id=typed)
    return row


def find_effect(ledger: Ledger, typed: str) -> EffectRow:
    """Return the effect that is meant.

    Raises:
        EffectNotFound: If none, or more than one, begins so.
    """
    found = _one(typed, ledger.effects.matching, "effect")
    if found is None:
        text = f"no effect {typed!r} in {place()}; `loopwright show RUN` lists a run's effects"
        raise EffectNotFound(text, effect_id=typed)
    return ledger.effects.get(found)


def _one(typed: str, matching: Matching, noun: str) -> str | None:
    found: Sequence[str] = matching(typed) if typed else ()
    if len(found) > 1:
        text = f"more than one {noun} begins with {typed!r}: {', '.join(found)}; type more of it"
        raise InvalidDecision(text, typed=typed, found=found)
    return found[0] if found else None
