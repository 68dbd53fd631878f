"""`reason`: the worst case of each call is reserved before it is made."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from pydantic import SecretStr
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.till import Till

from loopwright import Checkpoints, Limits, Price, StopReason, create_agent, open_model
from loopwright.models import UNKNOWN_OUTPUT, most_output
from loopwright.testing import OpenAIServer, Reply, ScriptedModel, call, check_transcript


def reply(text: str, tokens_in: int, tokens_out: int, *, finish: str = "stop") -> AIMessage:
    """A final answer that reports what it took."""
    usage: Any = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return AIMessage(text, usage_metadata=usage, response_metadata={"finish_reason": finish})


@pytest.mark.parametrize("door", DOORS)
def test_a_cap_is_sent_when_less_is_left_than_the_model_could_say(checkpoints: Checkpoints, door: DoorName) -> None:
    """What is left after the input, and nothing at all while the model's own maximum fits."""
    for limit, told in ((UNKNOWN_OUTPUT + 500, {}), (1000, {"max_tokens": 994})):
        model = ScriptedModel([reply("Done.", 6, 10)])
        Desk(create_agent(model, [], limits=Limits(max_tokens=limit)), checkpoints, door).run(thread_id=str(limit))
        assert [told] == model.told


def test_a_call_that_does_not_fit_is_not_made(checkpoints: Checkpoints) -> None:
    """Not even a small answer fits: the run stops before the call."""
    model = ScriptedModel([])
    result = Desk(create_agent(model, [], limits=Limits(max_tokens=60)), checkpoints).run()
    assert (StopReason.MAX_TOKENS, 0, 0) == (result.stop_reason, result.usage.tokens, result.usage.model_calls)
    model.assert_done()


def test_money_bounds_the_reply(checkpoints: Checkpoints) -> None:
    """The longest reply that the money pays for is what the provider is told."""
    model = ScriptedModel([reply("Done.", 6, 10)])
    price = Price(Decimal(10), Decimal(100))
    agent = create_agent(model, [], price=price, limits=Limits(max_cost=Decimal("0.01")))
    result = Desk(agent, checkpoints).run()
    assert [{"max_tokens": 99}] == model.told
    assert Decimal("0.00106") == result.usage.cost


def test_what_was_cut_by_the_cap_ends_the_run(checkpoints: Checkpoints) -> None:
    """With what was said, and the limit as the reason: asking for a shorter one would meet it again."""
    model = ScriptedModel([reply("It is 4 b", 6, 94, finish="length")])
    result = Desk(create_agent(model, [], limits=Limits(max_tokens=100)), checkpoints).run()
    assert ("stopped", StopReason.MAX_TOKENS, "It is 4 b") == (result.status, result.stop_reason, result.answer)
    assert 100 == result.usage.tokens
    check_transcript(result.messages)
    model.assert_done()


def test_tools_are_part_of_the_input(checkpoints: Checkpoints) -> None:
    """Their schemas are sent with each call; a reported total has them in it."""
    till = Till()
    model = ScriptedModel([call("look", order_id="A1"), "Done."])
    agent = create_agent(model, [till.look()], limits=Limits(max_tokens=2000))
    result = Desk(agent, checkpoints).run()
    assert agent.spec.tools_tokens > 30
    assert result.usage.input_tokens > 2 * agent.spec.tools_tokens
    assert result.usage.estimated


@pytest.mark.parametrize(("limits", "sent"), [(Limits(max_tokens=1000), True), (Limits(), False)])
def test_on_the_wire(checkpoints: Checkpoints, limits: Limits, sent: bool) -> None:  # noqa: FBT001 -- a column
    """OpenAI's protocol gets its own parameter, and only when a limit asks for it."""
    with OpenAIServer([Reply("Done.")]) as server:
        model = open_model("openai:m", base_url=server.base_url, api_key=SecretStr("k"))
        Desk(create_agent(model, [], limits=limits), checkpoints).run()
    body = server.requests[0].body
    assert sent == ("max_completion_tokens" in body)
    assert "max_tokens" not in body


def test_the_models_own_maximum() -> None:
    """As the user set it, else as LangChain lists it, else a guess."""
    key = SecretStr("k")
    assert 700 == most_output(open_model("openai:gpt-5-mini", api_key=key, max_tokens=700))
    assert 128_000 == most_output(open_model("openai:gpt-5-mini", api_key=key))
    assert UNKNOWN_OUTPUT == most_output(open_model("openai:of-my-own", api_key=key))
