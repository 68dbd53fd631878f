"""`reason`: the one place that calls a model, and that turns its reply into a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langgraph.errors import GraphBubbleUp

from loopwright.checkpoints import Attempt, Opened
from loopwright.crash import CrashPoint, reached
from loopwright.models import cap_options, estimate_input, hide_keys, ids_of, most_output, read_reply, tokens_of
from loopwright.policy import Room, Wanted, find_room, left_of, seconds_left
from loopwright.state import (
    AgentState,
    Malformed,
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


@dataclass(frozen=True, slots=True)
class _Try:
    """One attempt at the model, from its reservation on."""

    state: AgentState
    """With the usage of all that came before, lost attempts included."""
    port: Port
    room: Room
    number: int

    @property
    def run_id(self) -> str:
        return self.state["run"]["id"]

    @property
    def step(self) -> int:
        return self.state["usage"]["steps"] + 1


async def reason(state: AgentState, port: Port) -> dict[str, Any]:
    """Make one attempt at the model; its worst case is reserved, and stands in the ledger, before the call is made.

    A model that fails ends the run (`failed`, `error`): the thread can be carried on with a new task.
    """
    sent = _sent(state["messages"], port.spec)
    wanted = _wanted(sent, port.spec)
    room = find_room(left_of(port.spec.limits, state["usage"]), wanted)
    if isinstance(room, StopReason):
        return _stopped(state, state["usage"], room, port)
    opened = await _open(state, room, port)
    usage = _with_lost(state["usage"], opened.lost)
    if opened.cancelled_by:
        stopped = {**state["run"], "stop": StopReason.CANCELLED, "cancelled_by": opened.cancelled_by}
        return {"run": stopped, "usage": add_seconds(usage, port.elapsed())}
    attempt = _Try({**state, "usage": usage}, port, room, opened.number)
    if opened.lost:
        room = find_room(left_of(port.spec.limits, usage), wanted)
        if isinstance(room, StopReason):
            await _settle(attempt, Tokens(0, 0), 0)
            return _stopped(state, usage, room, port)
        attempt = replace(attempt, room=room)
    reached(CrashPoint.BEFORE_MODEL)
    return await _call(attempt, sent)


async def _call(attempt: _Try, sent: list[AnyMessage]) -> dict[str, Any]:
    """Call the model, and settle what was reserved."""
    port, room, usage = attempt.port, attempt.room, attempt.state["usage"]
    options = cap_options(port.spec.model, room.tokens.output) if room.cap else {}
    try:
        reply = await port.model(sent, seconds_left(port.spec.limits, usage), options)
    except GraphBubbleUp:
        raise
    except OutOfTime:  # its row stays open: the provider may go on, and be paid for it
        spent = add_attempt(usage, room.tokens, room.cost_nano)
        return _stopped(attempt.state, spent, StopReason.DEADLINE, port)
    except Exception as error:  # noqa: BLE001 -- whatever a client raises, the run ends with a status
        said = f"{type(error).__name__}: {excerpt(hide_keys(safe_str(error), port.spec.model), 500)}"
        await _settle(attempt, Tokens(0, 0), 0)
        spent = add_attempt(usage, Tokens(0, 0), 0)
        return _stopped(attempt.state, spent, StopReason.ERROR, port, error=said)
    reached(CrashPoint.AFTER_MODEL)
    return await _decided(attempt, reply)


def _sent(messages: Sequence[AnyMessage], spec: AgentSpec) -> list[AnyMessage]:
    """Return what the model is sent: the system prompt, then the transcript."""
    return [SystemMessage(spec.system_prompt), *messages] if spec.system_prompt else [*messages]


def _wanted(sent: Sequence[AnyMessage], spec: AgentSpec) -> Wanted:
    tokens = estimate_input(sent, tools=spec.tools_tokens)
    return Wanted(input=tokens, most=most_output(spec.model), price=spec.price)


async def _open(state: AgentState, room: Room, port: Port) -> Opened:
    ledger = await port.ledger()
    return await port.ask(
        ledger,
        ledger.spend.open,
        state["run"]["id"],
        state["usage"]["steps"] + 1,
        model=port.spec.model_name,
        estimate=room.tokens,
        cost_nano=room.cost_nano,
    )


async def _settle(attempt: _Try, tokens: Tokens, cost_nano: int) -> None:
    """Note what an attempt really took."""
    ledger = await attempt.port.ledger()
    # In memory until the next transaction: cannot block.
    ledger.spend.settle(attempt.run_id, attempt.step, attempt.number, tokens=tokens, cost_nano=cost_nano)


def _with_lost(usage: UsageRecord, lost: Sequence[Attempt]) -> UsageRecord:
    """Count attempts whose process died before their reply reached a checkpoint: they are spent."""
    for attempt in lost:
        usage = add_attempt(usage, attempt.tokens, attempt.cost_nano)
    return usage


async def _decided(attempt: _Try, reply: BaseMessage) -> dict[str, Any]:
    """Turn a reply into the update: the message, the decision, and what it cost."""
    state, port, run = attempt.state, attempt.port, attempt.state["run"]
    message, decision = read_reply(reply, f"{run['id']}/{attempt.step}", ids_of(state["messages"]))
    tokens = tokens_of(reply, attempt.room.tokens.input)
    cost = port.spec.price(tokens) if port.spec.price else 0
    await _settle(attempt, tokens, cost)
    usage = add_seconds(add_step(add_attempt(state["usage"], tokens, cost)), port.elapsed())
    update: dict[str, Any] = {"usage": usage}
    if message is not None:
        update["messages"] = [cast("AnyMessage", message)]
    if attempt.room.cap and isinstance(decision, Malformed) and decision.why == "truncated":
        # It was cut by what is left of a limit: asking for a shorter one would meet the same limit.
        return {**update, "run": {**run, "stop": attempt.room.cap, "answer": decision.text}}
    update["decision"] = dump_decision(decision)
    return update


def _stopped(state: AgentState, usage: UsageRecord, why: StopReason, port: Port, *, error: str = "") -> dict[str, Any]:
    run = {**state["run"], "stop": why} | ({"error": error} if error else {})
    return {"run": run, "usage": add_seconds(usage, port.elapsed())}
