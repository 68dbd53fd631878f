"""`reason`: the one place that calls a model, and that turns its reply into a decision."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.errors import GraphInterrupt

from loopwright.checkpoints import Attempt, GiveBack, Opened
from loopwright.crash import CrashPoint, reached
from loopwright.models import (
    Cure,
    cap_options,
    cure_of,
    hide_keys,
    ids_of,
    may_have_cost,
    read_reply,
    spoken_to,
    tokens_of,
    usage_of_error,
    why_broken,
)
from loopwright.policy import Left, Room, seconds_left
from loopwright.state import (
    AgentState,
    Decision,
    FinalAnswer,
    Malformed,
    Purpose,
    RunRecord,
    Share,
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

from .attempts import MODEL_TEXT, Attempts, Failed
from .compaction import Context, context_of, with_compaction, with_summary
from .last_words import taken_as_words
from .pacing import Parking, keep_pace
from .parking import parked_run, unparked
from .port import Port
from .reservation import Plan, drawn_of, plan_attempt, purpose_of, shares_of
from .spec import AgentSpec
from .voice import Voice

SHORTER = 2 / 3
"""Of what was refused as too long, so much is sent at most from then on."""
MOST_SHORTER = 3
"""How often in one step a transcript is made shorter, since what was sent was refused: it costs nothing."""


@dataclass(frozen=True, slots=True)
class _Try:
    """One attempt at the model, from its reservation on."""

    state: AgentState
    """With the usage of all that came before, lost attempts included."""
    port: Port
    plan: Plan
    room: Room
    number: int
    back: GiveBack | None
    """What was reserved of shared budgets."""

    @property
    def run_id(self) -> str:
        return self.state["run"]["id"]

    @property
    def step(self) -> int:
        return self.state["usage"]["steps"] + 1


async def reason(state: AgentState, port: Port) -> dict[str, Any]:
    """Get a reply of the model, in as many attempts as help; turn it into a decision.

    Each attempt's worst case is reserved, and stands in the ledger, before the call is made. Where no attempt brings a
    reply the run ends (`failed`, `error`): the thread can be carried on with a new task. A transcript that has outgrown
    the context window is compacted first; the reply may then be a summary. One that is refused as too long is compacted
    to less than was refused, and sent again.
    """
    asked: AgentState = {**state, "run": unparked(state["run"])}
    attempts, shorter = Attempts(state, port), 0
    while True:
        context = context_of(asked, port.spec)
        came = await _reply(asked, context, attempts)
        if not (isinstance(came, Failed) and _helps_less(came, context, attempts)) or shorter == MOST_SHORTER:
            break
        shorter += 1
        fewer: RunRecord = {**asked["run"], "fits": int(context.tokens * SHORTER)}
        asked = {**asked, "run": fewer}
        attempts.begin_anew()
    if isinstance(came, Parking):
        parked = parked_run(asked["run"], came, attempts.where())
        usage = add_seconds(attempts.usage, port.elapsed())
        return _with_learnt({"run": parked, "usage": usage}, asked, attempts)
    update = _ended(asked, context, came, attempts) if isinstance(came, Failed) else came
    if context.purpose == Purpose.SUMMARISE:
        update = with_summary(update, context, asked, port.spec)
    else:
        update = with_compaction(update, context)
    update = _with_learnt(update, asked, attempts)
    return {"run": asked["run"], **update} if "parked" in state["run"] else update


async def _reply(state: AgentState, context: Context, attempts: Attempts) -> dict[str, Any] | Failed | Parking:
    """Make attempts until one brings a reply, no further one helps, or the rate lets it be made only later."""
    if context.too_long:
        return _stopped(state, attempts.usage, StopReason.TOO_LONG, attempts.port, limit=context.too_long)
    if context.purpose == Purpose.SUMMARISE:
        state = {**state, "run": {**state["run"], "purpose": Purpose.SUMMARISE}}
    while True:
        came = await _attempt(state, context, attempts)
        if not isinstance(came, Failed) or not await attempts.goes_on(came):
            return came


def _helps_less(failed: Failed, context: Context, attempts: Attempts) -> bool:
    """Tell whether a model would reply if it were sent less; a refusal or a filter is no matter of length."""
    return attempts.was_too_long and failed.cure is not Cure.NONE and context.tokens > 0


def _ended(state: AgentState, context: Context, failed: Failed, attempts: Attempts) -> dict[str, Any]:
    """Return the end of a run whose model brought no reply."""
    if _helps_less(failed, context, attempts):
        limit = f"the context window: the model has refused about {context.tokens:,} tokens as too many"
        return _stopped(state, failed.usage, StopReason.TOO_LONG, attempts.port, limit=limit)
    return _stopped(state, failed.usage, StopReason.ERROR, attempts.port, error=failed.said)


def _with_learnt(update: dict[str, Any], state: AgentState, attempts: Attempts) -> dict[str, Any]:
    """Keep with the run what failed on the way; with one that ends at a limit, also why it was asked again."""
    if not attempts.failures:
        return update
    run = attempts.noted(update.get("run") or state["run"])
    if update.get("run", {}).get("stop") not in (None, StopReason.CANCELLED):
        run["error"] = run["error"] or attempts.last_error
    return {**update, "run": run}


async def _attempt(state: AgentState, context: Context, attempts: Attempts) -> dict[str, Any] | Failed | Parking:
    """Make one attempt, unless the rate lets it be made only later.

    Args:
        state: As the node found it.
        context: What is sent of its transcript.
        attempts: Which model is asked, and what failed since.
    """
    used, port = attempts.usage, attempts.port
    left = seconds_left(port.spec.bounds(state["run"], state["thread"]), state["usage"])
    pace = await keep_pace(f"model:{port.spec.model_name}", port.spec.rate, left, port)
    if pace.parked is not None:
        return pace.parked
    if pace.refusal or pace.is_late:
        why = StopReason.RATE_LIMIT if pace.refusal else StopReason.DEADLINE
        return _stopped(state, used, why, port, limit=pace.refusal)
    shares = shares_of(state["run"], port)
    plan, opened = await _reserve({**state, "usage": used}, context, shares, port)
    if isinstance(plan.room, StopReason):
        return _stopped(state, used, plan.room, port, limit=plan.limit)
    lost = [one for one in opened.lost if one.number > attempts.counted_before]
    usage = _with_lost(state["usage"], lost)  # those that failed just now are among them
    if opened.cancelled_by:
        stopped = {**state["run"], "stop": StopReason.CANCELLED, "cancelled_by": opened.cancelled_by}
        return {"run": stopped, "usage": add_seconds(usage, port.elapsed())}
    reserved = plan.room.tokens.input + plan.room.tokens.output
    back = GiveBack(shares, reserved, plan.room.cost_nano) if shares else None
    attempt = _Try({**state, "usage": usage}, port, plan, plan.room, opened.number, back)
    if usage != used:
        lefts = [Left(reserved, plan.room.cost_nano)] * len(shares)
        plan = plan_attempt(attempt.state, context.messages, port.spec, shares, lefts)
        if isinstance(plan.room, StopReason):
            await _settle(attempt, Tokens(0, 0), 0)
            return _stopped(state, usage, plan.room, port, limit=plan.limit)
        attempt = replace(attempt, plan=plan, room=plan.room)
    reached(CrashPoint.BEFORE_MODEL)
    return await _call(attempt)


async def _reserve(state: AgentState, context: Context, shares: Sequence[Share], port: Port) -> tuple[Plan, Opened]:
    """Plan an attempt, and open it; anew where another run was faster to draw on a shared budget."""
    ledger = await port.ledger()
    while True:
        lefts = await drawn_of(shares, port, ledger)
        plan = plan_attempt(state, context.messages, port.spec, shares, lefts)
        if isinstance(plan.room, StopReason):
            return plan, Opened(0, (), "")
        opened = await port.ask(
            ledger,
            ledger.spend.open,
            state["run"]["id"],
            state["usage"]["steps"] + 1,
            model=port.spec.model_name,
            estimate=plan.room.tokens,
            cost_nano=plan.room.cost_nano,
            shares=shares,
        )
        if opened.full is None:
            return plan, opened


async def _call(attempt: _Try) -> dict[str, Any] | Failed:
    """Call the model, and settle what was reserved."""
    port, room, usage = attempt.port, attempt.room, attempt.state["usage"]
    options = cap_options(port.spec.model, room.tokens.output) if room.cap else {}
    purpose = purpose_of(attempt.state)
    may_act, is_heard = purpose == Purpose.DECIDE, purpose != Purpose.SUMMARISE
    if may_act and port.spec.form is not None:
        options |= port.spec.form.options(port.spec.model)
    left, own = _seconds_left(attempt), port.spec.model_timeout
    seconds = min((bound for bound in (left, own) if bound is not None), default=None)
    voice = _voice(attempt)
    try:
        sent = spoken_to(port.spec.model, attempt.plan.sent)
        reply = await port.model(sent, seconds, options, tools=may_act, is_heard=is_heard, voice=voice)
    except GraphInterrupt:
        raise
    except OutOfTime as error:  # its row stays open: the provider may go on, and be paid for it
        spent = add_attempt(usage, room.tokens, room.cost_nano)
        if left is not None and error.seconds >= left:
            return _stopped(attempt.state, spent, StopReason.DEADLINE, port)
        return Failed(error, f"no reply within {error.seconds:g} s", Cure.AGAIN, spent, attempt.number)
    except Exception as error:  # noqa: BLE001 -- whatever a client raises, the run ends with a status
        said = _said(attempt, error)
        return Failed(error, said, cure_of(error), await _charge(attempt, error), attempt.number)
    finally:
        if voice is not None:
            voice.hang_up()
    reached(CrashPoint.AFTER_MODEL)
    try:
        why, tokens = why_broken(reply), tokens_of(reply, room.tokens.input)
        read = read_reply(reply, f"{attempt.run_id}/{attempt.step}", ids_of(attempt.state["messages"]))
    except Exception as error:  # noqa: BLE001 -- whatever a client returns; its row stays open, as of a reply that got lost
        said = f"the reply cannot be read: {_said(attempt, error)}"
        spent = add_attempt(usage, room.tokens, room.cost_nano)
        return Failed(error, said, Cure.AGAIN, spent, attempt.number)
    used = await _paid(attempt, tokens)
    if why:
        return Failed(ConnectionError(why), why, Cure.AGAIN, used, attempt.number)
    return _decided(attempt, used, *read)


def _said(attempt: _Try, error: Exception) -> str:
    """Return what is shown of an error: bounded, and without keys."""
    return f"{type(error).__name__}: {excerpt(hide_keys(safe_str(error), attempt.port.spec.model), 500)}"


def _seconds_left(attempt: _Try) -> float | None:
    port, state = attempt.port, attempt.state
    seconds = seconds_left(port.spec.bounds(state["run"], state["thread"]), state["usage"])
    # It may have waited for its rate, or for another attempt.
    return None if seconds is None else max(0.001, seconds - port.elapsed())


def _voice(attempt: _Try) -> Voice | None:
    """Return what hears the reply piece by piece: where somebody wants to, or where the client streams on its own."""
    is_for_user = purpose_of(attempt.state) in (Purpose.DECIDE, Purpose.WRAP_UP)
    if not (is_for_user and attempt.port.has_listener):
        # Joined by LangChain, a call whose arguments broke off would be completed.
        return Voice(lambda _: None) if getattr(attempt.port.spec.model, "streaming", False) is True else None
    place = {"type": MODEL_TEXT, "step": attempt.step, "attempt": attempt.number}
    return Voice(lambda text: attempt.port.tell({**place, "text": text}))


async def _charge(attempt: _Try, error: Exception) -> UsageRecord:
    """Count what a failed attempt took: as reported, nothing where the provider refused it, else its worst case."""
    room, usage = attempt.room, attempt.state["usage"]
    tokens = usage_of_error(error)
    if tokens is None and may_have_cost(error):  # its row stays open, which stands for the worst case
        return add_attempt(usage, room.tokens, room.cost_nano)
    tokens = tokens or Tokens(0, 0)
    cost = attempt.port.spec.price(tokens) if attempt.port.spec.price else 0
    await _settle(attempt, tokens, cost)
    return add_attempt(usage, tokens, cost)


async def _paid(attempt: _Try, tokens: Tokens) -> UsageRecord:
    """Count what a reply took."""
    cost = attempt.port.spec.price(tokens) if attempt.port.spec.price else 0
    await _settle(attempt, tokens, cost)
    return add_attempt(attempt.state["usage"], tokens, cost)


async def _settle(attempt: _Try, tokens: Tokens, cost_nano: int) -> None:
    """Note what an attempt really took."""
    ledger = await attempt.port.ledger()
    # In memory until the next transaction: cannot block.
    where = (attempt.run_id, attempt.step, attempt.number)
    ledger.spend.settle(*where, tokens=tokens, cost_nano=cost_nano, back=attempt.back)


def _with_lost(usage: UsageRecord, lost: Sequence[Attempt]) -> UsageRecord:
    """Count attempts whose process died before their reply reached a checkpoint: they are spent."""
    for attempt in lost:
        usage = add_attempt(usage, attempt.tokens, attempt.cost_nano)
    return usage


def _decided(attempt: _Try, used: UsageRecord, message: AIMessage | None, decision: Decision) -> dict[str, Any]:
    """Return the update that a reply means: the message, the decision, and what was used, this attempt included."""
    state, port, run = attempt.state, attempt.port, attempt.state["run"]
    usage = add_seconds(add_step(used), port.elapsed())
    match purpose_of(state):
        case Purpose.WRAP_UP:
            return {**_last_words(decision, message), "usage": usage}
        case Purpose.REFLECT:  # kept out of the transcript: the guard puts it there if there is anything to do
            return {"decision": dump_decision(_to_be_judged(taken_as_words(decision), port.spec)), "usage": usage}
        case Purpose.SUMMARISE:
            return {"decision": dump_decision(decision), "usage": usage}
        case Purpose.DECIDE:
            pass
    update: dict[str, Any] = {"usage": usage}
    if message is not None:
        update["messages"] = [cast("AnyMessage", message)]
    if attempt.room.cap and isinstance(decision, Malformed) and decision.why == "truncated":
        # It was cut by what is left of a limit: asking for a shorter one would meet the same limit.
        stop = {"stop": attempt.room.cap, "limit": attempt.plan.limit, "answer": decision.text}
        return {**update, "run": {**run, **stop}}
    return {**update, "decision": dump_decision(_to_be_judged(decision, port.spec))}


def _to_be_judged(decision: Decision, spec: AgentSpec) -> Decision:
    """Mark an answer that does not count yet: so that a crash while it is judged costs no second one."""
    return replace(decision, is_checked=True) if isinstance(decision, FinalAnswer) and spec.checks_answers else decision


def _last_words(decision: Decision, message: AIMessage | None) -> dict[str, Any]:
    """Return the update of a run's last words; without usage, which was of another input than the transcript."""
    said = taken_as_words(decision)
    update: dict[str, Any] = {"decision": dump_decision(said)}
    if isinstance(said, FinalAnswer) and message is not None:
        update["messages"] = [AIMessage(said.text, id=message.id)]
    return update


def _stopped(
    state: AgentState, usage: UsageRecord, why: StopReason, port: Port, *, error: str = "", limit: str = ""
) -> dict[str, Any]:
    purpose, run = purpose_of(state), state["run"]
    if purpose == Purpose.REFLECT and why != StopReason.CANCELLED:  # nobody looked back, and the answer stands
        return {"decision": dump_decision(Malformed("empty")), "usage": add_seconds(usage, port.elapsed())}
    if purpose == Purpose.WRAP_UP and why != StopReason.CANCELLED:  # the limit that was met stays the reason
        why, limit = StopReason(run.get("stop", why)), run.get("limit", limit)
    stop = {"stop": why} | ({"error": error} if error else {}) | ({"limit": limit} if limit else {})
    return {"run": {**run, **stop}, "usage": add_seconds(usage, port.elapsed())}
