"""The real OpenAI client against a server that speaks chat completions over HTTP."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from genai_prices import Usage as PricedUsage
from genai_prices import calc_price
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage

from loopwright import (
    Effect,
    Limits,
    Retry,
    RunResult,
    Runs,
    RunStatus,
    StopReason,
    SyncRuns,
    allow,
    aopen_checkpoints,
    create_agent,
    open_checkpoints,
    open_model,
    tool,
)
from loopwright.errors import ConfigurationError
from loopwright.testing import Failure, OpenAIServer, Reply, call

KEY = "sk-one-key-of-a-user-0123456789"
STREAMED = {"streaming": True, "stream_usage": True}
ALLOWED = [allow("pay")]
ONCE = Retry(tries=1)

Door = Callable[[BaseChatModel, str], RunResult]


@tool(effect="read")
def lookup_order(order_id: str) -> dict[str, Any]:
    """Look up an order by its code."""
    return {"order_id": order_id, "total": 250}


@tool(effect="write")
def pay(order_id: str, amount: int, *, effect: Effect) -> str:
    """Pay money back for an order."""
    return f"paid {amount} for {order_id} under {len(effect.key)} characters"


def model_of(server: OpenAIServer, name: str = "openai:gpt-5-mini", **options: Any) -> BaseChatModel:
    """Open the real client."""
    return open_model(name, base_url=server.base_url, api_key=KEY, **options)


def blocking(model: BaseChatModel, url: str = "memory:", limits: Limits | None = None) -> RunResult:
    """Run one task in this thread."""
    agent = create_agent(model, [lookup_order, pay], permissions=ALLOWED, limits=limits, retry=ONCE)
    with open_checkpoints(url) as checkpoints:
        return SyncRuns(agent, checkpoints).run("Refund A100.", thread_id="t")


def awaited(model: BaseChatModel, url: str = "memory:") -> RunResult:
    """Run one task in an event loop."""

    async def main() -> RunResult:
        agent = create_agent(model, [lookup_order, pay], permissions=ALLOWED, retry=ONCE)
        async with await aopen_checkpoints(url) as checkpoints, Runs(agent, checkpoints) as runs:
            return await runs.run("Refund A100.", thread_id="t")

    return asyncio.run(main())


def told(result: RunResult) -> dict[str, Any]:
    """Return what two runs must have in common, however they were driven."""
    return {
        "answer": result.answer,
        "status": result.status,
        "usage": (result.usage.model_calls, result.usage.input_tokens, result.usage.output_tokens),
        "estimated": result.usage.estimated,
        "cost": result.usage.cost,
        "calls": [(entry["tool"], entry["args"], entry["thought"], entry["outcome"]) for entry in result.trail],
        "texts": [(message.type, message.text) for message in result.messages if message.type != "tool"],
    }


@pytest.mark.parametrize("door", [blocking, awaited])
@pytest.mark.parametrize("options", [{}, STREAMED], ids=["whole", "streamed"])
def test_a_tool_turn_and_a_final_turn_come_out_the_same_by_every_way(door: Door, options: dict[str, Any]) -> None:
    """Sync or async, streamed or not: one result, and the usage that the server reported."""
    calls = [("lookup_order", '{"order_id": "A100"}'), ("pay", '{"order_id": "A100", "amount": 250}')]
    turns = [Reply("Looking it up.", calls, tokens=(120, 30)), Reply("It is done: 250 paid.", tokens=(200, 9))]
    with OpenAIServer(turns) as server:
        result = door(model_of(server, **options), "memory:")
    server.assert_done()
    assert told(result) == {
        "answer": "It is done: 250 paid.",
        "status": RunStatus.SUCCEEDED,
        "usage": (2, 320, 39),
        "estimated": False,
        "cost": sum(_price(given, written) for given, written in [(120, 30), (200, 9)]),
        "calls": [
            ("lookup_order", {"order_id": "A100"}, "Looking it up.", "done"),
            ("pay", {"order_id": "A100", "amount": 250}, "Looking it up.", "done"),
        ],
        "texts": [("human", "Refund A100."), ("ai", "Looking it up."), ("ai", "It is done: 250 paid.")],
    }


def _price(given: int, written: int) -> Decimal:
    usage = PricedUsage(input_tokens=given, output_tokens=written)
    return calc_price(usage, model_ref="gpt-5-mini", provider_id="openai").total_price


@pytest.mark.parametrize("options", [{}, {"streaming": True}], ids=["whole", "streamed"])
def test_usage_that_is_not_reported_is_estimated_and_marked_so(options: dict[str, Any]) -> None:
    """A body without usage, and a stream without its usage chunk, never count as free."""
    with OpenAIServer([Reply("Done, as you asked.", tokens=None)]) as server:
        usage = blocking(model_of(server, **options)).usage
    assert usage.estimated
    assert usage.input_tokens > 0
    assert usage.output_tokens > 0
    assert usage.cost > 0


def test_a_stream_without_usage_options_asks_for_none_and_is_estimated() -> None:
    """OpenAI reports a stream's usage only where it is asked to; a server of one's own may not know the option."""
    with OpenAIServer([Reply("Done.", tokens=(100, 10))]) as server:
        usage = blocking(model_of(server, streaming=True)).usage
    assert "stream_options" not in server.requests[0].body
    assert usage.estimated


@pytest.mark.parametrize("options", [{}, {"streaming": True}], ids=["whole", "streamed"])
def test_who_follows_the_graphs_messages_gets_the_answer_piece_by_piece(options: dict[str, Any]) -> None:
    """LangGraph's `messages` mode shows the text while it arrives, and a call once it is whole."""
    with OpenAIServer([call("lookup_order", order_id="A100"), "It is on its way to you."]) as server:
        agent = create_agent(model_of(server, **options), [lookup_order])
        parts = [part for part, _ in agent.stream({"messages": [HumanMessage("Where is it?")]}, stream_mode="messages")]
    pieces = [part.text for part in parts if part.type == "AIMessageChunk" and part.text]
    arguments = [piece["args"] for part in parts for piece in getattr(part, "tool_call_chunks", [])]
    assert "".join(pieces) == "It is on its way to you."
    assert len(pieces) > 1
    assert arguments == ['{"order_id": "A100"}']


