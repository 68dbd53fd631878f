"""What a tool may declare about itself: the options of `tool` and of `annotate`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from loopwright.errors import ConfigurationError
from loopwright.state import Rate, refuse_unknown

from .contract import Contract, EffectKind, OnError, Verify
from .retrying import Retry

EffectName = Literal["read", "idempotent", "write"]


class ToolOptions(TypedDict, total=False):
    """What a tool declares about itself; each can be left out."""

    effect: EffectName | None
    """What a call does to the world. Left out, `write` is assumed and `check` complains."""
    timeout: float
    """Seconds for one call, with all its tries; 30 by default."""
    retry: Retry
    """How often a failed call is tried, where the tool is `read` or `idempotent` and the failure can pass; 3 tries by
    default, the second after 1 s. `Retry(tries=1)` for none but the first."""
    on_error: OnError
    """What a failure means: `observe`, the default, makes it an observation, by which the model can correct itself;
    `ask` lets a person decide: once more, an answer in its place, or the failure stands; `stop` ends the run as
    `failed` once the turn's other results are in."""
    fallback: str
    """The name of another tool of the agent, which the model is pointed to when this one has failed."""
    serial: str
    """What must not run at once, by the arguments (`"order:{order_id}"`), over all processes of a ledger: such calls
    wait for each other, in the order of their turn. Several tools can share one."""
    key: str
    """Names the effect by the arguments (`"refund:{order_id}"`), over all runs and threads of a ledger. Left out, the
    effect is named by its place in the run."""
    untrusted: bool
    """Whether its results hold text written by strangers; it is marked as such in what the model reads."""
    verify: Verify | None
    """Called as `verify(effect, args)` when nobody knows whether a call happened; see `happened`. May be async."""
    hands_over: bool
    """Whether a person takes over once it has succeeded: the run then ends with the stop reason `escalated`."""

    price: Decimal | Literal["reported"] | None
    """US dollars for each call that is begun, counted into the run's cost; the body can add to it by
    `effect.report_cost(…)`. `"reported"`: only what the body says."""

    rate: Rate | None
    """How often it may be called, over all runs and processes of one ledger."""


def declare(contract: Contract, options: ToolOptions) -> Contract:
    """Return the contract with what the options declare; what they leave out is the default.

    Raises:
        ConfigurationError: If there is no such option, or no such effect.
    """
    given = dict(cast("Mapping[str, Any]", options))
    refuse_unknown(f"tool {contract.name!r}", given, ToolOptions.__annotations__, tool=contract.name)
    effect = given.pop("effect", None)
    kept = ("name", "description", "schema", "run", "arun", "reports", "channels", "by_person", "origin", "version")
    own = {name: getattr(contract, name) for name in kept}
    plain = Contract(**own)
    return replace(plain, effect=_effect_kind(contract.name, effect), declared=effect is not None, **given)


def _effect_kind(name: str, effect: str | None) -> EffectKind:
    kinds = [*EffectKind]
    if effect is not None and effect not in kinds:
        given = ", ".join(repr(kind.value) for kind in kinds)
        text = f"tool {name!r}: effect is {effect!r}; give one of {given}"
        raise ConfigurationError(text, tool=name, option="effect")
    return EffectKind.WRITE if effect is None else EffectKind(effect)
