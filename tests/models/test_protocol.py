"""The JSON protocol through the whole ring: what goes over the wire, and what the state holds."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from tests.world.till import Till
from tests.world.wires import KEY, OPENAI, STREAM, every_wire, is_openai

from loopwright import (
    RunResult,
    RunStatus,
    StopReason,
    SyncRuns,
    allow,
    create_agent,
    open_checkpoints,
    open_model,
)
from loopwright.errors import ConfigurationError
from loopwright.models.protocol.writing import decision_schema, in_protocol
from loopwright.testing import OpenAIServer, ScriptedModel, check_transcript

LOOK = '{"type": "tool", "tool": "look", "input": {"order_id": "A1"}, "thought": "Let me look."}'
DONE = '{"type": "final", "answer": "It is there."}'
TOOLS: list[dict[str, Any]] = [
    {"name": "look", "description": "Look.", "parameters": {"type": "object", "properties": {}}}
]


def run(model: BaseChatModel, till: Till) -> RunResult:
    """Run one task; what the state holds is an ordinary transcript."""
    agent = create_agent(model, [till.look(), till.pay()], system_prompt="Be brief.", permissions=[allow("pay")])
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run("Where is A1?", thread_id="t")
    check_transcript(result.messages)
    return result


@every_wire
def test_a_task_goes_over_the_wire_in_the_protocols_form(wire: dict[str, Any]) -> None:
    """No tools and nothing optional is sent; results are the user's; the state has calls, results and a thought."""
    till = Till()
    with wire["server"]([LOOK, f"```json\n{DONE}\n```"]) as server:
        options: dict[str, Any] = {"api_key": KEY, "base_url": server.base_url, **wire["options"]}
        result = run(open_model(wire["name"], protocol="json", **options), till)
    server.assert_done()
    assert ("It is there.", ["A1"], "Let me look.") == (result.answer, till.looked, result.trail[0]["thought"])
    assert ["human", "ai", "tool", "ai"] == [message.type for message in result.messages]
    assert isinstance(asked := result.messages[1], AIMessage)
    assert {"order_id": "A1"} == asked.tool_calls[0]["args"]
    assert (2, 220, False) == (result.usage.model_calls, result.usage.tokens, result.usage.estimated)
    body = server.requests[1].body
    assert not {"tools", "tool_choice", "response_format"} & set(body)
    said = [m for m in body["messages"] if m["role"] != "system"]
    assert ["user", "assistant", "user"] == [message["role"] for message in said]
    assert json.loads(LOOK) == json.loads(said[1]["content"])
    assert "Result of look:\nDELIVERED" == said[2]["content"]
    system = body["messages"][0]["content"] if is_openai(wire) else body["system"]
    assert system.startswith("Be brief.\n\nYou work on")
    assert '* look: Look up an order by its code. Returns its status.\n  input: {"properties"' in system


@pytest.mark.parametrize(
    ("constrain", "sent"), [(None, None), ("json_object", "json_object"), ("json_schema", "json_schema")]
)
def test_a_server_is_asked_to_let_only_decisions_through(constrain: Any, sent: str | None) -> None:
    """By the option, and not without it."""
    with OpenAIServer([DONE]) as server:
        options: dict[str, Any] = {"api_key": KEY, "base_url": server.base_url}
        run(open_model(OPENAI["name"], protocol="json", constrain=constrain, **options), Till())
    form: dict[str, Any] = server.requests[0].body.get("response_format") or {}
    assert sent == form.get("type")
    assert ("json_schema" in form) == (sent == "json_schema")


def test_the_schema_has_each_tool_and_the_answer() -> None:
    """A decision that names another tool, or mixes both kinds, does not fit it."""
    use, final = decision_schema(TOOLS)["anyOf"]
    assert ({"const": "tool"}, {"const": "look"}) == (use["properties"]["type"], use["properties"]["tool"])
    assert ["type", "tool", "input"] == use["required"]
    assert ["type", "answer"] == final["required"]
    assert not use["additionalProperties"]


