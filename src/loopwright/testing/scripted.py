"""A chat model that says what a test wrote down, and records what it was given."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, AnyMessage, BaseMessage, ToolCall, ToolCallChunk
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import tool_call_chunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from pydantic import Field, PrivateAttr


def call(tool: str, /, *, call_id: str = "", **args: Any) -> ToolCall:
    """Write down one tool call.

    Args:
        tool: Its name.
        call_id: Left out, it is numbered by its place in the script.
        **args: Its arguments.
    """
    return ToolCall(name=tool, args=args, id=call_id or None, type="tool_call")


Turn = str | ToolCall | Sequence[ToolCall] | AIMessage | Exception | Callable[[list[AnyMessage]], Any]


class ScriptExhausted(AssertionError):
    """The model was called more often than the script has turns; or, at the end, less often."""


class ScriptedModel(BaseChatModel):
    """Takes its turns from a script; strict: one turn too few or too many fails the test.

    A turn is a string (a final answer), `call(…)` or a list of calls, an `AIMessage` (sent as it is), an exception
    (raised), or a function of the messages, whose result is a turn.

    Attributes:
        seen: The messages of each call so far.
        told: The options of each call so far, such as `max_tokens`; most calls have none.
        tokens: Of the input and of the output, reported with each reply that reports none itself; None: nothing is.
        latency: Seconds before each reply.
        chunk: Characters of a streamed piece; 0: replies come whole.
    """

    seen: list[list[AnyMessage]] = Field(default_factory=list[list[AnyMessage]])
    told: list[dict[str, Any]] = Field(default_factory=list[dict[str, Any]])
    tokens: tuple[int, int] | None = None
    latency: float = 0.0
    chunk: int = 0
    _turns: list[Any] = PrivateAttr(default_factory=list)
    _used: int = PrivateAttr(default=0)
    _missing: str = PrivateAttr(default="")

    def __init__(self, turns: Sequence[Turn], **options: Any) -> None:
        """Take the turns, in order."""
        super().__init__(**options)
        self._turns = list(turns)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:  # noqa: ARG002 -- LangChain's signature
        """Accept any tools: the script knows what it calls."""
        return self

    def assert_done(self) -> None:
        """Fail if a turn was asked for that the script does not have, or one was never asked for.

        A run catches whatever its model raises, also that the script is exhausted: so call this at the end of a test.
        """
        if self._missing:
            raise ScriptExhausted(self._missing)
        left = len(self._turns) - self._used
        if left:
            raise ScriptExhausted(f"{left} of {len(self._turns)} turns were never asked for")

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 -- LangChain's signature
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 -- as above
        **kwargs: Any,
    ) -> ChatResult:
        if self.latency:
            time.sleep(self.latency)
        return self._reply(messages, kwargs)

    def _reply(self, messages: list[BaseMessage], kwargs: dict[str, Any]) -> ChatResult:
        self.told.append(kwargs)
        self.seen.append([*messages])  # type: ignore[list-item] # pyright: ignore[reportArgumentType]  # BaseMessage is what LangChain hands over
        return ChatResult(generations=[ChatGeneration(message=self._with_usage(self._next(messages)))])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 -- LangChain's signature
        run_manager: Any = None,  # noqa: ARG002 -- as above
        **kwargs: Any,
    ) -> ChatResult:
        if self.latency:
            await asyncio.sleep(self.latency)
        return self._reply(messages, kwargs)

    def _should_stream(self, **kwargs: Any) -> bool:
        return self.chunk > 0 and super()._should_stream(**kwargs)

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,  # noqa: ARG002 -- as above
        run_manager: CallbackManagerForLLMRun | None = None,  # noqa: ARG002 -- as above
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        message = cast("AIMessage", self._generate(messages, **kwargs).generations[0].message)
        for start in range(0, len(message.text), max(self.chunk, 1)):
            piece = AIMessageChunk(content=message.text[start : start + self.chunk], id=message.id)
            yield ChatGenerationChunk(message=piece)
        yield ChatGenerationChunk(message=_last_chunk(message))

    def _with_usage(self, message: AIMessage) -> AIMessage:
        if self.tokens is None or message.usage_metadata:
            return message
        given, written = self.tokens
        usage = UsageMetadata(input_tokens=given, output_tokens=written, total_tokens=given + written)
        return message.model_copy(update={"usage_metadata": usage})

    def _next(self, messages: list[BaseMessage]) -> AIMessage:
        if self._used >= len(self._turns):
            newest = messages[-1].text if messages else ""
            asked = f"turn {self._used + 1} was asked for, the script has {len(self._turns)}; newest: {newest!r}"
            self._missing = asked
            raise ScriptExhausted(asked)
        number, turn = self._used, self._turns[self._used]
        self._used += 1
        return self._say(turn, number, messages)

    def _say(self, turn: Any, number: int, messages: list[BaseMessage]) -> AIMessage:
        if isinstance(turn, Exception):
            raise turn
        if isinstance(turn, AIMessage):
            return turn
        if isinstance(turn, str):  # before `callable`: the text of LangChain's messages is both
            return AIMessage(str(turn))
        if callable(turn):
            return self._say(turn(messages), number, messages)
        calls = cast("Sequence[ToolCall]", [turn] if isinstance(turn, dict) else turn)
        named = [{**one, "id": one["id"] or f"call-{number}-{place}"} for place, one in enumerate(calls)]
        return AIMessage("", tool_calls=named)


def _last_chunk(message: AIMessage) -> AIMessageChunk:
    """Return what a stream brings behind the text: calls, usage, and why it ended."""
    valid = [
        tool_call_chunk(name=asked["name"], args=json.dumps(asked["args"]), id=asked["id"])
        for asked in message.tool_calls
    ]
    invalid = [
        tool_call_chunk(name=bad.get("name"), args=bad.get("args"), id=bad.get("id"))
        for bad in message.invalid_tool_calls
    ]
    calls = [{**one, "index": index} for index, one in enumerate([*valid, *invalid])]
    return AIMessageChunk(
        content="",
        id=message.id,
        tool_call_chunks=cast("list[ToolCallChunk]", calls),
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        additional_kwargs=message.additional_kwargs,
    )