def test_tools_go_out_in_openais_format_without_what_the_model_must_not_fill() -> None:
    """Name, description and `parameters` as JSON schema; the `Effect` parameter is not among them."""
    with OpenAIServer(["Nothing to do."]) as server:
        blocking(model_of(server))
    assert server.requests[0].body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "lookup_order",
                "description": "Look up an order by its code.",
                "parameters": {
                    "type": "object",
                    "properties": {"order_id": {"type": "string"}},
                    "required": ["order_id"],
                },
            },
        },
        {
            "type": "function",
            "function": {
                "name": "pay",
                "description": "Pay money back for an order.",
                "parameters": {
                    "type": "object",
                    "properties": {"order_id": {"type": "string"}, "amount": {"type": "integer"}},
                    "required": ["order_id", "amount"],
                },
            },
        },
    ]


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, {"stream": False}),
        ({"temperature": None, "stream_usage": None}, {"stream": False}),
        ({"streaming": True}, {"stream": True}),
        (STREAMED, {"stream": True, "stream_options": {"include_usage": True}}),
        ({"temperature": 0}, {"stream": False, "temperature": 0}),
        ({"max_tokens": 50}, {"stream": False, "max_completion_tokens": 50}),
        ({"model_kwargs": {"parallel_tool_calls": False}}, {"stream": False, "parallel_tool_calls": False}),
    ],
)
def test_nothing_optional_is_sent_unless_the_user_set_it(options: dict[str, Any], sent: dict[str, Any]) -> None:
    """Beside model, messages and tools a request has exactly what was asked for; None counts as not set."""
    with OpenAIServer(["Nothing to do."]) as server:
        blocking(model_of(server, "openai:a-model-of-my-own", **options))
    body = server.requests[0].body
    assert {name: body[name] for name in body if name not in {"model", "messages", "tools"}} == sent


def test_an_agent_without_tools_sends_none() -> None:
    """There is no empty list of tools, which servers refuse."""
    with OpenAIServer(["Hello."]) as server:
        agent = create_agent(model_of(server), [], system_prompt="Be brief.")
        agent.invoke({"messages": [HumanMessage("Hi.")]})  # pyright: ignore[reportUnknownMemberType]  # LangGraph's
    assert set(server.requests[0].body) == {"model", "messages", "stream"}
    assert [message["role"] for message in server.requests[0].body["messages"]] == ["system", "user"]


BAD_ARGUMENTS = [
    '{"order_id": "A100", "amount": 25',  # cut: to complete it would pay 25
    '{"order_id": "A100"} please',
    "order A100",
    "[1]",
    "[]",
    "3",
    '"{\\"order_id\\": \\"A100\\", \\"amount\\": 1}"',  # encoded twice
    '{"order_id": "A100", "amount": NaN}',
    '{"order_id": "A100", "amount": 1e999}',
    '{"order_id": "A100", "amount": 99999999999999999999}',
    '{"order_id": "\\ud800", "amount": 1}',
    "",
    "null",
]


@pytest.mark.parametrize("arguments", BAD_ARGUMENTS)
@pytest.mark.parametrize("options", [{}, STREAMED], ids=["whole", "streamed"])
def test_unusable_arguments_become_an_observation(options: dict[str, Any], arguments: str) -> None:
    """They are never guessed or completed; the next request's history has arguments that parse, and the run goes on."""
    with OpenAIServer([Reply(calls=[("pay", arguments)]), "I could not pay."]) as server:
        result = blocking(model_of(server, **options))
    server.assert_done()
    assert ("I could not pay.", RunStatus.SUCCEEDED) == (result.answer, result.status)
    assert ["invalid"] == [entry["outcome"] for entry in result.trail]
    assert result.trail[0]["observation"].startswith("ERROR: ")
    _, asked, observed = server.requests[1].body["messages"]
    assert isinstance(json.loads(asked["tool_calls"][0]["function"]["arguments"]), dict)
    assert observed["tool_call_id"] == asked["tool_calls"][0]["id"]


