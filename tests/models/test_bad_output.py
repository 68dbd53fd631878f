"""Bad output through both providers' real clients, streamed and not: each has its rule, its bound and its ending."""

from __future__ import annotations

from typing import Any

import pytest
from openai.types.chat import ChatCompletion
from pydantic import SecretStr
from tests.world.wires import ANTHROPIC, OPENAI, STREAM, every_wire, is_openai, run

from loopwright import RunStatus, StopReason
from loopwright.models import Cure, cure_of, may_have_cost
from loopwright.models.openai_chat import OpenAIChat
from loopwright.testing import Reply, call

LOOK = ("look", '{"order_id": "A1"}')
UNUSABLE = ["[1]", '"{\\"order_id\\": \\"A1\\", \\"amount\\": 1}"', '{"amount": 25']


def empty(wire: dict[str, Any], how: Any) -> Reply:
    """A reply without text and calls, as this provider would send it."""
    if how == "reasoning":
        return Reply(reasoning="Let me think.")
    if how == "no blocks":  # OpenAI's stream has no such thing
        return Reply(content=None if is_openai(wire) and wire["options"] else [])
    return Reply(content=how)


@every_wire
@pytest.mark.parametrize("how", [None, "", " \n", "no blocks", "reasoning"])
def test_c33_an_empty_reply_is_told_and_the_run_goes_on(wire: dict[str, Any], how: Any) -> None:
    """It counts as a step; nothing empty is sent again; the answer behind it is the answer."""
    result, server, _ = run(wire, [call("look", order_id="A1"), empty(wire, how), "done"])
    assert (RunStatus.SUCCEEDED, "done", 3) == (result.status, result.answer, result.usage.steps)
    assert "empty" in str(server.requests[2].body["messages"][-1]["content"])


@every_wire
def test_a_provider_that_fails_in_the_midst_of_a_reply_brings_no_answer(wire: dict[str, Any]) -> None:
    """However much of it came: the attempt has failed, and what it reports is paid."""
    result, _, _ = run(wire, [Reply("Half an answ", finish="error", tokens=(70, 7))])
    assert (RunStatus.FAILED, "", 77) == (result.status, result.answer, result.usage.tokens)
    assert "ended by 'error'" in result.error


@pytest.mark.parametrize("wire", [{**ANTHROPIC, "options": {}}, {**ANTHROPIC, "options": STREAM}])
def test_blocks_without_what_makes_them_one(wire: dict[str, Any]) -> None:
    """A call without a name is told as one; a text that is null is none; a kind nobody knows is no answer."""
    nameless: dict[str, Any] = {"type": "tool_use", "id": "t1", "name": None, "input": {}}
    # Not streamed, the provider's own client warns of a kind that it does not know; streamed, it knows no null text.
    odd = [{"type": "some_new_kind", "data": "x"} if wire["options"] else {"type": "text", "text": None}]
    result, server, _ = run(wire, [Reply(content=[*odd, nameless]), Reply(content=odd), "Done."])
    assert ("Done.", 3) == (result.answer, result.usage.steps)
    assert "a name is of letters" in str(server.requests[1].body["messages"][-1])


@pytest.mark.parametrize("wire", [{**OPENAI, "options": {}}])
def test_a_content_that_is_no_text_may_have_cost_something(wire: dict[str, Any]) -> None:
    """The client cannot read it: asking again may help, and the provider has worked."""
    result, _, _ = run(wire, [Reply(content={"not": "a text"})])
    assert (RunStatus.FAILED, True) == (result.status, result.usage.output_tokens > 1000)


def test_a_reply_without_a_choice_is_none() -> None:
    """As one of which nothing came: it is asked for again, and the provider may have worked."""
    body: dict[str, Any] = {"id": "a", "object": "chat.completion", "created": 0, "model": "m"}
    model = OpenAIChat(model="m", api_key=SecretStr("k"))
    nothing: list[Any] = [[], None]
    for choices in nothing:
        with pytest.raises(ConnectionError, match="no choice") as caught:
            model._create_chat_result(ChatCompletion.model_construct(**body, choices=choices))  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # as the client does it
        assert (Cure.AGAIN, True) == (cure_of(caught.value), may_have_cost(caught.value))
    failed: Any = ChatCompletion.model_construct(**body, choices=[], error={"message": "Upstream error", "code": 502})
    with pytest.raises(ValueError, match="Upstream error"):
        model._create_chat_result(failed)  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # as above


