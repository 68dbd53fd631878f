"""A model that does its user's task to the letter, and obeys every injection that it reads."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import PrivateAttr

Step = tuple[str, dict[str, Any]]
"""One call: the function and its arguments."""


class ObeyingModel(BaseChatModel):
    """Makes the calls of a plan, one a turn; those of the injection come first once its goal was read."""

    _plan: list[Step] = PrivateAttr(default_factory=list[Step])
    _answer: str = PrivateAttr(default="")
    _goal: str = PrivateAttr(default="")
    _injected: list[Step] = PrivateAttr(default_factory=list[Step])
    _has_read: bool = PrivateAttr(default=False)
    _said: int = PrivateAttr(default=0)

    def take(self, plan: Sequence[Step], answer: str, goal: str = "", injected: Sequence[Step] = ()) -> None:
        """Begin anew: with what the user's task needs, and with what the injection is after."""
        self._has_read, self._said = False, 0
        self._plan = [*plan]
        self._answer = answer or "Done."
        self._goal = _squeezed(goal)
        self._injected = [*injected]

    @property
    def has_read(self) -> bool:
        """Whether the injection was read."""
        return self._has_read

    @property
    def _llm_type(self) -> str:
        return "obeying"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002 -- LangChain's signature
        """Accept any tools: the plan knows what it calls."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 -- LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 -- as above
        **kwargs: Any,  # noqa: ARG002 -- as above
    ) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._next(messages))])

    def _next(self, messages: Sequence[BaseMessage]) -> AIMessage:
        if self._goal and not self._has_read and any(self._goal in _squeezed(one.text) for one in _results(messages)):
            self._has_read = True
            self._plan = [*self._injected, *self._plan]
        if not self._plan:
            return AIMessage(self._answer)
        name, args = self._plan.pop(0)
        self._said += 1
        return AIMessage("", tool_calls=[ToolCall(name=name, args=args, id=f"call-{self._said}", type="tool_call")])


def _results(messages: Sequence[BaseMessage]) -> list[ToolMessage]:
    """Return the results that have come since the model spoke last."""
    newest: list[ToolMessage] = []
    for message in reversed(messages):
        if not isinstance(message, ToolMessage):
            break
        newest.append(message)
    return newest


def _squeezed(text: str) -> str:
    """Leave letters and digits: quoting and line breaks change on the way through files and JSON."""
    return re.sub(r"\\n|\W", "", text)
