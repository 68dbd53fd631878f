"""Cases from public bug reports: the history must stay valid (C01)."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import SecretStr
from tests.world.doors import Desk
from tests.world.till import Till

from loopwright import Limits, create_agent, open_checkpoints, open_model
from loopwright.testing import AnthropicServer, OpenAIServer, ScriptedModel, call, check_transcript

TURN = [call("look", call_id=name, order_id=name) for name in "abc"]


def test_c01_stopping_at_the_tool_limit_answers_every_call() -> None:
    """Each of three parallel calls has its result, the unrun ones say so, and the next message is accepted."""
    till = Till()
    model = ScriptedModel([TURN, "Hello."])
    agent = create_agent(model, [till.look()], limits=Limits(max_tool_calls=1))
    with open_checkpoints("memory:") as checkpoints:
        desk = Desk(agent, checkpoints)
        result = desk.run("Look up three.")
        assert ("stopped", "max_tool_calls", 1) == (result.status, result.stop_reason, result.usage.tool_calls)
        check_transcript(result.messages)
        answers = [message for message in result.messages if message.type == "tool"]
        assert [None, False, False] == [message.additional_kwargs.get("executed") for message in answers]
        assert all("not run" in message.text for message in answers[1:])
        second = desk.run("And hello.")
        assert ("succeeded", "Hello.", 0) == (second.status, second.answer, second.usage.tool_calls)
        check_transcript(model.seen[1])
    assert till.looked == ["a"]


@pytest.mark.parametrize("server", [OpenAIServer, AnthropicServer])
def test_a_history_that_the_assistant_began(server: type[OpenAIServer | AnthropicServer]) -> None:
    """A chat page's greeting comes first: Anthropic refuses a transcript that does not begin with the user."""
    with server([call("look", order_id="A1"), "Hello, Ana."]) as there:
        provider = "openai:m" if server is OpenAIServer else "anthropic:m"
        model = open_model(provider, base_url=there.base_url, api_key=SecretStr("k"))
        agent: Any = create_agent(model, [Till().look()])
        out = agent.invoke({"messages": [AIMessage("How can I help?"), HumanMessage("I am Ana.")]})
        assert "Hello, Ana." == out["messages"][-1].text
        assert ["ai", "human"] == [message.type for message in out["messages"][:2]]
        assert ["user", "assistant", "user"] == [
            message["role"] for message in there.requests[-1].body["messages"] if message["role"] != "system"
        ][:3]
