"""Parameters that the model never sees: what fills them when the tool runs."""

from __future__ import annotations

import types
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin

from langchain_core.tools import InjectedToolArg, InjectedToolCallId
from langchain_core.tools.base import _DirectlyInjectedToolArg  # pyright: ignore[reportPrivateUsage]  # what LangChain itself tells `ToolRuntime` by
from typing_extensions import TypedDict

from loopwright.errors import ToolError

from .contract import Effect
from .surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Hidden:
    """A parameter that is filled by us."""

    kind: str
    """What fills it: `effect`, `runtime`, `state`, `store`, `call_id`, or `default` for what only a caller could."""
    channel: str = ""
    """The one channel of the state that is wanted; empty for all of them."""

    @property
    def reports(self) -> bool:
        """Whether the body can tell how far it is."""
        return self.kind in ("effect", "runtime")

    def value(self, effect: Effect) -> Any:
        """Return what the parameter gets in one call.

        Raises:
            ToolError: If the run has no such channel, or the agent no store.
        """
        around = effect.around
        match self.kind:
            case "effect":
                return effect
            case "runtime":
                return around.runtime()
            case "call_id":
                return around.call_id or effect.key
            case "store":
                return _store(around)
            case _:
                return self._state(around)

    def _state(self, around: Surroundings) -> Any:
        state = around.state()
        if not self.channel:
            return state
        if self.channel not in state:
            raise ToolError(f"the state has no {self.channel!r}; it has: {', '.join(state)}", channel=self.channel)
        return state[self.channel]


class Found(TypedDict):
    """What the hidden parameters of a tool say of it."""

    reports: bool
    channels: tuple[str, ...]


def found_in(fills: Collection[Hidden]) -> Found:
    """Return whether its body can tell how far it is, and which channels it wants by name."""
    channels = tuple(fill.channel for fill in fills if fill.kind == "state" and fill.channel)
    return Found(reports=any(fill.reports for fill in fills), channels=channels)


def _store(around: Surroundings) -> Any:
    if around.store is None:
        raise ToolError("the agent has no store; give one: create_agent(…, store=…)")
    return around.store


def hidden(hint: Any) -> Hidden | None:
    """Return how a parameter of this type is filled; None for one that the model fills."""
    inner = getattr(hint, "__value__", hint)  # what a `type` statement names
    origin = get_origin(inner)
    if origin is Annotated:
        first, *marks = get_args(inner)
        return next((found for mark in marks if (found := _marked(mark))), None) or hidden(first)
    if origin in (Union, types.UnionType):
        parts = [part for part in get_args(inner) if part is not types.NoneType]
        return hidden(parts[0]) if len(parts) == 1 else None
    if inner is Effect:
        return Hidden("effect")
    is_direct = isinstance(origin or inner, type) and issubclass(origin or inner, _DirectlyInjectedToolArg)
    return Hidden("runtime") if is_direct else None


def _marked(mark: Any) -> Hidden | None:
    """Read one of LangChain's marks: a class, or an instance of it."""
    kind = mark if isinstance(mark, type) else cast("type[object]", type(mark))
    if not issubclass(kind, InjectedToolArg):
        return None
    if issubclass(kind, InjectedToolCallId):
        return Hidden("call_id")
    from langgraph.prebuilt import InjectedState, InjectedStore

    if issubclass(kind, InjectedState):
        return Hidden("state", str(getattr(mark, "field", "") or ""))
    return Hidden("store") if issubclass(kind, InjectedStore) else Hidden("default")
