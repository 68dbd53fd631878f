"""A reply that is heard while it arrives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from langchain_core.messages import AIMessageChunk
from langchain_core.messages.tool import tool_call_chunk
from langchain_openai import ChatOpenAI
from pydantic import SecretStr
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.till import Till

from loopwright import Checkpoints, create_agent
from loopwright.models import read_reply
from loopwright.nodes.voice import Voice
from loopwright.state import CallTools
from loopwright.testing import OpenAIServer, Reply, check_transcript


def pieces(args: str) -> Iterator[AIMessageChunk]:
    """Stream a call of `pay`, as LangChain's clients for any server do."""
    half = len(args) // 2
    yield AIMessageChunk(
        content="I pay.", tool_call_chunks=[tool_call_chunk(name="pay", args=args[:half], id="c1", index=0)]
    )
    yield AIMessageChunk(content="", tool_call_chunks=[tool_call_chunk(args=args[half:], index=0)])
    yield AIMessageChunk(content="", response_metadata={"finish_reason": "tool_calls"}, id="m1")


@pytest.mark.parametrize("args", ['{"amount": 25', '{"amount": 25, "to', "[1]", '{"amount": 25}', "", "`[1]`"])
def test_a_call_whose_arguments_broke_off_is_not_completed(args: str) -> None:
    """Only what was sent whole is a call that can run; the text, the call's name and its id are kept."""
    said: list[str] = []
    message, decision = read_reply(Voice(said.append).hear(pieces(args)), "r/1")
    assert isinstance(decision, CallTools)
    [call] = decision.calls
    is_whole = args in {"", '{"amount": 25}'}
    assert (("pay", "c1"), is_whole) == ((call.name, call.id), not call.error)
    assert ({"amount": 25} if args and is_whole else {}) == call.args
    assert message is not None
    assert ("I pay.", ["I pay."], "tool_calls") == (message.text, said, message.response_metadata["finish_reason"])


@pytest.mark.parametrize("door", DOORS)
def test_a_client_that_streams_on_its_own_completes_no_call(checkpoints: Checkpoints, door: DoorName) -> None:
    """A model object with `streaming=True`: the broken call is answered with an error, and never runs."""
    with OpenAIServer([Reply(calls=[("look", '{"order_id": "A1')]), "I could not look."]) as server:
        model = ChatOpenAI(model="m", base_url=server.base_url, api_key=SecretStr("k"), max_retries=0, streaming=True)
        till = Till()
        result = Desk(create_agent(model, [till.look()]), checkpoints, door).run()
    assert ([], "I could not look.") == (till.looked, result.answer)
    check_transcript(result.messages)
