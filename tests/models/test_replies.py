"""What a reply means: calls, an answer, a refusal, or nothing that can be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall, ToolMessage

from loopwright import SyncRuns, create_agent, open_checkpoints
from loopwright.models import estimate_input, ids_of, read_reply, tokens_of, why_broken
from loopwright.state import CallTools, FinalAnswer, Malformed, Refused
from loopwright.testing import ScriptedModel, check_transcript


def message(content: Any = "", *, calls: Any = (), invalid: Any = (), finish: str = "stop", **extra: Any) -> AIMessage:
    """A reply."""
    return AIMessage(
        content,
        tool_calls=[*calls],
        invalid_tool_calls=[*invalid],
        response_metadata={"finish_reason": finish},
        additional_kwargs=extra,
    )


def asked(call_id: str | None, value: int = 1) -> ToolCall:
    """A call."""
    return ToolCall(name="echo", args={"value": value}, id=call_id, type="tool_call")


UNREAD = "the call could not be read; name a tool, and give its arguments as a JSON object"
TABLE: list[tuple[AIMessage, Any]] = [
    (message("It is 4."), FinalAnswer("It is 4.")),
    (message([{"type": "text", "text": "It is 4."}]), FinalAnswer("It is 4.")),
    (message(""), Malformed("empty")),
    (message(" \n"), Malformed("empty")),
    (message([]), Malformed("empty")),
    (message([{"type": "reasoning", "reasoning": "hm"}]), Malformed("empty")),
    (message("It is", finish="length"), Malformed("truncated", "It is")),
    (message("", finish="length"), Malformed("truncated")),
    (message("", calls=[asked("c1")], finish="length"), Malformed("truncated")),
    (message("", finish="MAX_TOKENS"), Malformed("truncated")),
    (message("Let me", finish="pause_turn"), Malformed("truncated", "Let me")),
    (message("", finish="MALFORMED_FUNCTION_CALL"), Malformed("unreadable", "", UNREAD)),
    (
        message("I look.", calls=[asked("c1")], finish="malformed_function_call"),
        Malformed("unreadable", "I look.", UNREAD),
    ),
    (message("It is", finish="RECITATION"), Refused("It is")),
    (message("It is 4.", finish="some_new_word"), FinalAnswer("It is 4.")),
    (message("", finish="SAFETY"), Refused("The model's provider filtered the reply.")),
    (message("", finish="content_filter"), Refused("The model's provider filtered the reply.")),
    (message("Half a", finish="content_filter"), Refused("Half a")),
    (message("", refusal="I cannot."), Refused("I cannot.")),
    (message([{"type": "refusal", "refusal": "I cannot."}]), Refused("I cannot.")),
    (message("", calls=[asked("c1")], refusal="I cannot."), Refused("I cannot.")),
]


@pytest.mark.parametrize(
    ("reason", "decision"),
    [
        ("max_output_tokens", Malformed("truncated", "It is")),
        (None, Malformed("truncated", "It is")),
        ("content_filter", Refused("It is")),
    ],
)
def test_what_the_responses_api_cut_runs_no_call(reason: str | None, decision: Any) -> None:
    """OpenAI's other protocol has no finish reason: a reply that is not whole says so in `incomplete_details`."""
    reply = message("It is", calls=[asked("c1")], finish="")
    reply.response_metadata |= {"status": "incomplete", "incomplete_details": {"reason": reason}}
    kept, found = read_reply(reply, "r/1")
    assert decision == found
    assert kept is not None
    assert not kept.tool_calls
    reply.response_metadata |= {"status": "completed", "incomplete_details": None}
    assert isinstance(read_reply(reply, "r/1")[1], CallTools)


@pytest.mark.parametrize(("reply", "decision"), TABLE)
def test_table(reply: AIMessage, decision: Any) -> None:
    """And what is kept of it is a message that can be sent again, or nothing."""
    kept, found = read_reply(reply, "r/1")
    assert decision == found
    check_transcript([kept] if kept else [])


@pytest.mark.parametrize("finish", ["error", "abort", "network_error", "insufficient_system_resource"])
def test_a_reply_in_which_the_provider_failed_is_none(finish: str) -> None:
    """What came of it is no answer, whole as it may look."""
    assert finish in why_broken(message("It is", finish=finish))
    assert "" == why_broken(message("It is", finish="stop"))


def test_what_no_store_takes_is_replaced_wherever_it_stands() -> None:
    """In what the model thought too, which goes back to its provider; and what a server set is not kept."""
    thought = {"type": "thinking", "thinking": "h\ud800m", "signature": "signed"}
    reply = message([thought, {"type": "text", "text": "I\x00look."}], calls=[asked("c1")])
    reply.response_metadata |= {"headers": {"set-cookie": "secret"}, "deep": json.loads("[" * 300 + "]" * 300)}
    kept, _ = read_reply(reply, "r/1")
    assert kept is not None
    assert [{**thought, "thinking": "h\ufffdm"}, {"type": "text", "text": "I\ufffdlook."}] == kept.content
    assert {"finish_reason": "stop"} == kept.response_metadata
    assert [asked("c1")] == kept.tool_calls


