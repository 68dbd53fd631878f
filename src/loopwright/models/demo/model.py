"""The chat model around the plan."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import Field
from typing_extensions import override

from .case import Case
from .observation import read_observations, split_task
from .plan import Move, next_move
from .request import read_request

BANNER = "The demo model is not a language model: it is a rule-based stand-in that needs no key and no network."
"""What a user is to see wherever the stand-in answers."""

_CHARACTERS_A_TOKEN = 4


def _local_date() -> date:
    return datetime.now().astimezone().date()


class DemoModel(BaseChatModel):
    """A rule-based chat model for order support, offline and deterministic.

    It is no language model. It plans from the transcript alone: the user's words, its own calls, what the tools really
    brought back. It calls `lookup_order`, `refund_policy`, `issue_refund` and `escalate` where they are bound, each in
    one turn of a task at most, and answers in English, Spanish, Portuguese or French.
    """

    model_name: str = "demo"
    today: Callable[[], date] = Field(default=_local_date, exclude=True)
    """The date of today, for tasks that don't say it."""

    @property
    @override
    def _llm_type(self) -> str:
        return "demo"

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer tools; `tool_choice` is without influence."""
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        reply = self._reply(messages, kwargs.get("tools") or [])
        return ChatResult(generations=[ChatGeneration(message=reply)])

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._generate(messages, **kwargs)

    def _reply(self, messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> AIMessage:
        said, since = split_task(messages)
        request = read_request(said)
        case = Case(request, read_observations(since), _arguments(tools), request.today or self.today())
        move = next_move(case)
        return AIMessage(
            content=move.text,
            tool_calls=_tool_calls(move, len(messages)),
            usage_metadata=_usage(messages, tools, move),
            response_metadata={"model_name": self.model_name, "finish_reason": "tool_calls" if move.calls else "stop"},
        )


def _arguments(tools: Sequence[Mapping[str, Any]]) -> dict[str, frozenset[str]]:
    functions = [tool["function"] for tool in tools]
    return {each["name"]: frozenset(each.get("parameters", {}).get("properties", {})) for each in functions}


def _tool_calls(move: Move, place: int) -> list[ToolCall]:
    """Name each call by its place, so that no two of a transcript share an id."""
    return [ToolCall(name=call.tool, args=call.args, id=f"demo-{place}-{n}") for n, call in enumerate(move.calls)]


def _usage(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], move: Move) -> UsageMetadata:
    """Estimate the tokens by the length of the texts, as a language model's would be counted."""
    heard = sum(_length(message) for message in messages) + len(json.dumps(list(tools)))
    told = len(move.text) + sum(len(call.tool) + len(json.dumps(call.args)) for call in move.calls)
    given, written = _tokens(heard), _tokens(told)
    return UsageMetadata(input_tokens=given, output_tokens=written, total_tokens=given + written)


def _length(message: BaseMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return len(message.text) + sum(len(call["name"]) + len(json.dumps(call["args"])) for call in calls)


def _tokens(characters: int) -> int:
    return max(1, -(-characters // _CHARACTERS_A_TOKEN))
