"""What an agent is made of: frozen, and checked when it was built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from loopwright.models import Pricer
from loopwright.policy import Bounds, Rule, bounds_of
from loopwright.state import Limits, Purpose, RunRecord, ThreadRecord
from loopwright.tools import Contract


@dataclass(frozen=True)
class AgentSpec:
    """Everything that the nodes need to know of an agent."""

    name: str
    model: BaseChatModel
    model_name: str
    bound: Runnable[Any, BaseMessage]
    """The model with the tools' schemas."""
    offered: tuple[BaseTool, ...]
    """The tools as they were given: what another model is bound to when it takes this one's place."""
    tools_tokens: int
    """Input tokens of the tools' schemas, estimated."""
    tools: Mapping[str, Contract]
    rules: tuple[Rule, ...]
    limits: Limits
    system_prompt: str
    price: Pricer | None
    """None: the model has no known price, and costs are not counted."""
    wrap_up: bool = False
    """Whether a run that meets a limit may say in one last call what it found."""

    def bounds(self, run: RunRecord, thread: ThreadRecord) -> Bounds:
        """Return what bounds a run here and now; its last words are left out until they are due."""
        keeps = self.wrap_up and run.get("purpose") != Purpose.WRAP_UP
        return bounds_of(self.limits, run, thread, keeps_last_words=keeps)