@pytest.mark.parametrize("depth", [120, 252, 800])
def test_arguments_that_are_nested_too_deep_for_a_store_are_told(depth: int) -> None:
    """Also where they stand in a block of the content; the run goes on."""
    deep: Any = []
    for _ in range(depth):
        deep = [deep]
    block = {"type": "tool_use", "id": "c1", "name": "echo", "input": {"value": deep}}
    asks = message([{"type": "text", "text": "I look."}, block], calls=[{**asked("c1"), "args": {"value": deep}}])
    kept, decision = read_reply(asks, "r/1")
    assert isinstance(decision, CallTools)
    assert "nested too deep" in decision.calls[0].error
    assert "[[[" not in str(kept)
    agent = create_agent(ScriptedModel([asks, "Done."]), [])
    with open_checkpoints("memory:") as checkpoints:
        assert "Done." == SyncRuns(agent, checkpoints).run("Echo.", thread_id="t").answer


def test_what_a_provider_wants_back_stays_beside_a_call_that_is_mended() -> None:
    """Google's signatures of thoughts, say; but no raw call, which would be sent beside ours."""
    raw: Any = {"tool_calls": [{"id": "c1"}], "function_call": {"name": "echo"}}
    reply = message("", calls=[asked("c1"), asked("c1", 2)], signatures={"c1": "signed"}, **raw)
    kept, _ = read_reply(reply, "r/1")
    assert kept is not None
    assert {"signatures": {"c1": "signed"}} == kept.additional_kwargs
    assert 2 == len({one["id"] for one in kept.tool_calls})


@pytest.mark.parametrize("odd", [-1_000_000, 2**62])
def test_an_odd_report_is_not_believed_later(odd: int) -> None:
    """Neither does it make room for the next call, nor does it fill the thread for ever."""
    usage: Any = {"input_tokens": odd, "output_tokens": odd, "total_tokens": odd}
    said = AIMessage("x" * 40, usage_metadata=usage)
    assert 104 + 14 == estimate_input([HumanMessage("x" * 400), said])
    usage["input_tokens"] = 300
    assert 300 == estimate_input([HumanMessage("x" * 400), AIMessage("x" * 40, usage_metadata=usage)])


def test_calls_with_a_thought() -> None:
    """The text beside them is kept with them."""
    kept, decision = read_reply(message("Let me look.", calls=[asked("c1")]), "r/1")
    assert isinstance(decision, CallTools)
    assert ("Let me look.", ["c1"], [{"value": 1}]) == (
        decision.thought,
        [call.id for call in decision.calls],
        [call.args for call in decision.calls],
    )
    assert kept is not None
    assert kept.text == "Let me look."


@pytest.mark.parametrize("ids", [["", "", None], ["a", "a", "a"], [None, "a", "a"]])
def test_every_call_gets_an_id_of_its_own(ids: list[str | None]) -> None:
    """The same in the message and in the decision, and the same again when the step is repeated."""
    reply = message(calls=[asked(given, value) for value, given in enumerate(ids)])
    kept, decision = read_reply(reply, "r/1")
    assert isinstance(decision, CallTools)
    assert kept is not None
    own = [call.id for call in decision.calls]
    assert (len(set(own)), own) == (3, [call["id"] for call in kept.tool_calls])
    assert [0, 1, 2] == [call.args["value"] for call in decision.calls]
    assert (kept, decision) == read_reply(reply, "r/1")
    _, other = read_reply(reply, "r/2")
    assert isinstance(other, CallTools)
    assert other != decision


@pytest.mark.parametrize("given", ["c1", "call:1", "x" * 41])
def test_an_id_that_cannot_stand_twice_or_be_sent_is_replaced(given: str) -> None:
    """A server that uses one id in each turn, and ids that some provider refuses; the same again when repeated."""
    history = [message(calls=[asked("c1")])]
    reply = message(calls=[asked(given)])
    kept, decision = read_reply(reply, "r/2", ids_of(history))
    assert isinstance(decision, CallTools)
    assert kept is not None
    assert [decision.calls[0].id] == [call["id"] for call in kept.tool_calls] != [given]
    assert (kept, decision) == read_reply(reply, "r/2", ids_of(history))


@pytest.mark.parametrize("name", ["", "functions.echo", "issue refund", "écho", "x" * 65, "echo\n"])
def test_a_name_that_no_provider_takes(name: str) -> None:
    """It is replaced in what is sent again, and the call never runs, though the new name may be a tool's."""
    reply = message(calls=[ToolCall(name=name, args={"value": 1}, id="c1", type="tool_call")])
    kept, decision = read_reply(reply, "r/1")
    assert isinstance(decision, CallTools)
    assert kept is not None
    assert "there is no tool" in decision.calls[0].error
    assert [decision.calls[0].name] == [call["name"] for call in kept.tool_calls]
    check_transcript([kept, ToolMessage("?", tool_call_id=kept.tool_calls[0]["id"] or "", id="t")])


