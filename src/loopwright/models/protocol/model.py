"""A chat model around another one, which speaks the JSON protocol with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from loopwright.errors import ConfigurationError
from loopwright.models.replies import MALFORMED, is_whole, refusal_of

from .reading import Answer, ToolUse, Unreadable, read_decision
from .writing import decision_schema, in_protocol

Constraint = Literal["json_schema", "json_object"]
"""What a server is asked to let through: decisions alone, or any JSON object."""

_ADVICE = 'Reply with one JSON object: {"type": "tool", …} to use a tool, or {"type": "final", …} when you are done.'
_NO_CALLS: dict[str, list[Any]] = {"tool_calls": [], "invalid_tool_calls": []}
_HIDDEN = RunnableConfig(callbacks=[])
"""The protocol's own texts are no answers: who follows the outer model's stream must not see them."""


def speak_json(model: BaseChatModel, *, constrain: Constraint | None = None) -> BaseChatModel:
    """Return a chat model that calls tools by the JSON protocol, whether or not the given one can call any.

    Args:
        model: Any chat model. Its own means of calling tools are not used.
        constrain: What is sent to its server as `response_format`; None: nothing.

    Raises:
        ConfigurationError: If the constraint is unknown.
    """
    if constrain is not None and constrain not in get_args(Constraint):
        text = f"constrain is {constrain!r}; give 'json_schema', 'json_object' or None"
        raise ConfigurationError(text, option="constrain")
    return JsonProtocol(inner=model, constrain=constrain)


class JsonProtocol(BaseChatModel):
    """Takes and returns ordinary messages with calls and results; what goes over the wire is the protocol's form.

    A reply that is no decision comes back with what was wrong in its `response_metadata`.
    """

    inner: BaseChatModel
    constrain: Constraint | None = None
    tools: tuple[dict[str, Any], ...] = ()
    """Name, description and parameters of each tool."""

    @property
    def _llm_type(self) -> str:
        return "json-protocol"

    @override
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.inner._get_ls_params(stop=stop, **kwargs)  # noqa: SLF001 -- its name and its price are the inner model's

    @override
    def bind_tools(self, tools: Sequence[Any], *, tool_choice: str | None = None, **kwargs: Any) -> JsonProtocol:
        asked = sorted(name for name, value in {"tool_choice": tool_choice, **kwargs}.items() if value is not None)
        if asked:
            raise ConfigurationError(f"the JSON protocol has no option {', '.join(asked)}", options=asked)
        offered = tuple(_described(tool) for tool in tools)
        return self.model_copy(update={"tools": offered})

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        sent = in_protocol(messages, self.tools)
        return _result(self.inner.invoke(sent, _HIDDEN, stop=stop, **self._format(), **kwargs))

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        sent = in_protocol(messages, self.tools)
        return _result(await self.inner.ainvoke(sent, _HIDDEN, stop=stop, **self._format(), **kwargs))

    def _format(self) -> dict[str, Any]:
        match self.constrain:
            case None:
                return {}
            case "json_object":
                return {"response_format": {"type": "json_object"}}
            case "json_schema":
                named = {"name": "decision", "schema": decision_schema(self.tools)}
                return {"response_format": {"type": "json_schema", "json_schema": named}}


def _described(tool: Any) -> dict[str, Any]:
    function: dict[str, Any] = convert_to_openai_tool(tool)["function"]
    empty: dict[str, Any] = {"type": "object", "properties": {}}
    return {
        "name": function["name"],
        "description": function.get("description", ""),
        "parameters": function.get("parameters") or empty,
    }


def _result(reply: BaseMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=_decided(reply))])


def _decided(reply: BaseMessage) -> AIMessage:
    """Return the reply as an ordinary message: with a call, with the answer as its text, or marked as unreadable."""
    message = reply if isinstance(reply, AIMessage) else AIMessage(content=reply.content)
    extra = {**message.additional_kwargs} | ({"refusal": said} if (said := refusal_of(message)) else {})
    kept = message.model_copy(update={"content": message.text, "additional_kwargs": extra, **_NO_CALLS})
    if not message.text.strip():
        return kept
    decision = read_decision(message.text)
    if not is_whole(message):
        decision = Unreadable("it was cut off or filtered")
    match decision:
        case Answer(text):
            return kept.model_copy(update={"content": text})
        case ToolUse(tool, given, thought, unread):
            call = ToolCall(name=tool, args=given, id=None, type="tool_call")
            bad = InvalidToolCall(name=tool, args=unread, id=None, error=None, type="invalid_tool_call")
            calls: dict[str, Any] = {"invalid_tool_calls": [bad]} if unread else {"tool_calls": [call]}
            return kept.model_copy(update={"content": thought, **calls})
        case Unreadable(why):
            told = f"Your last reply could not be read: {why}. {_ADVICE}"
            return kept.model_copy(update={"response_metadata": {**message.response_metadata, MALFORMED: told}})
