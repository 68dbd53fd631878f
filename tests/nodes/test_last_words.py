"""The last words of a run that met a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import SecretStr
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.till import Till

from loopwright import Checkpoints, Limits, StopReason, create_agent, open_model
from loopwright.errors import ConfigurationError
from loopwright.nodes.last_words import leaving_of, order_to_stop, shortened, told_without_calls
from loopwright.nodes.view import SUMMARY_ID
from loopwright.policy import Room
from loopwright.state import Tokens
from loopwright.testing import OpenAIServer, ScriptedModel, call, check_transcript

LOOKS = [call("look", order_id=f"A{number}") for number in range(9)]
WORDS = "A0 and A1 are there; A2 is still open."


def run(checkpoints: Checkpoints, turns: Sequence[Any], limits: Limits, door: DoorName = "sync") -> Any:
    """Run a script with `wrap_up`; the script must be used up."""
    model = ScriptedModel(turns)
    agent = create_agent(model, [Till().look()], limits=limits, wrap_up=True)
    result = Desk(agent, checkpoints, door).run()
    check_transcript(result.messages)
    model.assert_done()
    return result, model


@pytest.mark.parametrize("door", DOORS)
def test_within_the_limit_of_steps(checkpoints: Checkpoints, door: DoorName) -> None:
    """Of three steps the last one is for the words: the model is told so, and offered no tools."""
    result, model = run(checkpoints, [*LOOKS[:2], WORDS], Limits(max_steps=3), door)
    assert (StopReason.MAX_STEPS, WORDS, 3) == (result.stop_reason, result.answer, result.usage.steps)
    assert result.limit == "the run's max_steps of 3"
    last = model.seen[-1]
    assert "max_steps of 3" in last[-1].text
    assert not any(isinstance(message, ToolMessage) or getattr(message, "tool_calls", ()) for message in last)


def test_after_too_many_tool_calls(checkpoints: Checkpoints) -> None:
    """What fitted ran, the rest was answered; then the words."""
    result, _ = run(checkpoints, [LOOKS[:3], WORDS], Limits(max_tool_calls=2))
    assert (StopReason.MAX_TOOL_CALLS, WORDS, 2) == (result.stop_reason, result.answer, result.usage.tool_calls)


def test_within_the_tokens(checkpoints: Checkpoints) -> None:
    """Room for the words is kept from the start, so that all of it stays within the limit."""
    usage: Any = {"input_tokens": 300, "output_tokens": 100, "total_tokens": 400}
    turns = [AIMessage("", tool_calls=[{**LOOKS[0], "id": "c"}], usage_metadata=usage), AIMessage(WORDS)]
    result, model = run(checkpoints, turns, Limits(max_tokens=1200))
    assert (StopReason.MAX_TOKENS, WORDS) == (result.stop_reason, result.answer)
    assert result.usage.tokens <= 1200
    assert model.told[0]["max_tokens"] < 400


@pytest.mark.parametrize("words", [RuntimeError("gone"), "", LOOKS[2]])
def test_words_that_do_not_come(checkpoints: Checkpoints, words: Any) -> None:
    """The best answer so far is kept, the limit stays the reason, and a call without an offer never runs."""
    thought = AIMessage("A1 looks good.", tool_calls=[{**LOOKS[1], "id": "c"}])
    result, _ = run(checkpoints, [LOOKS[0], thought, words], Limits(max_steps=3))
    assert (StopReason.MAX_STEPS, "A1 looks good.") == (result.stop_reason, result.answer)
    assert 2 == result.usage.tool_calls


def test_nothing_found_needs_no_words(checkpoints: Checkpoints) -> None:
    """Before the first step there is nothing to say."""
    result, _ = run(checkpoints, [], Limits(max_tokens=10))
    assert (StopReason.MAX_TOKENS, "") == (result.stop_reason, result.answer)


def test_without_the_option_no_call_is_made(checkpoints: Checkpoints) -> None:
    """It costs a call, so it has to be asked for."""
    model = ScriptedModel(LOOKS[:2])
    result = Desk(create_agent(model, [Till().look()], limits=Limits(max_steps=2)), checkpoints).run()
    assert (StopReason.MAX_STEPS, 2) == (result.stop_reason, result.usage.steps)
    model.assert_done()


@pytest.mark.parametrize("steps", [0, 1])
def test_too_few_steps_for_it(steps: int) -> None:
    """One step is for finding something out."""
    with pytest.raises(ConfigurationError, match="at least 2"):
        create_agent(ScriptedModel([]), [], limits=Limits(max_steps=steps), wrap_up=True)


def test_on_the_wire(checkpoints: Checkpoints) -> None:
    """No tools are sent, and no messages that would need them."""
    with OpenAIServer([LOOKS[0], WORDS]) as server:
        model = open_model("openai:m", base_url=server.base_url, api_key=SecretStr("k"))
        agent = create_agent(model, [Till().look()], limits=Limits(max_steps=2), wrap_up=True)
        assert WORDS == Desk(agent, checkpoints).run().answer
    body = server.requests[-1].body
    assert "tools" not in body
    assert {"user", "assistant"} == {message["role"] for message in body["messages"]}


def test_what_does_not_fit_is_left_out_from_the_old_end() -> None:
    """System prompt, task and the order to stop stay."""
    messages: list[AnyMessage] = [SystemMessage("s"), HumanMessage("task"), *[AIMessage(str(n)) for n in range(5)]]
    assert ["s", "task", "3", "4"] == [message.text for message in shortened_to(5, messages)[:-1]]


@pytest.mark.parametrize(
    ("most", "kept"),
    [
        (7, ["s", "task", "notes", "newest task", "1", "2"]),
        (6, ["s", "task", "notes", "newest task", "2"]),
        (5, ["s", "task", "notes", "newest task"]),
        (4, ["s", "task", "notes"]),
        (3, ["s", "task"]),
    ],
)
def test_a_summary_outlasts_the_turns_behind_it(most: int, kept: list[str]) -> None:
    """It stands for all that was left out before: plain turns go first, then the newest task, and it goes last."""
    messages: list[AnyMessage] = [SystemMessage("s"), HumanMessage("task"), AIMessage("notes", id=f"{SUMMARY_ID}1")]
    messages += [HumanMessage("newest task"), *[AIMessage(str(n)) for n in range(3)]]
    assert kept == [message.text for message in shortened_to(most, messages)[:-1]]


def shortened_to(most: int, messages: list[AnyMessage]) -> list[AnyMessage]:
    """Return what is sent for the last words, where so many messages fit."""
    told = told_without_calls(messages, order_to_stop(""))

    def room_for(kept: list[AnyMessage]) -> Room | StopReason:
        return Room(Tokens(1, 1), 0, None) if len(kept) <= most else StopReason.MAX_TOKENS

    kept, room = shortened(told, leaving_of(messages), room_for)
    assert isinstance(room, Room)
    return kept


def test_a_long_transcript_is_cut_in_few_looks() -> None:
    """How much must go is searched for, not tried message by message: each look reads all that is left."""
    told: list[AnyMessage] = [HumanMessage("task"), *[AIMessage(str(n)) for n in range(5_000)], HumanMessage("stop")]
    looks: list[int] = []

    def room_for(kept: list[AnyMessage]) -> Room | StopReason:
        looks.append(len(kept))
        return Room(Tokens(1, 1), 0, None) if len(kept) <= 7 else StopReason.MAX_TOKENS

    kept, _ = shortened(told, leaving_of(told[:-1]), room_for)
    assert (7, "task", "4995", "stop") == (len(kept), kept[0].text, kept[1].text, kept[-1].text)
    assert len(looks) <= 20