@pytest.mark.parametrize("options", [{}, STREAMED], ids=["whole", "streamed"])
def test_one_unusable_call_does_not_spoil_its_neighbour(options: dict[str, Any]) -> None:
    """Each call of a turn is answered for itself, with its own id and right behind it."""
    good, bad = ("lookup_order", '{"order_id": "A100"}'), ("lookup_order", "{")
    with OpenAIServer([Reply(calls=[good, bad]), "Done."]) as server:
        result = blocking(model_of(server, **options))
    assert ["done", "invalid"] == [entry["outcome"] for entry in result.trail]
    _, asked, *observed = server.requests[1].body["messages"]
    assert [one["id"] for one in asked["tool_calls"]] == [one["tool_call_id"] for one in observed]


@pytest.mark.parametrize("door", [blocking, awaited])
@pytest.mark.parametrize("options", [{}, STREAMED], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("status", "message"),
    [
        (400, "Unsupported parameter: 'temperature'."),
        (401, f"Incorrect API key provided: {KEY}.\nFind yours in the settings."),
        (500, "The server had an error\nwhile it processed your request."),
    ],
)
def test_a_refused_request_ends_the_run_with_the_servers_words(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    *,
    door: Door,
    options: dict[str, Any],
    status: int,
    message: str,
) -> None:
    """The run has failed, with one line of error; the key stands in no file, no log, and not in the error."""
    caplog.set_level(logging.DEBUG)
    with OpenAIServer([call("lookup_order", order_id="A100"), Failure(status, message)]) as server:
        result = door(model_of(server, **options), f"sqlite:///{tmp_path / 'runs.db'}")
    server.assert_done()
    assert (RunStatus.FAILED, StopReason.ERROR) == (result.status, result.stop_reason)
    assert str(status) in result.error
    assert message.splitlines()[0].replace(KEY, "***") in result.error
    assert "\n" not in result.error
    assert ["done"] == [entry["outcome"] for entry in result.trail]
    assert f"Bearer {KEY}" == server.requests[0].headers["authorization"]
    assert KEY not in f"{result}{caplog.text}"
    assert [] == [path for path in tmp_path.iterdir() if KEY.encode() in path.read_bytes()]


def test_a_server_that_is_not_there_ends_the_run() -> None:
    """A refused connection is a failed run as well, not a stack trace."""
    with OpenAIServer([]) as server:
        model = model_of(server)
    result = blocking(model)
    assert (RunStatus.FAILED, StopReason.ERROR) == (result.status, result.stop_reason)
    assert result.error.startswith("OpenAIConnectionError") or "Connection" in result.error


def test_a_cost_limit_needs_a_price() -> None:
    """With a model that nobody has a price for, `max_cost` is refused when the agent is built."""
    with OpenAIServer([]) as server:
        model = model_of(server, "openai:a-model-of-my-own")
    with pytest.raises(ConfigurationError, match=r"max_cost .* 'a-model-of-my-own' .* price="):
        create_agent(model, [lookup_order], limits=Limits(max_cost=Decimal(1)))


def test_an_unpriced_model_costs_nothing_and_still_counts_tokens() -> None:
    """Without a cost limit an unknown price is no obstacle."""
    with OpenAIServer([Reply("Done.", tokens=(100, 10))]) as server:
        usage = blocking(model_of(server, "openai:a-model-of-my-own")).usage
    assert (Decimal(0), 110) == (usage.cost, usage.tokens)


@pytest.mark.parametrize(
    ("limits", "over"),
    [
        (Limits(max_tokens=1000), StopReason.MAX_TOKENS),
        (Limits(max_cost=Decimal("0.0005")), StopReason.MAX_COST),
        (Limits(max_tokens=100_000), None),
    ],
)
def test_a_final_answer_over_a_limit_is_kept_and_flagged(limits: Limits, over: StopReason | None) -> None:
    """What was paid for is not thrown away: the run has succeeded, and says which limit its answer went over."""
    with OpenAIServer([Reply("A long answer.", tokens=(900, 200))]) as server:
        result = blocking(model_of(server), limits=limits)
    assert ("A long answer.", RunStatus.SUCCEEDED, over) == (result.answer, result.status, result.over_limit)


def test_a_tool_turn_over_the_token_limit_runs_and_then_stops() -> None:
    """What was decided is carried out; no further model call is made."""
    with OpenAIServer([Reply(calls=[("lookup_order", '{"order_id": "A100"}')], tokens=(900, 200))]) as server:
        result = blocking(model_of(server), limits=Limits(max_tokens=1000))
    server.assert_done()
    assert (RunStatus.STOPPED, StopReason.MAX_TOKENS) == (result.status, result.stop_reason)
    assert ["done"] == [entry["outcome"] for entry in result.trail]


def test_what_the_script_has_no_turn_for_is_refused_and_told() -> None:
    """The server is strict: one request too many, or one turn too few, fails the test that uses it."""
    with OpenAIServer([call("lookup_order", order_id="A100")]) as server:
        result = blocking(model_of(server))
    assert "request 2, but the script has 1 turns" in result.error
    with pytest.raises(AssertionError, match="2 requests came in"):
        server.assert_done()