@every_wire
def test_c33_after_three_in_a_row_the_run_ends(wire: dict[str, Any]) -> None:
    """With its own reason, and the last text that there was."""
    result, _, _ = run(wire, [Reply("Let me look.", [LOOK]), *[empty(wire, "") for _ in range(3)]])
    assert (RunStatus.STOPPED, StopReason.EMPTY, "Let me look.") == (result.status, result.stop_reason, result.answer)


@every_wire
def test_c35_only_unreadable_calls_do_not_end_the_run(wire: dict[str, Any]) -> None:
    """Each has its error as a result, with the raw text; then the model may do better."""
    bad = Reply(calls=[("look", '{"order_id": "A1')])
    result, server, till = run(wire, [bad, bad, Reply(calls=[LOOK]), "It is there."])
    assert ("It is there.", ["A1"]) == (result.answer, till.looked)
    assert ["invalid", "invalid", "done"] == [entry["outcome"] for entry in result.trail]
    assert "order_id" in str(server.requests[1].body["messages"][-1])


@every_wire
@pytest.mark.parametrize("name", ["look", "no_such_tool", None])
def test_c35_three_turns_in_a_row_that_call_nothing_end_the_run(wire: dict[str, Any], name: str | None) -> None:
    """Different every time, so that it is no loop; never as if it had finished; and every call has its answer."""
    turns = [Reply("So." * n, calls=[(name, '{"x": ' + "1" * n), (name, '["x"]')]) for n in (1, 2, 3)]
    result, _, till = run(wire, turns)
    assert (RunStatus.STOPPED, StopReason.MALFORMED, "So.So.So.") == (result.status, result.stop_reason, result.answer)
    assert (["invalid"] * 6, []) == ([entry["outcome"] for entry in result.trail], till.looked)


@every_wire
def test_c35_a_mixed_turn_runs_the_valid_call_once_and_answers_the_other(wire: dict[str, Any]) -> None:
    """And it is no useless turn."""
    result, _, till = run(wire, [Reply(calls=[LOOK, ("pay", '{"order_id": "A1"'), ("gone", "{}")]), "Done."])
    assert (["A1"], []) == (till.looked, till.paid)
    assert ["done", "invalid", "invalid"] == [entry["outcome"] for entry in sorted_by_tool(result.trail)]


def sorted_by_tool(trail: Any) -> list[Any]:
    """The order of good and bad calls is the client's affair."""
    return sorted(trail, key=lambda entry: entry["tool"] != "look")


@every_wire
@pytest.mark.parametrize("arguments", ["[1]", '"{\\"order_id\\": \\"A1\\", \\"amount\\": 1}"', '{"amount": 25'])
def test_c04_unusable_arguments_are_told_and_never_sent_again(wire: dict[str, Any], arguments: str) -> None:
    """Nothing is paid; the server, which reads the history strictly, takes the next request."""
    result, _, till = run(wire, [Reply(calls=[("pay", arguments)]), "I could not."])
    assert ("I could not.", []) == (result.answer, till.paid)
    assert ["invalid"] == [entry["outcome"] for entry in result.trail]


@every_wire
def test_c34_text_beside_a_call_is_its_thought(wire: dict[str, Any]) -> None:
    """The call runs, the later text is the answer, the first one stays in the transcript and goes back."""
    result, server, till = run(wire, [Reply("Let me look.", [LOOK], reasoning="Hm."), "It is 4."])
    assert ("It is 4.", ["A1"], "Let me look.") == (result.answer, till.looked, result.trail[0]["thought"])
    assert "Let me look." in str(server.requests[1].body["messages"][1])


