"""Cases from public bug reports: usage that is missing (C27), and input from the cache (C29)."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.doors import Desk
from tests.world.till import Till

from loopwright import Checkpoints, Limits, Price, StopReason, create_agent
from loopwright.testing import ScriptedModel, call, check_transcript

TEXT = "A thought that goes on and on. " * 64
REPORTS: list[dict[str, int] | None] = [
    None,
    {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0},
    {"input_tokens": 30, "output_tokens": 0, "total_tokens": 30},
]


@pytest.mark.parametrize("report", REPORTS)
@pytest.mark.parametrize("limits", [Limits(max_tokens=1000), Limits(max_cost=Decimal("0.001"))])
def test_c27_the_limit_bites_without_usage(checkpoints: Checkpoints, report: Any, limits: Limits) -> None:
    """None, zeros or half of it: estimated, marked, and the run is stopped as ever."""
    turns = [
        AIMessage(TEXT, tool_calls=[{**call("look", order_id=f"{number}"), "id": f"c{number}"}], usage_metadata=report)
        for number in range(50)
    ]
    price = Price(Decimal(1), Decimal(1))
    model = ScriptedModel(turns)
    result = Desk(create_agent(model, [Till().look()], limits=limits, price=price), checkpoints).run()
    assert result.stop_reason in (StopReason.MAX_TOKENS, StopReason.MAX_COST)
    assert result.usage.estimated
    assert len(model.seen) < 4
    check_transcript(result.messages)


@pytest.mark.parametrize(("cached", "dollars"), [(Decimal("1.25"), "0.005615"), (None, "0.008015")])
def test_c29_cached_and_reasoning_tokens_are_paid_once(
    checkpoints: Checkpoints, cached: Decimal | None, dollars: str
) -> None:
    """They lie inside the input and the output. Without a price of its own, cached input costs as all input."""
    usage: Any = {
        "input_tokens": 2006,
        "output_tokens": 300,
        "total_tokens": 2306,
        "input_token_details": {"cache_read": 1920},
        "output_token_details": {"reasoning": 250},
    }
    model = ScriptedModel([AIMessage("Done.", usage_metadata=usage)])
    price = Price(Decimal("2.5"), Decimal(10), cached=cached)
    result = Desk(create_agent(model, [], price=price), checkpoints).run()
    assert (Decimal(dollars), 2306, 1920, 250) == (
        result.usage.cost,
        result.usage.tokens,
        result.usage.cached_tokens,
        result.usage.reasoning_tokens,
    )
