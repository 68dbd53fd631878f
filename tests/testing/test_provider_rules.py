"""What the servers refuse, as the providers would: tables, and the real clients against parameters (C71)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.world.wires import every_wire, run

from loopwright import RunStatus, SyncRuns, create_agent, open_checkpoints, open_model
from loopwright.testing import OpenAIServer, Reply, anthropic_rules, openai_rules

USER = {"role": "user", "content": "hi"}


def asks(*ids: Any, arguments: Any = "{}", name: str = "f") -> dict[str, Any]:
    """OpenAI's message with calls."""
    function = {"name": name, "arguments": arguments}
    return {"role": "assistant", "tool_calls": [{"id": own, "type": "function", "function": function} for own in ids]}


def tells(own: str, content: Any = "1") -> dict[str, Any]:
    """OpenAI's result."""
    return {"role": "tool", "tool_call_id": own, "content": content}


IMAGE = [{"type": "image_url", "image_url": {"url": "data:,"}}]
OPENAI_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({"messages": []}, "empty array"),
    "an unknown parameter": ({"foo": 1}, "Unrecognized"),
    "no tools": ({"tools": []}, "'tools': empty array"),
    "a choice of nothing": ({"parallel_tool_calls": False}, "only allowed when 'tools'"),
    "stream options without a stream": ({"stream_options": {}}, "only allowed when 'stream'"),
    "no result": ({"messages": [USER, asks("a"), USER]}, "did not have response messages: a"),
    "one result missing": ({"messages": [USER, asks("a", "b"), tells("a")]}, "response messages: b"),
    "a stray result": ({"messages": [USER, tells("a")]}, "must be a response"),
    "no content": ({"messages": [USER, {"role": "assistant", "content": None}]}, "got null"),
    "an image in a result": ({"messages": [USER, asks("a"), tells("a", IMAGE)]}, "only allowed for messages"),
    "an empty id": ({"messages": [USER, asks(""), tells("")]}, ".id'"),
    "a long id": ({"messages": [USER, asks("x" * 41), tells("x" * 41)]}, ".id'"),
    "an id twice": ({"messages": [USER, asks("a", "a"), tells("a"), tells("a")]}, "Duplicate"),
    "cut arguments": ({"messages": [USER, asks("a", arguments='{"b"'), tells("a")]}, "JSON object"),
    "a list as arguments": ({"messages": [USER, asks("a", arguments="[1]"), tells("a")]}, "JSON object"),
    "an illegal name": ({"messages": [USER, asks("a", name="f g"), tells("a")]}, "does not match pattern"),
}


def use(own: Any, **changes: Any) -> dict[str, Any]:
    """Anthropic's block of a call."""
    return {"type": "tool_use", "id": own, "name": "f", "input": {}, **changes}


def gives(own: str) -> dict[str, Any]:
    """Anthropic's block of a result."""
    return {"type": "tool_result", "tool_use_id": own, "content": "1"}


def turns(*contents: Any) -> dict[str, Any]:
    """User and assistant by turns."""
    roles = ("user", "assistant")
    return {"messages": [{"role": roles[place % 2], "content": content} for place, content in enumerate(contents)]}


TEXT = {"type": "text", "text": "hm"}
ANTHROPIC_BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no room for a reply": ({"max_tokens": None}, "max_tokens: Field required"),
    "an unknown parameter": ({"stream_options": {}}, "Extra inputs"),
    "another role": ({"messages": [{"role": "system", "content": "x"}]}, "Unexpected role"),
    "the assistant first": ({"messages": [{"role": "assistant", "content": "x"}]}, "first message must"),
    "no content": (turns("hi", [], "x"), "non-empty content"),
    "a blank text": (turns("hi", [{"type": "text", "text": " "}], "x"), "non-whitespace"),
    "a trailing blank": (turns("hi", "hm "), "trailing whitespace"),
    "no result": (turns("hi", [use("a")], "x"), "immediately after: a"),
    "no result at the end": (turns("hi", [use("a")]), "blocks after: a"),
    "a result of nobody's": (turns("hi", "x", [gives("a")]), "unexpected"),
    "a text before the result": (turns("hi", [use("a")], [TEXT, gives("a")]), "come first"),
    "a result twice": (turns("hi", [use("a")], [gives("a"), gives("a")]), "single result"),
    "an id twice": (turns("hi", [use("a")], [gives("a")], [use("a")], [gives("a")]), "must be unique"),
    "an odd id": (turns("hi", [use("f:0")], [gives("f:0")]), "tool_use.id"),
    "an illegal name": (turns("hi", [use("a", name="f g")], [gives("a")]), "tool_use.name"),
    "an input that is none": (turns("hi", [use("a", input="{}")], [gives("a")]), "valid dictionary"),
    "another schema": ({"tools": [{"name": "f", "parameters": {}}]}, "input_schema"),
}


@pytest.mark.parametrize(("changes", "match"), OPENAI_BAD.values(), ids=OPENAI_BAD.keys())
def test_openai(changes: dict[str, Any], match: str) -> None:
    """The reason names the place."""
    good = {"model": "m", "messages": [USER, asks("a", "b"), tells("b"), tells("a"), USER]}
    assert "" == openai_rules.refuse_request(good)
    assert match in openai_rules.refuse_request({**good, **changes})


@pytest.mark.parametrize(("changes", "match"), ANTHROPIC_BAD.values(), ids=ANTHROPIC_BAD.keys())
def test_anthropic(changes: dict[str, Any], match: str) -> None:
    """Turns of one side are joined before they are judged."""
    good: dict[str, Any] = {"model": "m", "max_tokens": 9, **turns("hi", [TEXT, use("a"), use("b")], [gives("a")])}
    good["messages"].append({"role": "user", "content": [gives("b"), TEXT]})
    assert "" == anthropic_rules.refuse_request(good)
    assert match in anthropic_rules.refuse_request({**good, **changes})


@every_wire
@pytest.mark.parametrize("name", ["parallel_tool_calls", "temperature", "stream_options", "tool_choice"])
def test_c71_a_parameter_that_the_model_does_not_take_is_not_sent(wire: dict[str, Any], name: str) -> None:
    """Unless the user set it: here nobody did, so a server that refuses it answers."""
    quiet = {**wire, "options": {"streaming": bool(wire["options"])}}
    result, _, _ = run(quiet, ["Hello."], refuses=[name])
    assert "Hello." == result.answer


def test_c71_what_the_user_set_is_sent_and_the_refusal_is_shown() -> None:
    """As the server said it, after one request."""
    with OpenAIServer([Reply("Hello.")], only={"temperature": 1}) as server:
        model = open_model("openai:a-model-of-my-own", api_key="k", base_url=server.base_url, temperature=0)
        with open_checkpoints("memory:") as checkpoints:
            result = SyncRuns(create_agent(model, []), checkpoints).run("Hi.", thread_id="t")
    assert (RunStatus.FAILED, 1) == (result.status, len(server.requests))
    assert "'temperature' does not support" in result.error