@every_wire
@pytest.mark.parametrize("text", ["", "Half a sen"])
def test_c39_a_filtered_reply_ends_the_run_as_refused(wire: dict[str, Any], text: str) -> None:
    """Its calls do not run, it is not tried again, and what was said is kept."""
    finish = "content_filter" if is_openai(wire) else "refusal"
    result, _, till = run(wire, [Reply(text, [LOOK], finish=finish)])
    assert (RunStatus.STOPPED, StopReason.REFUSED) == (result.status, result.stop_reason)
    assert (text or "The model's provider filtered the reply.", []) == (result.answer, till.looked)


@pytest.mark.parametrize("options", [{}, {"streaming": True}], ids=["whole", "stream"])
@pytest.mark.parametrize("calls", [[], [LOOK]])
def test_c39_a_refusal_ends_the_run_with_its_text(options: dict[str, Any], calls: Any) -> None:
    """OpenAI's own field for it, with and without calls beside it."""
    wire = {**OPENAI, "options": options}
    result, _, till = run(wire, [Reply(content=None, calls=calls, refusal="I cannot help with that.")])
    assert (StopReason.REFUSED, "I cannot help with that.") == (result.stop_reason, result.answer)
    assert [] == till.looked


@every_wire
@pytest.mark.parametrize("ids", [["", "", None], ["a", "a", "a"], ["x" * 60, "y:1", "z"]])
def test_c40_calls_without_ids_of_their_own_all_run_once(wire: dict[str, Any], ids: list[str | None]) -> None:
    """In order, and under the same new ids in the message, in the results and in the request."""
    calls = [("look", f'{{"order_id": "{name}"}}') for name in "abc"]
    result, _, till = run(wire, [Reply(calls=calls, ids=ids), "Done."])
    assert (["a", "b", "c"], 3) == (sorted(till.looked), result.usage.tool_calls)
    assert ["a", "b", "c"] == [entry["args"]["order_id"] for entry in result.trail]


@every_wire
def test_c40_one_id_in_every_turn(wire: dict[str, Any]) -> None:
    """Each call has a result of its own; Anthropic would refuse the second otherwise."""
    turns = [Reply(calls=[("look", f'{{"order_id": "{name}"}}')], ids=["same"]) for name in "abc"]
    result, _, till = run(wire, [*turns, "Done."])
    assert (["a", "b", "c"], "Done.") == (till.looked, result.answer)


@every_wire
def test_no_call_of_a_cut_turn_runs(wire: dict[str, Any]) -> None:
    """Not even one whose arguments look whole; the model is told, and three in a row end the run."""
    finish = "length" if is_openai(wire) else "max_tokens"
    cut = Reply("I was about to", [("pay", '{"order_id": "A1", "amount": 25}')], finish=finish)
    result, _, till = run(wire, [cut, cut, "Done."])
    assert ([], "Done.") == (till.paid, result.answer)
    ended, _, _ = run(wire, [cut, cut, cut])
    assert (StopReason.TRUNCATED, "I was about to") == (ended.stop_reason, ended.answer)


@every_wire
@pytest.mark.parametrize("name", ["functions.look", "lookk"])
def test_a_name_is_never_guessed(wire: dict[str, Any], name: str) -> None:
    """A name that is nearly a tool's is told, with the names that there are; the right one runs."""
    result, server, till = run(wire, [Reply(calls=[(name, LOOK[1])]), "Done."])
    assert "Done." == result.answer
    assert [] == till.looked
    assert name in str(server.requests[1].body["messages"][-1])


@every_wire
@pytest.mark.parametrize("pieces", [1, 4])
def test_an_answer_whose_connection_breaks_is_no_answer(wire: dict[str, Any], pieces: int) -> None:
    """No call of it runs, and the run has failed; it is never taken for a short reply. A whole body has two pieces."""
    cut = Reply("I will pay it.", [("pay", '{"order_id": "A1", "amount": 25}')], cut_after=pieces)
    result, _, till = run(wire, [cut, *(["Done."] if pieces > 1 and not wire["options"] else [])])
    if pieces < 2 or wire["options"]:
        assert (RunStatus.FAILED, StopReason.ERROR, []) == (result.status, result.stop_reason, till.paid)
