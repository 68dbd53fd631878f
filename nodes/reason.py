"""`reason`: the one place that calls a model, and that turns its reply into a decision."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langgraph.errors import GraphBubbleUp

from loopwright.checkpoints import Attempt, Opened
from loopwright.crash import CrashPoint, reached
from loopwright.models import UNKNOWN_OUTPUT, estimate_input, hide_keys, ids_of, read_reply, tokens_of
from loopwright.policy import over_limit, seconds_left
from loopwright.state import (
    AgentState,
    StopReason,
    Tokens,
    UsageRecord,
    add_attempt,
    add_seconds,
    add_step,
    dump_decision,
    excerpt,
)
from loopwright.tools import OutOfTime, safe_str

from .port import Port
from .spec import AgentSpec


async def reason(state: AgentState, port: Port) -> dict[str, Any]:
    """Make one attempt at the model; its row stands in the ledger before the call is made.

    A model that fails ends the run (`failed`, `error`): the thread can be carried on with a new task.
    """
    run, step = state["run"], state["usage"]["steps"] + 1
    sent = _sent(state["messages"], port.spec)
    estimate = Tokens(estimate_input(sent), UNKNOWN_OUTPUT, estimated=True)
    opened = await _open(run["id"], step, estimate, port)
    usage = _with_lost(state["usage"], opened.lost)
    if opened.cancelled_by:
        stopped = {**run, "stop": StopReason.CANCELLED, "cancelled_by": opened.cancelled_by}
        return {"run": stopped, "usage": add_seconds(usage, port.elapsed())}
    if opened.lost and (why := over_limit(port.spec.limits, usage)):
        await _settle_nothing(run["id"], step, opened.number, port)
        return _failed(state, usage, why, "", port)
    reached(CrashPoint.BEFORE_MODEL)
    try:
        reply = await port.model(sent, seconds_left(port.spec.limits, usage))
    except GraphBubbleUp:
        raise
    except OutOfTime:
        return _failed(state, add_attempt(usage, estimate, _cost(estimate, port)), StopReason.DEADLINE, "", port)
    except Exception as error:  # noqa: BLE001 -- whatever a client raises, the run ends with a status
        said = f"{type(error).__name__}: {excerpt(hide_keys(safe_str(error), port.spec.model), 500)}"
        await _settle_nothing(run["id"], step, opened.number, port)
        return _failed(state, add_attempt(usage, Tokens(0, 0), 0), StopReason.ERROR, said, port)
    reached(CrashPoint.AFTER_MODEL)
    return await _decided({**state, "usage": usage}, reply, estimate, opened.number, port)


def _sent(messages: Sequence[AnyMessage], spec: AgentSpec) -> list[AnyMessage]:
    """Return what the model is sent: the system prompt, then the transcript."""
    return [SystemMessage(spec.system_prompt), *messages] if spec.system_prompt else [*messages]


async def _open(run_id: str, step: int, estimate: Tokens, port: Port) -> Opened:
    ledger = await port.ledger()
    cost = _cost(estimate, port)
    name = port.spec.model_name
    return await port.ask(ledger, ledger.spend.open, run_id, step, model=name, estimate=estimate, cost_nano=cost)


async def _settle_nothing(run_id: str, step: int, attempt: int, port: Port) -> None:
    """Note that an attempt brought nothing, and cost nothing."""
    ledger = await port.ledger()
    ledger.spend.settle(run_id, step, attempt, tokens=Tokens(0, 0), cost_nano=0)  # in memory: cannot block


def _with_lost(usage: UsageRecord, lost: Sequence[Attempt]) -> UsageRecord:
    """Count attempts whose process died before their reply reached a checkpoint: they are spent."""
    for attempt in lost:
        usage = add_attempt(usage, attempt.tokens, attempt.cost_nano)
    return usage


def _cost(tokens: Tokens, port: Port) -> int:
    return port.spec.price(tokens) if port.spec.price else 0


async def _decided(state: AgentState, reply: BaseMessage, estimate: Tokens, attempt: int, port: Port) -> dict[str, Any]:
    """Turn a reply into the update: the message, the decision, and what it cost."""
    run, step = state["run"], state["usage"]["steps"] + 1
    message, decision = read_reply(reply, f"{run['id']}/{step}", ids_of(state["messages"]))
    tokens = tokens_of(reply, estimate.input)
    cost = _cost(tokens, port)
    ledger = await port.ledger()
    ledger.spend.settle(run["id"], step, attempt, tokens=tokens, cost_nano=cost)  # in memory: cannot block
    usage = add_seconds(add_step(add_attempt(state["usage"], tokens, cost)), port.elapsed())
    update: dict[str, Any] = {"decision": dump_decision(decision), "usage": usage}
    if message is not None:
        update["messages"] = [cast("AnyMessage", message)]
    return update


def _failed(state: AgentState, usage: UsageRecord, why: StopReason, error: str, port: Port) -> dict[str, Any]:
    run = {**state["run"], "stop": why} | ({"error": error} if error else {})
    return {"run": run, "usage": add_seconds(usage, port.elapsed())}
