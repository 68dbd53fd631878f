"""`reason`: the one place that calls a model, and that turns its reply into a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, assert_never, cast

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, SystemMessage
from langgraph.errors import GraphBubbleUp

from loopwright.checkpoints import Attempt, Opened
from loopwright.crash import CrashPoint, reached
from loopwright.models import cap_options, estimate_input, hide_keys, ids_of, most_output, read_reply, tokens_of
from loopwright.policy import Bounds, Room, Wanted, find_room, left_of, seconds_left
from loopwright.state import (
    AgentState,
    Decision,
    FinalAnswer,
    Malformed,
    Purpose,
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

from .last_words import LAST_WORDS, order_to_stop, shortened, taken_as_words, told_without_calls
from .port import Port
from .reflecting import question_of
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
    sent, room = _sent(state, state["usage"], port.spec)
    if isinstance(room, StopReason):
        return _stopped(state, state["usage"], room, port)
    opened = await _open(state, room, port)
    usage = _with_lost(state["usage"], opened.lost)
    if opened.cancelled_by:
        stopped = {**state["run"], "stop": StopReason.CANCELLED, "cancelled_by": opened.cancelled_by}
        return {"run": stopped, "usage": add_seconds(usage, port.elapsed())}
    attempt = _Try({**state, "usage": usage}, port, room, opened.number)
    if opened.lost:
        sent, room = _sent(state, usage, port.spec)
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
    may_act = _purpose(attempt.state) == Purpose.DECIDE
    if may_act and port.spec.form is not None:
        options |= port.spec.form.options(port.spec.model)
    seconds = seconds_left(_bounds(attempt.state, port.spec), usage)
    try:
        reply = await port.model(sent, seconds, options, tools=may_act)
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


def _purpose(state: AgentState) -> Purpose:
    return Purpose(state["run"].get("purpose", Purpose.DECIDE))


def _bounds(state: AgentState, spec: AgentSpec) -> Bounds:
    return spec.bounds(state["run"], state["thread"])


def _sent(state: AgentState, usage: UsageRecord, spec: AgentSpec) -> tuple[list[AnyMessage], Room | StopReason]:
    """Return what the model is sent, the instructions and then the transcript, and what is reserved for the call."""
    purpose = _purpose(state)
    instructions = spec.instructions_for(purpose)
    prompt = [SystemMessage(instructions)] if instructions else []
    sent: list[AnyMessage] = [*prompt, *state["messages"]]
    left = left_of(_bounds(state, spec), usage)
    keep = LAST_WORDS if spec.wrap_up and purpose != Purpose.WRAP_UP else 0
    wanted = Wanted(input=0, most=most_output(spec.model), price=spec.price, keep=keep)
    match purpose:
        case Purpose.DECIDE:
            tokens = estimate_input(sent, tools=spec.tools_tokens)
            return sent, find_room(left, replace(wanted, input=tokens))
        case Purpose.WRAP_UP:
            order = order_to_stop(state["run"].get("limit", ""))
        case Purpose.REFLECT:
            order = question_of(spec.answers.reflect)
        case _:
            assert_never(purpose)
    told = told_without_calls(sent, order)
    return shortened(told, lambda kept: find_room(left, replace(wanted, input=estimate_input(kept))))


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


def _last_words(decision: Decision, message: AIMessage | None) -> dict[str, Any]:
    """Return the update of a run's last words; without usage, which was of another input than the transcript."""
    said = taken_as_words(decision)
    update: dict[str, Any] = {"decision": dump_decision(said)}
    if isinstance(said, FinalAnswer) and message is not None:
        update["messages"] = [AIMessage(said.text, id=message.id)]
    return update


async def _decided(attempt: _Try, reply: BaseMessage) -> dict[str, Any]:
    """Turn a reply into the update: the message, the decision, and what it cost."""
    state, port, run = attempt.state, attempt.port, attempt.state["run"]
    message, decision = read_reply(reply, f"{run['id']}/{attempt.step}", ids_of(state["messages"]))
    tokens = tokens_of(reply, attempt.room.tokens.input)
    cost = port.spec.price(tokens) if port.spec.price else 0
    await _settle(attempt, tokens, cost)
    usage = add_seconds(add_step(add_attempt(state["usage"], tokens, cost)), port.elapsed())
    match _purpose(state):
        case Purpose.WRAP_UP:
            return {**_last_words(decision, message), "usage": usage}
        case Purpose.REFLECT:  # kept out of the transcript: the guard puts it there if there is anything to do
            return {"decision": dump_decision(_to_be_judged(taken_as_words(decision), port.spec)), "usage": usage}
        case Purpose.DECIDE:
            pass
    update: dict[str, Any] = {"usage": usage}
    if message is not None:
        update["messages"] = [cast("AnyMessage", message)]
    if attempt.room.cap and isinstance(decision, Malformed) and decision.why == "truncated":
        # It was cut by what is left of a limit: asking for a shorter one would meet the same limit.
        return {**update, "run": {**run, "stop": attempt.room.cap, "answer": decision.text}}
    update["decision"] = dump_decision(_to_be_judged(decision, port.spec))
    return update


def _to_be_judged(decision: Decision, spec: AgentSpec) -> Decision:
    """Mark an answer that does not count yet: so that a crash while it is judged costs no second one."""
    return replace(decision, is_checked=True) if isinstance(decision, FinalAnswer) and spec.checks_answers else decision


def _stopped(state: AgentState, usage: UsageRecord, why: StopReason, port: Port, *, error: str = "") -> dict[str, Any]:
    purpose = _purpose(state)
    if purpose == Purpose.REFLECT and why != StopReason.CANCELLED:  # nobody looked back, and the answer stands
        return {"decision": dump_decision(Malformed("empty")), "usage": add_seconds(usage, port.elapsed())}
    if purpose == Purpose.WRAP_UP and why != StopReason.CANCELLED:  # the limit that was met stays the reason
        why = StopReason(state["run"].get("stop", why))
    run = {**state["run"], "stop": why} | ({"error": error} if error else {})
    return {"run": run, "usage": add_seconds(usage, port.elapsed())}
