"""How the effect of a call is named: the same when its step is repeated, another when it is put on the table anew."""

from __future__ import annotations

from dataclasses import replace

from loopwright.checkpoints import ClaimRequest, EffectRow, EffectStatus
from loopwright.state import Call, digest
from loopwright.tools import Contract, EffectKind

from .screening import call_digest


def place_of_call(call: Call, *, thread_id: str, run_id: str, step: int) -> str:
    """Name a call by its place in its run."""
    return digest(thread_id, run_id, step, call["ordinal"], call["attempt"])


def claim_on_branch(request: ClaimRequest, call: Call, before: EffectRow | None) -> ClaimRequest:
    """Return the claim of a call on a branch of its thread.

    The very same call was done once, and is not done again. Where another call stands settled in its place, this one
    is new, since a person decided about it anew: it has a place of its own.
    """
    if before is None or request.own_key or before.digest == request.digest:
        return request
    if EffectStatus(before.status) not in (EffectStatus.DONE, EffectStatus.FAILED):
        return request
    key = digest(request.key, call["branch"])
    return replace(request, id=digest("effect", key), key=key)


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