def test_what_the_protocol_could_not_read_is_told() -> None:
    """The text is kept, marked, and never taken for an answer."""
    reply = AIMessage("Hm.", response_metadata={"malformed": "no object"})
    kept, decision = read_reply(reply, "r/1")
    assert Malformed("unreadable", "Hm.", "no object") == decision
    assert kept is not None
    assert ("Hm.", "no object") == (kept.text, kept.response_metadata["malformed"])


@pytest.mark.parametrize("key", ["tool_calls", "function_call"])
def test_raw_calls_are_not_kept(key: str) -> None:
    """Clients would send them again, without their results."""
    raw: Any = {key: {"name": "echo", "arguments": "{}"}}
    kept, _ = read_reply(message("Done.", **raw), "r/1")
    assert kept is not None
    assert {} == kept.additional_kwargs


def test_what_the_model_thought_goes_back_to_its_provider_also_beside_a_bad_call() -> None:
    """Anthropic wants its signed thinking back in front of the calls; the block of the call itself is not sent."""
    thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
    block = {"type": "tool_use", "id": "c1", "name": "echo", "input": "[1]"}
    kept, _ = read_reply(message([thinking, block], invalid=[bad("[1]", "c1")]), "r/1")
    assert kept is not None
    assert [thinking] == kept.content


def bad(args: str, call_id: str | None = "c9") -> Any:
    """A call that a client could not read."""
    return {"name": "echo", "args": args, "id": call_id, "error": None, "type": "invalid_tool_call"}


@pytest.mark.parametrize("reply", [message(invalid=[bad('{"value": 1')]), message(invalid=[bad("[1]", None)])])
def test_a_call_that_cannot_be_read_is_a_call_with_an_error(reply: AIMessage) -> None:
    """The model is told; what is sent again holds arguments that every server can read back."""
    kept, decision = read_reply(reply, "r/1")
    assert isinstance(decision, CallTools)
    assert kept is not None
    assert (1, {}) == (len(decision.calls), decision.calls[0].args)
    assert "no JSON object" in decision.calls[0].error
    assert ([{}], []) == ([call["args"] for call in kept.tool_calls], kept.invalid_tool_calls)


@pytest.mark.parametrize("value", [10**30, -(10**30), float("nan"), "\ud800"])
def test_arguments_that_cannot_be_stored(value: Any) -> None:
    """They would break the checkpoint, or the next request: the model is told instead."""
    kept, decision = read_reply(message(calls=[asked("c1", value)]), "r/1")
    assert isinstance(decision, CallTools)
    assert kept is not None
    assert decision.calls[0].error
    assert [{}] == [call["args"] for call in kept.tool_calls]


def test_a_server_that_gives_every_message_one_id() -> None:
    """The second does not take the first one's place."""
    reply = message("It is 4.")
    reply.id = "chatcmpl-0"
    first, _ = read_reply(reply, "r/1")
    second, _ = read_reply(reply, "r/2", {"chatcmpl-0"})
    assert first is not None
    assert second is not None
    assert ("chatcmpl-0", True) == (first.id, second.id != first.id)


def usage(**figures: Any) -> AIMessage:
    """A reply with reported tokens."""
    return AIMessage("x" * 40, usage_metadata={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0, **figures})


@pytest.mark.parametrize(
    ("reply", "figures"),
    [
        (usage(input_tokens=9, output_tokens=3), (9, 3, 0, False)),
        (usage(input_tokens=9, output_tokens=3, input_token_details={"cache_read": 5}), (9, 3, 5, False)),
        (usage(input_tokens=9, output_tokens=3, input_token_details={"cache_read": 50}), (9, 3, 9, False)),
        (usage(input_tokens=9, output_tokens=3, input_token_details={"cache_read": -5}), (9, 3, 0, False)),
        (usage(), (77, 14, 0, True)),
        (usage(input_tokens=9), (9, 14, 0, True)),
        (AIMessage("x" * 40), (77, 14, 0, True)),
    ],
)
def test_tokens(reply: AIMessage, figures: tuple[int, int, int, bool]) -> None:
    """What was reported; what was not is estimated, and marked so; a part is never more than the whole."""
    tokens = tokens_of(reply, 77)
    assert figures == (tokens.input, tokens.output, tokens.cached, tokens.estimated)


def test_the_input_is_estimated_from_the_newest_report() -> None:
    """What came after it is counted by its letters."""
    before: list[AnyMessage] = [HumanMessage("x" * 400), usage(input_tokens=90, output_tokens=10, total_tokens=100)]
    assert estimate_input(before) == 100
    assert estimate_input([*before, ToolMessage("y" * 400, tool_call_id="c")]) == 204
    assert estimate_input([HumanMessage("x" * 400)]) == 104
