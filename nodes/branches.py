"""A branch: a second way on from an older checkpoint, or from a state that was changed by hand."""

from __future__ import annotations

import uuid
from typing import Any

from loopwright.state import AgentState, RunStatus, Verdict, current_run

from .judging import ask_anew, ensure_open
from .parking import open_parking, waits_for_model
from .port import Port


async def reopen(state: AgentState, port: Port) -> None:
    """Note in the ledger that a run goes on which had ended there: it can wait, be decided and be recovered again."""
    run = current_run(state)
    if run is None or RunStatus(run["status"]).is_final:
        return
    ledger = await port.ledger()
    await port.ask(ledger, ledger.reopen, run["id"], port.place.thread_id)


def is_entered(state: AgentState, port: Port) -> bool:
    """Tell whether the state knows of the branch that its caller asked for, if one was asked for."""
    origin = port.place.branch_from
    return not origin or state["run"].get("branch", "").startswith(f"{origin}/")


def named(state: AgentState, port: Port) -> AgentState:
    """Return the state with a name for its branch: the checkpoint it comes from, and a number that no other one has."""
    branch = f"{port.place.branch_from}/{uuid.uuid4().hex[:8]}"
    return {**state, "run": {**state["run"], "branch": branch}}


async def enter(state: AgentState, port: Port) -> dict[str, Any]:
    """Begin a branch at a question: what another branch decided is asked anew, before anybody is shown it."""
    if waits_for_model(state["run"]):
        return await open_parking(state, port)
    ledger = await port.ledger()
    asked = [call["approval"] for call in state["turn"] if call["verdict"] == Verdict.ASK]
    standing = await port.ask(ledger, ledger.approvals.standing, asked)
    turn = ask_anew(state["turn"], standing, state["run"].get("branch", ""), state, port)
    await ensure_open([call for call in turn if call["verdict"] == Verdict.ASK], state, port, ledger)
    return {"turn": turn, "run": state["run"]}
