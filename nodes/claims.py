"""How the effect of a call is named: the same when its step is repeated, another when it is put on the table anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from loopwright.checkpoints import ClaimRequest, EffectRow
from loopwright.state import Call, digest
from loopwright.tools import Contract, EffectKind

from .screening import call_digest

_BRANCH = "@"
"""Parts the key of a place from the branch on which the call is another one."""
_BRANCH_DIGITS = 12


def place_of_call(call: Call, *, thread_id: str, run_id: str, step: int) -> str:
    """Name a call by its place in its run."""
    return digest(thread_id, run_id, step, call["ordinal"], call["attempt"])


def claim_on_branch(request: ClaimRequest, branch: str, begun: Sequence[EffectRow]) -> ClaimRequest:
    """Return the claim of a call on a branch of its thread.

    The very same call was begun in this place once, on whichever branch, and is not begun again. Any other call is a
    new one, screened and perhaps asked about here: it has a place of its own.
    """
    if request.own_key:
        return request
    for row in begun:
        if row.digest == request.digest and row.key.partition(_BRANCH)[0] == request.key:
            return replace(request, id=row.id, key=row.key)
    key = f"{request.key}{_BRANCH}{digest(branch)[:_BRANCH_DIGITS]}"
    return replace(request, id=digest("effect", key), key=key)


def is_of_branch(row: EffectRow, branch: str) -> bool:
    """Tell whether an effect was first claimed on this very branch."""
    return row.key.endswith(f"{_BRANCH}{digest(branch)[:_BRANCH_DIGITS]}")


def claim_of(contract: Contract, call: Call, *, thread_id: str, run_id: str, step: int) -> ClaimRequest:
    """Return what claims the effect of a call: under the tool's own key if it has one, else under its place."""
    own = contract.effect_key(call["args"])
    key = own or place_of_call(call, thread_id=thread_id, run_id=run_id, step=step)
    return ClaimRequest(
        id=digest("effect", key),
        key=key,
        digest=call_digest(call),
        tool=contract.name,
        run_id=run_id,
        thread_id=thread_id,
        repeatable=contract.effect is EffectKind.IDEMPOTENT,
        own_key=bool(own),
    )
