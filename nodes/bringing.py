"""What a call brings into the state beside its text: kept with its effect, so that a crash loses nothing of it."""

from __future__ import annotations

import json

from loopwright.checkpoints import Brought, EffectRow, EffectStatus
from loopwright.state import Outcome, Result
from loopwright.tools import MAX_KEPT, Output, to_plain_data


def brought_of(output: Output, place: str) -> Brought | None:
    """Return what is to be kept of an output with its effect; None where its text is all.

    Args:
        output: Of the call.
        place: Of the call in its run.
    """
    brought = Brought(place=place)
    if output.refused:
        return {**brought, "refused": True}
    if output.update:
        brought["update"] = {**output.update}
    artifact, blocks = to_plain_data(output.artifact), to_plain_data([*output.blocks])
    if len(json.dumps([artifact, blocks])) <= MAX_KEPT:  # what is longer is kept with its message alone
        if artifact is not None:
            brought["artifact"] = artifact
        if blocks:
            brought["blocks"] = blocks
    return brought if len(brought) > 1 else None


def with_output(result: Result, output: Output) -> Result:
    """Add to a result what its call has just brought beside the text."""
    if output.blocks:
        result = {**result, "blocks": [*output.blocks]}
    if output.update:
        result = {**result, "update": {**output.update}}
    return result if output.artifact is None else {**result, "artifact": output.artifact}


def with_brought(result: Result, row: EffectRow, place: str) -> Result:
    """Add to a result what the ledger knows that this very call has brought.

    An effect that answers a call in another place, of another run or under a key of the tool's own, brings its text
    alone: what it brought into the state was taken in there.
    """
    brought = row.brought
    if row.status != EffectStatus.DONE or brought.get("place") != place:
        return result
    if brought.get("refused"):
        return {**result, "outcome": Outcome.ERROR}
    if "update" in brought:
        result = {**result, "update": brought["update"]}
    if row.result != result["text"]:  # told as done elsewhere: that is to be read, and not only seen
        return result
    if "blocks" in brought:
        result = {**result, "blocks": brought["blocks"]}
    return {**result, "artifact": brought["artifact"]} if "artifact" in brought else result