@pytest.mark.parametrize("bad", ["It is there.", f"{LOOK} {DONE}", LOOK[:-1], '{"type": "tool"}'])
def test_what_is_no_decision_is_told_and_bounded(bad: str) -> None:
    """The model reads what was wrong, beside its own words; three in a row end the run, with those as the answer."""
    told, ended = ScriptedModel([bad, DONE]), ScriptedModel([bad] * 3)
    result = run(open_model(told, protocol="json"), Till())
    assert (RunStatus.SUCCEEDED, "It is there.", 2) == (result.status, result.answer, result.usage.steps)
    assert bad == told.seen[1][2].text
    assert told.seen[1][3].text.startswith("Your last reply could not be read: ")
    stopped = run(open_model(ended, protocol="json"), Till())
    assert (StopReason.MALFORMED, bad) == (stopped.stop_reason, stopped.answer)


@pytest.mark.parametrize("given", ['"{\\"order_id\\": \\"A1\\"}"', "[1]", "3"])
def test_an_input_that_is_no_object_is_a_call_with_an_error(given: str) -> None:
    """It is answered like any other invalid call."""
    till, bad = Till(), f'{{"type": "tool", "tool": "look", "input": {given}}}'
    result = run(open_model(ScriptedModel([bad, DONE]), protocol="json"), till)
    assert ([], ["invalid"]) == (till.looked, [entry["outcome"] for entry in result.trail])


def test_a_cut_reply_is_cut_and_no_call_of_it_runs() -> None:
    """Also when the object looks whole; and a refusal stays a refusal."""
    till = Till()
    cut = AIMessage(LOOK, response_metadata={"finish_reason": "length"})
    assert "It is there." == run(open_model(ScriptedModel([cut, DONE]), protocol="json"), till).answer
    refused = AIMessage("", additional_kwargs={"refusal": "I will not."})
    result = run(open_model(ScriptedModel([refused]), protocol="json"), till)
    assert (StopReason.REFUSED, "I will not.", []) == (result.stop_reason, result.answer, till.looked)


def test_awaited_and_streamed_it_is_the_same() -> None:
    """Who follows the messages never sees the protocol's own text."""
    with OpenAIServer([LOOK, DONE]) as server:
        options: dict[str, Any] = {"api_key": KEY, "base_url": server.base_url, **STREAM}
        agent = create_agent(open_model(OPENAI["name"], protocol="json", **options), [Till().look()])

        async def main() -> list[Any]:
            task = {"messages": [HumanMessage("Where is A1?")]}
            return [part async for part, _ in agent.astream(task, stream_mode="messages")]

        parts = asyncio.run(main())
    texts = [part.text for part in parts if part.type.startswith(("ai", "AI"))]
    assert "It is there." == texts[-1]
    assert not any("{" in text for text in texts)


def test_a_transcript_of_another_model_is_told_by_turns() -> None:
    """Each of several calls is a turn of its own; the user's messages in a row are one; systems are one, in front."""
    calls: Any = [{"name": name, "args": {}, "id": name, "type": "tool_call"} for name in "ab"]
    messages = [
        SystemMessage("s"),
        HumanMessage("one"),
        HumanMessage("two"),
        AIMessage("", tool_calls=calls),
        ToolMessage("1", tool_call_id="a"),
        ToolMessage("2", tool_call_id="b"),
        HumanMessage([{"type": "text", "text": "three"}]),
        AIMessage("four"),
    ]
    sent = in_protocol(messages, TOOLS)
    assert ["system", "human", "ai", "human", "ai", "human", "ai"] == [message.type for message in sent]
    assert "one\n\ntwo" == sent[1].text
    assert [{"type": "text", "text": "Result of b:\n2"}, {"type": "text", "text": "three"}] == sent[5].content
    assert {"type": "final", "answer": "four"} == json.loads(sent[6].text)


def test_it_is_priced_capped_and_named_as_the_model_inside() -> None:
    """And its key stays out of errors."""
    from loopwright.models import cap_options, hide_keys, known_price, model_name

    inner = open_model(OPENAI["name"], api_key=KEY, max_tokens=50)
    model = open_model(inner, protocol="json")
    assert ("gpt-5-mini", "no ***!") == (model_name(model), hide_keys(f"no {KEY}!", model))
    assert known_price(model) is not None
    assert cap_options(inner, 7) == cap_options(model, 7)


def test_options_for_tools_that_the_protocol_does_not_have_are_refused() -> None:
    """No option is dropped without a word."""
    with pytest.raises(ConfigurationError, match="tool_choice"):
        open_model(ScriptedModel([]), protocol="json").bind_tools([Till().look()], tool_choice="any")
