"""What the model decided: a closed union, matched exhaustively wherever it is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter


@dataclass(frozen=True, slots=True)
class RequestedCall:
    """One tool call as the model asked for it."""

    id: str
    """Unique within the transcript; given by us where the provider left it out."""
    name: str
    args: dict[str, Any]
    """As sent; empty when they could not be read."""
    error: str = ""
    """Why the arguments could not be read, for the model; empty when they could."""


@dataclass(frozen=True, slots=True)
class CallTools:
    """The model wants tools run."""

    calls: tuple[RequestedCall, ...]
    thought: str = ""
    """The text beside the calls: kept for whoever debugs, without influence."""
    kind: Literal["call_tools"] = "call_tools"


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """The model is done."""

    text: str
    is_checked: bool = False
    """Whether it is judged before it counts: then the reply, which was paid for, is stored first."""
    kind: Literal["final_answer"] = "final_answer"


@dataclass(frozen=True, slots=True)
class Malformed:
    """The reply can be taken neither for an answer nor for calls."""

    why: Literal["empty", "truncated", "unreadable"]
    text: str = ""
    """What there was of it: the best answer so far."""
    told: str = ""
    """What was wrong, for the model; empty where `why` says it all."""
    kind: Literal["malformed"] = "malformed"


@dataclass(frozen=True, slots=True)
class Refused:
    """The model, or a filter at its provider, would not answer."""

    text: str
    kind: Literal["refused"] = "refused"


Decision = CallTools | FinalAnswer | Malformed | Refused

_ADAPTER: TypeAdapter[Decision] = TypeAdapter(Annotated[Decision, Field(discriminator="kind")])


def dump_decision(decision: Decision) -> dict[str, Any]:
    """Return the decision as the plain data that the `decision` channel holds."""
    data: dict[str, Any] = _ADAPTER.dump_python(decision, mode="json")
    return data


def load_decision(data: dict[str, Any]) -> Decision:
    """Rebuild a decision from the `decision` channel."""
    return _ADAPTER.validate_python(data)
