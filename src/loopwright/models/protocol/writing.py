"""What a model that speaks the JSON protocol is sent: the rules, the tools, and the transcript in its form."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.models.replies import MALFORMED
from loopwright.state import excerpt

_RULES = """\
You work on the user's task step by step. Reply with exactly one JSON object and nothing else.
To use a tool: {"type": "tool", "tool": "<its name>", "input": {<its arguments>}, "thought": "<why, briefly>"}
When you are done: {"type": "final", "answer": "<what the user is told>"}
After a tool was used, the next message brings its result."""
_NO_TOOLS = """\
Reply with exactly one JSON object and nothing else: {"type": "final", "answer": "<what the user is told>"}"""
_LONGEST = 500
"""Characters of an unreadable reply that the model is shown again."""


def rules(tools: Sequence[Mapping[str, Any]]) -> str:
    """Return what a model is told about the protocol and its tools."""
    if not tools:
        return _NO_TOOLS
    lines = [f"* {tool['name']}: {tool['description']}\n  input: {_compact(tool['parameters'])}" for tool in tools]
    return "\n".join([_RULES, "The tools:", *lines])


def decision_schema(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the JSON schema that exactly the decisions over these tools satisfy."""
    uses = [
        _object(
            type={"const": "tool"}, tool={"const": tool["name"]}, input=tool["parameters"], thought={"type": "string"}
        )
        for tool in tools
    ]
    return {"anyOf": [*uses, _object(type={"const": "final"}, answer={"type": "string"})]}


def _object(**properties: Any) -> dict[str, Any]:
    required = [name for name in properties if name != "thought"]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def in_protocol(messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]]) -> list[BaseMessage]:
    """Return a transcript of calls and results in the protocol's form.

    One system message, then the user and the assistant by turns: results are the user's messages, and each call of
    several is a turn of its own. Templates of small models take nothing else.
    """
    systems = [message.text for message in messages if isinstance(message, SystemMessage)]
    others = [message for message in messages if not isinstance(message, SystemMessage)]
    return [SystemMessage("\n\n".join([*systems, rules(tools)])), *_merged(_turns(others))]


def _turns(messages: Sequence[BaseMessage]) -> Iterator[BaseMessage]:
    results = {message.tool_call_id: message for message in messages if isinstance(message, ToolMessage)}
    for message in messages:
        if isinstance(message, AIMessage):
            yield from _assistant(message, results)
        elif not isinstance(message, ToolMessage):
            yield HumanMessage(message.content)


def _assistant(message: AIMessage, results: Mapping[str, ToolMessage]) -> Iterator[BaseMessage]:
    if message.response_metadata.get(MALFORMED):
        yield AIMessage(excerpt(message.text, _LONGEST))
    elif not message.tool_calls:
        yield AIMessage(_compact({"type": "final", "answer": message.text}))
    for call in message.tool_calls:
        use = {"type": "tool", "tool": call["name"], "input": call["args"]}
        yield AIMessage(_compact(use | ({"thought": message.text} if message.text else {})))
        result = results.get(call["id"] or "")
        if result is not None:
            yield HumanMessage(f"Result of {call['name']}:\n{result.text}")


def _merged(messages: Iterator[BaseMessage]) -> Iterator[BaseMessage]:
    """Join what one side said in several messages."""
    last: BaseMessage | None = None
    for message in messages:
        if last is not None and last.type == message.type:
            last = type(last)(_joined(last, message))
            continue
        if last is not None:
            yield last
        last = message
    if last is not None:
        yield last


def _joined(one: BaseMessage, other: BaseMessage) -> Any:
    if isinstance(one.content, str) and isinstance(other.content, str):
        return f"{one.content}\n\n{other.content}"
    return [*_blocks(one), *_blocks(other)]


def _blocks(message: BaseMessage) -> list[Any]:
    return [{"type": "text", "text": message.content}] if isinstance(message.content, str) else [*message.content]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
