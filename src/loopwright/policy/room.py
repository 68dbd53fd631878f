"""How much the next call of the model may use, so that no limit on what is spent can be overrun. Pure functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loopwright.state import Limits, StopReason, Tokens, UsageRecord

from .bounds import Bounds

SMALLEST_REPLY = 64
"""Output tokens below which no useful reply fits: then the run stops before the call."""

Pricing = Callable[[Tokens], int]
"""Returns the cost of one call in nano-dollars. More tokens never cost less."""


@dataclass(frozen=True, slots=True)
class Left:
    """What is left of a bound; None for any amount."""

    tokens: int | None = None
    cost_nano: int | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The worst case of a call before its bounds are looked at."""

    input: int
    """Tokens of the input, estimated."""
    most: int
    """The longest reply that the model can give, in tokens."""
    price: Pricing | None = None
    """None: nothing is charged."""
    keep: int = 0
    """Output tokens of one further call, over this one's input and reply, that must still fit afterwards."""


@dataclass(frozen=True, slots=True)
class Room:
    """What is reserved for a call."""

    tokens: Tokens
    """The worst case: the estimated input, and the longest reply that is let in."""
    cost_nano: int
    cap: StopReason | None
    """The limit by which the reply must be shorter than the model's own maximum; None: nothing is sent."""


def left_of(limits: Limits | Bounds, usage: UsageRecord) -> Left:
    """Return what a run may still spend; never less than nothing."""
    used = usage["input_tokens"] + usage["output_tokens"]
    return Left(
        tokens=None if limits.max_tokens is None else max(0, limits.max_tokens - used),
        cost_nano=None if limits.max_cost_nano is None else max(0, limits.max_cost_nano - usage["cost_nano"]),
    )


def least(*bounds: Left) -> Left:
    """Return the tightest of several bounds."""
    tokens = [bound.tokens for bound in bounds if bound.tokens is not None]
    costs = [bound.cost_nano for bound in bounds if bound.cost_nano is not None]
    return Left(min(tokens, default=None), min(costs, default=None))


def find_room(left: Left, wanted: Wanted) -> Room | StopReason:
    """Return what to reserve for a call, or the limit for which not even a small useful reply fits."""
    longest, cap = wanted.most, None
    smallest = min(SMALLEST_REPLY, wanted.most)
    if left.tokens is not None:
        fits = _longest_by_tokens(left.tokens, wanted)
        if fits < smallest:
            return StopReason.MAX_TOKENS
        if fits < longest:
            longest, cap = fits, StopReason.MAX_TOKENS
    if left.cost_nano is not None:
        if _cost(smallest, wanted) > left.cost_nano:
            return StopReason.MAX_COST
        fits = _longest_by_cost(left.cost_nano, smallest, longest, wanted)
        if fits < longest:
            longest, cap = fits, StopReason.MAX_COST
    tokens = Tokens(wanted.input, longest, estimated=True)
    return Room(tokens, wanted.price(tokens) if wanted.price else 0, cap)


def _longest_by_tokens(left: int, wanted: Wanted) -> int:
    """A further call sends this one's input and reply again."""
    if not wanted.keep:
        return left - wanted.input
    return (left - 2 * wanted.input - wanted.keep) // 2


def _cost(output: int, wanted: Wanted) -> int:
    if wanted.price is None:
        return 0
    cost = wanted.price(Tokens(wanted.input, output))
    return cost + wanted.price(Tokens(wanted.input + output, wanted.keep)) if wanted.keep else cost


def _longest_by_cost(left: int, fits: int, most: int, wanted: Wanted) -> int:
    """Search for the longest reply that can be paid; one of `fits` tokens is known to fit."""
    if _cost(most, wanted) <= left:
        return most
    too_long = most
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if _cost(middle, wanted) <= left:
            fits = middle
        else:
            too_long = middle
    return fits
