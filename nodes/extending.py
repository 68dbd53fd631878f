"""How a run that met a limit goes on with more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import HumanMessage

from loopwright.checkpoints import Drawn, extensions_of
from loopwright.state import (
    NUDGE,
    Added,
    AgentState,
    RunRecord,
    RunStatus,
    Share,
    StopReason,
    add_seconds,
    current_run,
    remove_run,
)

from .compaction import context_of
from .port import Port
from .reservation import left_of_share, plan_attempt
from .spec import AgentSpec

_OF_ITS_ENDING = ("over_limit", "limit", "purpose", "stop", "cancelled_by", "malformed", "output", "parked")
"""What a run's record says of how it ended; the rest, such as its requester, holds as long as the run does."""

GO_ON = "You may go on: more was allowed. Continue with the task."


def extension_message(run_id: str, number: int) -> HumanMessage:
    """Return the message by which a run takes up its extension; the same one however often it is sent."""
    return HumanMessage(GO_ON, id=f"{NUDGE}extend-{run_id}-{number}")


def sum_of(extensions: Sequence[Mapping[str, Any]]) -> Added:
    """Return what was added in all."""
    return Added(
        steps=sum(one.get("steps", 0) for one in extensions),
        tool_calls=sum(one.get("tool_calls", 0) for one in extensions),
        tokens=sum(one.get("tokens", 0) for one in extensions),
        cost_nano=sum(one.get("cost_nano", 0) for one in extensions),
        seconds=sum(one.get("seconds", 0.0) for one in extensions),
    )


async def extensions_to_take(state: AgentState, port: Port) -> Sequence[Mapping[str, Any]] | None:
    """Return what was added to a run that has ended, by the ledger; None where nothing was, whatever a message says."""
    messages, run = state.get("messages") or [], current_run(state)
    if run is None or not messages or not RunStatus(run["status"]).is_final:
        return None
    if not str(messages[-1].id).startswith(f"{NUDGE}extend-{run['id']}-"):
        return None
    ledger = await port.ledger()
    row = await port.ask(ledger, ledger.runs.find, run["id"])
    extensions = extensions_of(row) if row is not None else []
    return extensions if len(extensions) > run.get("extensions", 0) else None


def go_on(extensions: Sequence[Mapping[str, Any]], state: AgentState, port: Port) -> dict[str, Any]:
    """Open the run again: its counters go on, and count no longer among its thread's earlier runs."""
    run, usage = _reopened(state["run"], extensions), state["usage"]
    thread = remove_run(state["thread"], usage)
    return {"run": run, "thread": thread, "usage": add_seconds(usage, port.elapsed()), "decision": None, "turn": []}


def _reopened(run: RunRecord, extensions: Sequence[Mapping[str, Any]]) -> RunRecord:
    kept = {name: value for name, value in run.items() if name not in _OF_ITS_ENDING}
    on = {"status": RunStatus.RUNNING, "reason": "", "answer": "", "error": ""}
    more = {"added": sum_of(extensions), "extensions": len(extensions)}
    return cast("RunRecord", {**kept, **on, **more})


def budget_met(
    state: AgentState,
    spec: AgentSpec,
    extensions: Sequence[Mapping[str, Any]],
    shares: Sequence[Share],
    drawn: Sequence[Drawn],
) -> str:
    """Return which budget would stop a run at once that goes on with these extensions; empty for none.

    Args:
        state: Of the run that has ended.
        spec: The agent's.
        extensions: All that was added to the run, with what is to be added.
        shares: The budgets that it draws on now.
        drawn: What is drawn of each.
    """
    thread = remove_run(state["thread"], state["usage"])
    again: AgentState = {**state, "run": _reopened(state["run"], extensions), "thread": thread}
    lefts = [left_of_share(share, used) for share, used in zip(shares, drawn, strict=True)]
    plan = plan_attempt(again, context_of(again, spec).messages, spec, shares, lefts)
    is_met = isinstance(plan.room, StopReason) and any(plan.limit.startswith(f"{share}:") for share in shares)
    return plan.limit if is_met else ""
