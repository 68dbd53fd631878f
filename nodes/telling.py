"""What is told of a turn: its tool messages, its entries in the trail, what strangers wrote in it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage

from loopwright.policy import Kind
from loopwright.state import AgentState, Call, Outcome, TrailEntry, Verdict, excerpt
from loopwright.tools import FULL_TEXT, Shown, reader_id, shares, show

from .context import Fence, source_of
from .ladder import LOOP_NOTES
from .port import Port
from .screening import call_digest

logger = logging.getLogger(__name__)

_OUTCOMES = {
    Verdict.DENY: Outcome.DENIED,
    Verdict.INVALID: Outcome.INVALID,
    Verdict.NOT_RUN: Outcome.NOT_RUN,
    Verdict.ASK: Outcome.NOT_RUN,
    Verdict.ALLOW: Outcome.NOT_RUN,
    Verdict.UNKNOWN: Outcome.UNKNOWN,
    Verdict.HELD: Outcome.NOT_RUN,
}
_NEVER_BEGUN = (Outcome.INVALID, Outcome.DENIED, Outcome.REJECTED, Outcome.NOT_RUN)
"""Their tool messages are marked `executed: False`, so that nobody counts them as calls of the tool."""


def told_of(turn: list[Call], state: AgentState, port: Port) -> dict[str, Any]:
    """Return the turn as tool messages, in call order, as trail entries, and with the sources of foreign text."""
    run_id, step = state["run"]["id"], state["usage"]["steps"]
    turn, written = _folded(turn, state, port)
    fitting = zip(turn, shares([len(text_of(call)) for call in turn], port.spec.caps), strict=True)
    messages = [_message(call, share, run_id, step, port) for call, share in fitting]
    told: dict[str, Any] = {"messages": messages, "trail": [_entry(call, run_id, step) for call in turn]}
    taint = [
        source_of(call, message, text_of(call), run_id, step)
        for call, message in zip(turn, messages, strict=True)
        if _is_foreign(call, port)
    ]
    return {**written, **told, "taint": taint} if taint else {**written, **told}


def _folded(turn: list[Call], state: AgentState, port: Port) -> tuple[list[Call], Mapping[str, Any]]:
    """Return the turn, and what its calls' updates make of the open channels, each told with its result, once.

    A call alone was seen to fit when it ran. Where several do not fit together, the later one says so.
    """
    updates = [result.get("update", {}) if (result := call.get("result")) else {} for call in turn]
    if not any(updates):
        return turn, {}
    folded = port.spec.open_channels.folded(updates, state)
    return [_marked(call, folded.refused.get(place)) for place, call in enumerate(turn)], folded.written


def _marked(call: Call, refused: str | None) -> Call:
    """Return a call whose result says that its update was not taken in."""
    result = call.get("result")
    if refused is None or result is None:
        return call
    logger.warning("an update by %s was not taken in: %s", call["name"], refused, extra={"action": "update_refused"})
    text = f"{result['text']}\n\nERROR: its update of the state was not taken in: {refused}"
    return {**call, "result": {**result, "text": text}}


def _is_foreign(call: Call, port: Port) -> bool:
    """Tell whether strangers may have written what the model reads about a call."""
    contract = port.spec.tools.get(call["name"])
    return contract is not None and contract.untrusted and outcome_of(call) in (Outcome.DONE, Outcome.ERROR)


def _message(call: Call, share: int, run_id: str, step: int, port: Port) -> ToolMessage:
    outcome = outcome_of(call)
    name = f"tool-{run_id}-{step}-{call['ordinal']}"
    shown = show(text_of(call), share, reader_id(name))
    fence = Fence(call["name"], f"{run_id}/{step}/{call['ordinal']}") if _is_foreign(call, port) else None
    return ToolMessage(
        _noted(call, _content(call, shown, fence)),
        artifact=_artifact(call, shown),
        tool_call_id=call["id"],
        name=call["name"] or "unknown",
        id=name,
        status="success" if outcome in (Outcome.DONE, Outcome.ANSWERED) else "error",
        additional_kwargs={"executed": False} if outcome in _NEVER_BEGUN else {},
    )


def _content(call: Call, shown: Shown, fence: Fence | None) -> Any:
    """Return the message's content; text by strangers is fenced.

    Blocks are shown as they are while their texts fit; else what is left is text.
    """
    result = call.get("result")
    blocks = result.get("blocks") if result else None
    if blocks and not shown.notice:
        return [{**one, "text": fence.around(one["text"])} if fence and "text" in one else one for one in blocks]
    return (fence.around(shown.text) if fence else shown.text) + shown.notice


def _noted(call: Call, content: Any) -> Any:
    """Put the loop guard's note, if there is one, behind what the tool said."""
    kind = call.get("loop")
    if not kind:
        return content
    note = LOOP_NOTES[Kind(kind)]
    return [*content, {"type": "text", "text": note}] if isinstance(content, list) else f"{content}\n\n{note}"


def _artifact(call: Call, shown: Shown) -> Any:
    """Return what is kept beside the content: the tool's own artifact, and the whole of a text that was shortened."""
    result = call.get("result")
    own = result.get("artifact") if result else None
    return {"type": FULL_TEXT, "text": text_of(call), "artifact": own} if shown.notice else own


def text_of(call: Call) -> str:
    """Return what there is to say about a call; of a result the whole text."""
    result = call.get("result")
    if result:
        return result["text"]
    why = call["why"]
    return why if why.startswith("not run") else f"ERROR: {why}"


def outcome_of(call: Call) -> Outcome:
    """Return what came of the call; one without a result did not run, or nobody knows."""
    result = call.get("result")
    if result:
        return Outcome(result["outcome"])
    if call["verdict"] == Verdict.DENY and call["approval"]:
        return Outcome.REJECTED
    return _OUTCOMES.get(Verdict(call["verdict"]), Outcome.NOT_RUN)


def _entry(call: Call, run_id: str, step: int) -> TrailEntry:
    result = call.get("result")
    entry = TrailEntry(
        run=run_id,
        step=step,
        tool=call["name"],
        args=call["args"],
        digest=call_digest(call),
        thought=excerpt(call["thought"]),
        verdict=call["verdict"],
        why=excerpt(call["why"]),
        by=call["by"],
        outcome=outcome_of(call),
        observation=excerpt(text_of(call)),
        began=result["began"] if result else 0.0,
        seconds=result["seconds"] if result else 0.0,
    )
    if "loop" in call:
        entry["loop"] = call["loop"]
    if result and "tries" in result:
        entry["tries"] = result["tries"]
    if result and result.get("cost_nano"):
        entry["cost_nano"] = result.get("cost_nano", 0)
    proposed = call.get("proposed")
    return {**entry, "proposed": proposed} if proposed else entry
