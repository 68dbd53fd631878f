"""One reading of usage, whoever reports it, and how: tables, and the real clients."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage
from langchain_core.messages.ai import UsageMetadata
from tests.world.wires import ANTHROPIC, OPENAI, STREAM, every_wire, is_openai, run

from loopwright.models import tokens_of
from loopwright.models.usage import newest_usage
from loopwright.state import Tokens
from loopwright.testing import Reply


def reply(metadata: Any = None, **response: Any) -> AIMessage:
    """A reply of 40 letters, which are estimated at 14 tokens."""
    return AIMessage("x" * 40, usage_metadata=metadata, response_metadata=response)


def whole(given: int, written: int, **details: Any) -> dict[str, Any]:
    """LangChain's form."""
    return {"input_tokens": given, "output_tokens": written, "total_tokens": given + written, **details}


OPENAI_RAW = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
ANTHROPIC_RAW = {
    "input_tokens": 3,
    "cache_read_input_tokens": 4,
    "cache_creation_input_tokens": 2,
    "output_tokens": 5,
    "output_tokens_details": {"thinking_tokens": 2},
}
KEPT = {"cache_creation": 0, "ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 2}
PARTS = {"input_token_details": {"cache_read": 4}, "output_token_details": {"reasoning": 2}}
ODD_PARTS = {"input_token_details": {"cache_read": 50}, "output_token_details": {"reasoning": -1}}
TABLE: list[tuple[AIMessage, Tokens]] = [
    (reply(whole(9, 5)), Tokens(9, 5)),
    (
        reply(whole(9, 5, **PARTS)),
        Tokens(9, 5, 4, 2),
    ),
    (reply(whole(9, 5, input_token_details={"cache_read": 4, "cache_creation": 2})), Tokens(9, 5, 4, written=2)),
    (reply(whole(9, 5, input_token_details=KEPT)), Tokens(9, 5, written=5, written_hour=2)),
    (reply(whole(9, 5, input_token_details={**KEPT, "cache_creation": 5})), Tokens(9, 5, written=5, written_hour=2)),
    (
        reply(whole(9, 5, input_token_details={**KEPT, "cache_read": 8})),
        Tokens(9, 5, 8, written=1, written_hour=1),
    ),
    (
        reply(usage={**ANTHROPIC_RAW, "cache_creation": KEPT, "cache_creation_input_tokens": 5}),
        Tokens(12, 5, 4, 2, 5, 2),
    ),
    (
        reply(token_usage={**OPENAI_RAW, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 2}),
        Tokens(9, 5, 4, 2, 2),
    ),
    (reply(whole(9, 5, input_token_details={"flex_cache_read": 4})), Tokens(9, 5, 4)),
    (reply(whole(9, 5, output_token_details={"priority_reasoning": 2})), Tokens(9, 5, 0, 2)),
    (reply(token_usage=OPENAI_RAW), Tokens(9, 5, 4, 2)),
    (reply(usage=ANTHROPIC_RAW), Tokens(9, 5, 4, 2, 2)),
    (reply(whole(9, 5), token_usage={"prompt_tokens": 900}), Tokens(9, 5)),
    (reply(token_usage={"prompt_tokens": None, "completion_tokens": "5"}), Tokens(77, 14, estimated=True)),
    (reply(whole(10**12, 2**62)), Tokens(77, 14, estimated=True)),
    (reply(usage="free"), Tokens(77, 14, estimated=True)),
    (reply(), Tokens(77, 14, estimated=True)),
    (reply(whole(0, 0)), Tokens(77, 14, estimated=True)),
    (reply(whole(9, 0)), Tokens(9, 14, estimated=True)),
    (reply(whole(0, 5)), Tokens(77, 5, estimated=True)),
    (reply(token_usage={"prompt_tokens": -9, "completion_tokens": 2**70}), Tokens(77, 14, estimated=True)),
    (
        reply(whole(9, 5, **ODD_PARTS)),
        Tokens(9, 5, 9),
    ),
]


@pytest.mark.parametrize(("message", "tokens"), TABLE)
def test_table(message: AIMessage, tokens: Tokens) -> None:
    """The whole input with its cached part, the whole output with its reasoning; what is not reported is estimated."""
    assert tokens == tokens_of(message, 77)


def usage(given: int, written: int, **details: Any) -> UsageMetadata:
    """A report of a chunk."""
    return cast("UsageMetadata", whole(given, written, **details))


@pytest.mark.parametrize(
    ("reports", "newest"),
    [
        ([None, usage(9, 5)], usage(9, 5)),
        ([usage(9, 1), usage(9, 3), usage(9, 5)], usage(9, 5)),
        ([usage(9, 5), usage(0, 0)], usage(9, 5)),
        ([usage(9, 1), usage(0, 5)], usage(9, 5)),
        ([usage(9, 5), None], usage(9, 5)),
        (
            [usage(9, 1, input_token_details={"cache_read": 4}), usage(9, 5, input_token_details={"cache_read": 0})],
            usage(9, 5, input_token_details={"cache_read": 4}),
        ),
    ],
)
def test_reports_of_a_stream_are_totals(reports: list[UsageMetadata | None], newest: UsageMetadata) -> None:
    """The larger figure counts; nothing is added up."""
    found: UsageMetadata | None = None
    for report in reports:
        found = newest_usage(found, report)
    assert newest == found


@every_wire
@pytest.mark.parametrize("mode", ["last", "each", "zeros", "split"])
def test_however_it_is_reported_it_is_counted_once(wire: dict[str, Any], mode: str) -> None:
    """Cumulative in each chunk, in the last one, with zeros at the end, in two parts: the same figures."""
    reply = Reply("It is done.", tokens=(120, 30), cached=100, reasoned=20)
    result, _, _ = run(wire, [reply], usage=mode)
    found = result.usage
    assert (120, 30, 100, False) == (found.input_tokens, found.output_tokens, found.cached_tokens, found.estimated)
    assert 20 == found.reasoning_tokens or (mode, is_openai(wire)) == ("split", False)


@every_wire
def test_what_anthropic_wrote_to_its_cache_is_input_too(wire: dict[str, Any]) -> None:
    """It stands beside the input there, and in it at OpenAI's: the whole is the same."""
    result, _, _ = run(wire, [Reply("Done.", tokens=(120, 30), cached=50, written=40)])
    assert (120, 50) == (result.usage.input_tokens, result.usage.cached_tokens)


@pytest.mark.parametrize("wire", [{**ANTHROPIC, "options": {}}, {**ANTHROPIC, "options": STREAM}])
@pytest.mark.parametrize("mode", ["last", "zeros", "split"])
def test_what_anthropic_takes_into_its_cache_costs_more(wire: dict[str, Any], mode: str) -> None:
    """A quarter more for five minutes, twice as much for an hour; each token is paid once."""
    reply = Reply("Done.", tokens=(1000, 30), cached=500, written=400, written_hour=300)
    result, _, _ = run(wire, [reply], usage=mode)
    dollars = 100 * Decimal(1) + 500 * Decimal("0.1") + 100 * Decimal("1.25") + 300 * Decimal(2) + 30 * Decimal(5)
    assert dollars / 10**6 == result.usage.cost


@pytest.mark.parametrize("wire", [{**OPENAI, "options": STREAM}, {**ANTHROPIC, "options": STREAM}])
def test_usage_that_never_comes_is_estimated(wire: dict[str, Any]) -> None:
    """And marked so."""
    result, _, _ = run(wire, [Reply("Done.")], usage="never")
    assert result.usage.estimated
    assert result.usage.input_tokens > 0
