"""What an attempt at the model reserves: of the run's limits, its thread's, and the budgets that it shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import assert_never

from langchain_core.messages import AnyMessage, SystemMessage

from loopwright.checkpoints import Drawn, Ledger
from loopwright.models import estimate_input, most_output
from loopwright.policy import Left, Room, Wanted, find_room, least, left_of, name_limit
from loopwright.state import NANO, AgentState, Purpose, RunRecord, Share, StopReason

from .last_words import LAST_WORDS, leaving_of, order_to_stop, shortened, told_without_calls
from .port import Port
from .reflecting import question_of
from .spec import AgentSpec
from .summary import SUMMARISER
from .view import begun_by_user


@dataclass(frozen=True, slots=True)
class Plan:
    """An attempt before it is opened."""

    sent: list[AnyMessage]
    room: Room | StopReason
    limit: str
    """Which limit leaves least, in words, where one cuts the reply short or keeps it from being asked for."""


def purpose_of(state: AgentState) -> Purpose:
    """Return what the next call of the model is for."""
    return Purpose(state["run"].get("purpose", Purpose.DECIDE))


def shares_of(run: RunRecord, port: Port) -> list[Share]:
    """Return the budgets that a run draws on now."""
    budgets = port.spec.budgets
    return [budget.share(run.get("labels", {}), port.now()) for budget in budgets] if budgets else []


async def drawn_of(shares: Sequence[Share], port: Port, ledger: Ledger) -> list[Left]:
    """Return what is left of budgets; costs nothing without any."""
    drawn = await port.ask(ledger, ledger.budgets.drawn, shares) if shares else []
    return [left_of_share(share, used) for share, used in zip(shares, drawn, strict=True)]


def left_of_share(share: Share, used: Drawn) -> Left:
    """Return what is left of a budget."""
    return Left(
        None if share.max_tokens is None else max(0, share.max_tokens - used.tokens),
        None if share.max_cost_nano is None else max(0, share.max_cost_nano - used.cost_nano),
    )


def plan_attempt(
    state: AgentState, transcript: Sequence[AnyMessage], spec: AgentSpec, shares: Sequence[Share], lefts: Sequence[Left]
) -> Plan:
    """Return what the model is sent, and what is reserved for the call.

    Args:
        state: With the usage of all that came before.
        transcript: What stands for it, if it is too long; it is sent behind the instructions.
        spec: The agent's.
        shares: The budgets that the run draws on.
        lefts: What is left of each.
    """
    purpose, usage = purpose_of(state), state["usage"]
    instructions = SUMMARISER if purpose == Purpose.SUMMARISE else spec.instructions_for(purpose)
    prompt = [SystemMessage(instructions)] if instructions else []
    messages: list[AnyMessage] = [*prompt, *begun_by_user(transcript)]
    own = left_of(spec.bounds(state["run"], state["thread"]), usage)
    left = least(own, *lefts)
    keep = LAST_WORDS if purpose == Purpose.SUMMARISE or (spec.wrap_up and purpose != Purpose.WRAP_UP) else 0
    price = spec.worst_price(messages)

    def room_for(sent: Sequence[AnyMessage], *, tools: int = 0) -> Room | StopReason:
        tokens = estimate_input(sent, tools=tools)
        return find_room(left, Wanted(tokens, most_output(spec.model), price, keep))

    match purpose:
        case Purpose.DECIDE:
            sent, room = messages, room_for(messages, tools=spec.tools_tokens)
        case Purpose.SUMMARISE:
            sent, room = messages, room_for(messages)
        case Purpose.WRAP_UP:
            order = order_to_stop(state["run"].get("limit", ""))
            sent, room = shortened(told_without_calls(messages, order), leaving_of(messages), room_for)
        case Purpose.REFLECT:
            told = told_without_calls(messages, question_of(spec.answers.reflect))
            sent, room = shortened(told, leaving_of(messages), room_for)
        case _:
            assert_never(purpose)
    reason = room if isinstance(room, StopReason) else room.cap
    return Plan(sent, room, _limit(reason, state, spec, own, shares, lefts) if reason else "")


def _limit(  # noqa: PLR0917 -- two lists that belong together, and what they are measured against
    reason: StopReason,
    state: AgentState,
    spec: AgentSpec,
    own: Left,
    shares: Sequence[Share],
    lefts: Sequence[Left],
) -> str:
    """Name the limit that leaves least: a budget, or else one of the run's or its thread's."""
    least_left = _figure(reason, least(own, *lefts))
    if _figure(reason, own) != least_left:
        for share, left in zip(shares, lefts, strict=True):
            if _figure(reason, left) == least_left:
                return name_share(reason, share)
    return name_limit(reason, spec.limits, state["run"], state["thread"])


def _figure(reason: StopReason, left: Left) -> int | None:
    return left.cost_nano if reason is StopReason.MAX_COST else left.tokens


def name_share(reason: StopReason, share: Share) -> str:
    """Name a budget that is used up."""
    if reason is StopReason.MAX_COST:
        return f"{share}: max_cost of ${Decimal(share.max_cost_nano or 0) / NANO:f}"
    return f"{share}: max_tokens of {share.max_tokens or 0:,}"
