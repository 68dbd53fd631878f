"""What stands around one call of a tool: the run's state, its context and store, and who listens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

if TYPE_CHECKING:
    from langgraph.prebuilt import ToolRuntime
    from langgraph.store.base import BaseStore


def _unheard(_said: Any) -> None:
    """Outside a run nobody listens."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """How a tool body reaches what is around its call; outside a run all of it is empty."""

    call_id: str = ""
    """The id of the model's call."""
    read: Callable[[], Mapping[str, Any]] = dict
    """Returns the state's channels, as they stood when the turn's calls were sent off."""
    config: RunnableConfig = field(default_factory=RunnableConfig)
    context: Any = None
    """What the caller gave as `context=`."""
    store: BaseStore | None = None
    write: Callable[[Any], None] = _unheard
    """LangGraph's stream writer."""
    report: Callable[[str], None] = _unheard
    """Tells whoever follows the run how far a long call has come."""
    tools: tuple[BaseTool, ...] = ()

    def state(self) -> dict[str, Any]:
        """Return a copy of the state: what a tool does to it changes nothing."""
        return copy.deepcopy(dict(self.read()))

    def runtime(self) -> ToolRuntime[Any, Any]:
        """Return what LangGraph's own tools get as their `runtime`."""
        from langgraph.prebuilt import ToolRuntime

        return ToolRuntime(
            state=self.state(),
            context=self.context,
            config=self.config,
            stream_writer=self.write,
            tool_call_id=self.call_id or None,
            store=self.store,
            tools=[*self.tools],
        )
