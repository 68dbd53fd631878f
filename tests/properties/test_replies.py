"""Any sequence of replies, valid or not: the transcript stays one that all take, and no paid answer is lost."""

# pyright: reportPrivateUsage=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# The converters are what the clients send by; LangChain leaves their dictionaries without parameters.
from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langchain_anthropic.chat_models import _format_messages
from langchain_core.messages import AIMessage, BaseMessage, InvalidToolCall, ToolCall
from langchain_openai.chat_models.base import _convert_message_to_dict
from tests.world.stores import MOSTLY_IN_MEMORY, some_store

from loopwright import Limits, RunStatus, SyncRuns, create_agent, open_checkpoints, open_model, tool
from loopwright.models.replies import MALFORMED
from loopwright.testing import ScriptedModel, anthropic_rules, check_transcript, openai_rules

STEPS = 7


@tool(effect="read")
def look(order_id: str) -> str:
    """Look up an order by its code."""
    return f"{order_id} is there"


words = st.sampled_from(
    ["", " ", "Let me look.", "It is 4.", "\ud800", "\x00", '{"type": "final", "answer": "It is 4."}']
)
names = st.sampled_from(["look", "look", "gone", "", "look up", "functions.look", "x" * 70, "naïve"])
ids = st.sampled_from([None, "", "a", "a", "b:1", "x" * 50])
args: Any = st.sampled_from([{"order_id": "A1"}, {"order_id": "A2"}, {}, {"order_id": 10**30}, {"order_id": "\ud800"}])
raw = st.sampled_from(["", "{", "[1]", '"{}"', "x" * 300, None])
finishes = st.sampled_from(["stop", "stop", "tool_calls", "length", "max_tokens", "content_filter", "refusal", None])
blocks: Any = st.lists(
    st.sampled_from([
        {"type": "text", "text": "It is 4."},
        {"type": "text", "text": " "},
        {"type": "thinking", "thinking": "Hm.", "signature": "s"},
        {"type": "tool_use", "id": "a", "name": "look", "input": {}},
    ]),
    max_size=3,
)  # fmt: skip


def valid_call(name: str, given: dict[str, Any], own: str | None) -> ToolCall:
    """A call that the client could read."""
    return ToolCall(name=name, args=given, id=own, type="tool_call")


def invalid_call(name: str, given: str | None, own: str | None) -> InvalidToolCall:
    """One that it could not."""
    return InvalidToolCall(name=name, args=given, id=own, error=None, type="invalid_tool_call")


def reply(
    *,
    content: Any,
    calls: list[ToolCall],
    bad: list[InvalidToolCall],
    metadata: dict[str, Any],
    extra: dict[str, Any],
    own: str | None,
) -> AIMessage:
    """A reply."""
    options: dict[str, Any] = {"response_metadata": metadata, "additional_kwargs": extra, "id": own}
    return AIMessage(content, tool_calls=calls, invalid_tool_calls=bad, **options)


raw_call = {"name": "look", "arguments": "{}"}
extras: Any = st.sampled_from([{}, {}, {"refusal": "I will not."}, {"function_call": raw_call}])
replies = st.builds(
    reply,
    content=words | blocks,
    calls=st.lists(st.builds(valid_call, names, args, ids), max_size=2),
    bad=st.lists(st.builds(invalid_call, names, raw, ids), max_size=2),
    metadata=st.fixed_dictionaries({"finish_reason": finishes}),
    extra=extras,
    own=st.sampled_from([None, "same"]),
)


def sent_by_clients(messages: list[BaseMessage]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the requests that the real clients would make of a transcript."""
    convert: Any = _convert_message_to_dict
    formatted: Any = _format_messages
    openai = {"model": "m", "messages": [convert(message) for message in messages]}
    return openai, {"model": "m", "max_tokens": 9, "messages": formatted(messages, model="m")[1]}


@given(st.lists(replies, min_size=STEPS, max_size=STEPS), st.booleans(), MOSTLY_IN_MEMORY)
# Without shrinking: each example is a whole run, and hundreds of them would be tried.
@settings(max_examples=30, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
def test_any_replies(script: list[AIMessage], speaks_json: bool, store: Any) -> None:  # noqa: FBT001 -- hypothesis gives it by place
    """All that was sent is taken by both providers; each reply counts; the last words are the answer."""
    model = ScriptedModel(script)
    agent = create_agent(
        open_model(model, protocol="json" if speaks_json else "tools"), [look], limits=Limits(max_steps=STEPS)
    )
    with some_store(store) as url, open_checkpoints(url) as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Where is A1?", thread_id="t")
    assert result.error == ""
    check_transcript(result.messages)
    for messages in (*([] if speaks_json else model.seen), result.messages):
        openai, anthropic = sent_by_clients([*messages])
        assert "" == openai_rules.refuse_request(openai)
        assert "" == anthropic_rules.refuse_request(anthropic)
    assert result.usage.steps == result.usage.model_calls == len(model.seen)
    said = [message.text.strip() for message in result.messages if isinstance(message, AIMessage)]
    if any(said):
        assert result.answer
    if result.status is RunStatus.SUCCEEDED:
        last = result.messages[-1]
        assert result.answer == last.text.strip()
        assert MALFORMED not in last.response_metadata
