"""Prices: exact, and the cached part paid once (C29)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import SecretStr

from loopwright import Limits, Price, StopReason, SyncRuns, create_agent, open_checkpoints, open_model
from loopwright.errors import ConfigurationError
from loopwright.models import dearest, known_price, to_nano
from loopwright.state import Tokens
from loopwright.testing import ScriptedModel

USED = Tokens(input=2006, output=300, cached=1920)


def test_c29_the_cached_part_is_taken_out() -> None:
    """It lies inside the input count, so it is paid at its own price, and not at the full one as well."""
    price = Price(Decimal("2.5"), Decimal(10), cached=Decimal("1.25"))
    dollars = (86 * Decimal("2.5") + 1920 * Decimal("1.25") + 300 * Decimal(10)) / 10**6
    assert price(USED) == dollars * 10**9 == 5_615_000


def test_c29_without_a_cache_price_all_input_costs_the_same() -> None:
    """Once."""
    assert Price(Decimal("2.5"), Decimal(10))(USED) == (2006 * Decimal("2.5") + 300 * Decimal(10)) * 10**3


def test_what_was_taken_into_the_cache_is_paid_once() -> None:
    """At its own price, by how long it is kept; without one as what it would be else."""
    tokens = Tokens(input=1000, output=0, cached=100, written=500, written_hour=200)
    kinds: list[dict[str, Decimal]] = [{}, {"written": Decimal(2)}, {"written": Decimal(2), "written_hour": Decimal(4)}]
    prices = [Price(Decimal(1), Decimal(1), **kind) for kind in kinds]
    assert [1000, 500 + 2 * 500, 500 + 2 * 300 + 4 * 200] == [price(tokens) // 1000 for price in prices]
    with pytest.raises(ConfigurationError, match="written is"):
        Price(Decimal(1), Decimal(1), written=Decimal(-1))


@pytest.mark.parametrize(
    ("price", "worst"),
    [
        (Price(Decimal(2), Decimal(1)), (2, 2)),
        (Price(Decimal(2), Decimal(1), written=Decimal(3)), (3, 3)),
        (Price(Decimal(2), Decimal(1), written=Decimal(1)), (2, 2)),
        (Price(Decimal(2), Decimal(1), written=Decimal(3), written_hour=Decimal(4)), (3, 4)),
    ],
)
def test_the_dearest_that_input_can_be(price: Price, worst: tuple[int, int]) -> None:
    """What is reserved for it: all of it written, where that costs more; for an hour only where that was asked for."""
    for for_an_hour, dollars in zip((False, True), worst, strict=True):
        assert 10 * dollars * 1000 == dearest(price, for_an_hour=for_an_hour)(Tokens(10, 0))


def test_what_is_reserved_covers_a_cache_that_is_written() -> None:
    """Where all of the input may become dearer, no call is made that could pass the limit by that."""
    task = "word " * 8_000  # 10,000 tokens
    used: Any = {"input_tokens": 10_000, "output_tokens": 30, "total_tokens": 10_030}
    reply = AIMessage("Done.", usage_metadata={**used, "input_token_details": {"cache_creation": 10_000}})
    price = Price(Decimal(1), Decimal(1), written=Decimal(2))
    for most, reason in (("0.019", StopReason.MAX_COST), ("0.021", StopReason.ANSWERED)):
        agent = create_agent(ScriptedModel([reply]), [], price=price, limits=Limits(max_cost=Decimal(most)))
        with open_checkpoints("memory:") as checkpoints:
            result = SyncRuns(agent, checkpoints).run(task, thread_id="t")
        assert reason == result.stop_reason
        assert result.usage.cost <= Decimal(most)


def test_an_hour_is_reserved_for_where_it_is_asked_for() -> None:
    """By the model's options, by a tool, or in a message."""
    kept = {"type": "ephemeral", "ttl": "1h"}
    model = open_model("anthropic:claude-haiku-4-5", api_key=SecretStr("k"), max_tokens=1000)
    asking = open_model("anthropic:claude-haiku-4-5", api_key=SecretStr("k"), model_kwargs={"cache_control": kept})
    message = HumanMessage([{"type": "text", "text": "Hi.", "cache_control": kept}])
    plain, hour = create_agent(model, []).spec, create_agent(asking, []).spec
    found = [spec.worst_price(messages) for spec, messages in ((plain, []), (plain, [message]), (hour, []))]
    assert [1_250_000, 2_000_000, 2_000_000] == [price(Tokens(1000, 0)) for price in found if price]


def test_many_small_calls_never_cost_nothing() -> None:
    """A part of a nano-dollar is rounded up."""
    assert (to_nano(Decimal("1e-12")), to_nano(Decimal(0)), to_nano(Decimal("0.000000001"))) == (1, 0, 1)


@pytest.mark.parametrize("wrong", [Decimal(-1), Decimal("NaN"), Decimal("Infinity"), 2.5, 1, "1", None])
def test_a_price_is_a_decimal_from_zero_on(wrong: Any) -> None:
    """Anything else would fail, or pay back, in the middle of a run."""
    with pytest.raises(ConfigurationError, match="output is"):
        Price(Decimal(1), wrong)


def test_a_listed_model_has_a_price() -> None:
    """From `genai-prices`; its cached input is cheaper."""
    model = open_model("openai:gpt-5-mini", api_key=SecretStr("k"))
    price = known_price(model)
    assert price is not None
    assert 0 < price(Tokens(1000, 0, cached=1000)) < price(Tokens(1000, 0)) < price(Tokens(0, 1000))


def test_an_unlisted_model_has_none() -> None:
    """So a limit on money is refused when the agent is built, unless a price is given."""
    assert known_price(ScriptedModel([])) is None
    limits = Limits(max_cost=Decimal(1))
    with pytest.raises(ConfigurationError, match="price=Price"):
        create_agent(ScriptedModel([]), [], limits=limits)
    create_agent(ScriptedModel([]), [], limits=limits, price=Price(Decimal(1), Decimal(1)))


def test_what_a_run_costs() -> None:
    """The figures that the provider reported, at the agreed price, to the last digit."""
    usage: Any = {"input_tokens": 2006, "output_tokens": 300, "total_tokens": 2306}
    details: Any = {**usage, "input_token_details": {"cache_read": 1920}}
    model = ScriptedModel([AIMessage("Done.", usage_metadata=details)])
    price = Price(Decimal("2.5"), Decimal(10), cached=Decimal("1.25"))
    with open_checkpoints("memory:") as checkpoints:
        runs = SyncRuns(create_agent(model, [], price=price), checkpoints)
        result = runs.run("Do it.", thread_id="t")
        (run,) = runs.list()
    assert (Decimal("0.005615"), False, 1920) == (result.usage.cost, result.usage.estimated, result.usage.cached_tokens)
    assert run.cost == result.usage.cost
