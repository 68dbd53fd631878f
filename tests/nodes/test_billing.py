"""Priced tools: what they cost counts as what a model costs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.gates import Gate

from loopwright import (
    Budget,
    Checkpoints,
    Effect,
    Limits,
    NotDone,
    Price,
    StopReason,
    allow,
    create_agent,
    respond,
    tool,
)
from loopwright.errors import ConfigurationError, ToolError
from loopwright.state import NANO, Tokens
from loopwright.testing import ScriptedModel, call, check_transcript
from loopwright.tools import Tool

FREE = Price(Decimal(0), Decimal(0))


class Shop:
    """Sells look-ups."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.sold: list[str] = []

    def buy(self, **options: Any) -> Tool:
        """Build the tool; it costs ten cents unless options say otherwise."""
        declared: Any = {"effect": "read", "price": Decimal("0.10"), **options}

        @tool(name="buy", **declared)
        def buy(code: str, handle: Effect) -> str:
            """Buy a report about a company, by its code."""
            if code == "none":
                raise NotDone("there is no such company")
            self.sold.append(code)
            if code == "dear":
                handle.report_cost(Decimal("0.05"))
                handle.report_cost(Decimal("0.01"))
            return f"report {code}"

        return buy


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_fixed_and_reported(checkpoints: Checkpoints, effect: str, door: DoorName) -> None:
    """The fixed price for each call that is begun, and what the body reports besides; in usage, trail and ledger."""
    turns: list[Any] = [[call("buy", code="a"), call("buy", code="dear")], "Done."]
    agent = create_agent(ScriptedModel(turns), [Shop().buy(effect=effect)], price=FREE, permissions=[allow("buy")])
    result = Desk(agent, checkpoints, door).run()
    assert Decimal("0.26") == result.usage.cost
    assert [100_000_000, 160_000_000] == [entry.get("cost_nano") for entry in result.trail]
    rows = [row for row in checkpoints.ledger.spend.of_run(result.run_id) if row.cost_nano]
    assert sorted([100_000_000, 160_000_000]) == sorted(row.cost_nano for row in rows)
    assert all(row.settled for row in rows)


def test_only_what_is_reported(checkpoints: Checkpoints) -> None:
    """A tool whose price is not known before."""
    turns: list[Any] = [[call("buy", code="a"), call("buy", code="dear")], "Done."]
    agent = create_agent(ScriptedModel(turns), [Shop().buy(price="reported")], price=FREE)
    assert Decimal("0.06") == Desk(agent, checkpoints).run().usage.cost


def test_a_turn_cannot_walk_over_the_limit(checkpoints: Checkpoints) -> None:
    """Those that the money pays for run, in order; the rest is answered."""
    shop = Shop()
    turns: list[Any] = [[call("buy", code=code) for code in "abcd"], "Done."]
    limits = Limits(max_cost=Decimal("0.25"))
    result = Desk(create_agent(ScriptedModel(turns), [shop.buy()], price=FREE, limits=limits), checkpoints).run()
    assert ["a", "b"] == sorted(shop.sold)
    assert ["done", "done", "not_run", "not_run"] == [entry["outcome"] for entry in result.trail]
    assert Decimal("0.2") == result.usage.cost
    check_transcript(result.messages)


def test_it_draws_on_budgets(checkpoints: Checkpoints) -> None:
    """Atomically, as a model's call does; what is refused is answered, and costs nothing."""
    shop, budget = Shop(), Budget(name="b", by="tenant", max_cost=Decimal("0.25"))
    turns: list[Any] = [[call("buy", code=code) for code in "abcd"], "Done."]
    agent = create_agent(ScriptedModel(turns), [shop.buy()], price=FREE, budgets=[budget])
    result = Desk(agent, checkpoints).run(labels={"tenant": "acme"})
    assert (2, Decimal("0.2")) == (len(shop.sold), result.usage.cost)
    refused = [entry["observation"] for entry in result.trail if entry["outcome"] == "not_run"]
    assert ["not run: budget 'b' (acme) has no money left for it"] * 2 == refused
    (drawn,) = checkpoints.ledger.budgets.drawn([budget.share({"tenant": "acme"}, 0)])
    assert NANO // 5 == drawn.cost_nano


def test_a_try_that_died_counts(checkpoints: Checkpoints) -> None:
    """Its row stands open in the ledger: whoever runs the call again counts it."""
    from loopwright.state import digest

    agent = create_agent(ScriptedModel([call("buy", code="a"), "Done."]), [Shop().buy()], price=FREE)
    place = digest("t", "r", 1, 0, 0)
    price = NANO // 10
    checkpoints.ledger.spend.open("r", 1, model="buy", estimate=Tokens(0, 0), cost_nano=price, call=place)
    result = Desk(agent, checkpoints).run(run_id="r")
    assert Decimal("0.2") == result.usage.cost


def test_what_was_not_begun_costs_nothing(checkpoints: Checkpoints) -> None:
    """A stored result, answered again, is not paid for again."""
    shop = Shop()
    buy = shop.buy(effect="write", key="{code}")
    turns: list[Any] = [call("buy", code="a"), call("buy", code="a"), "Done."]
    agent = create_agent(ScriptedModel(turns), [buy], price=FREE, permissions=[allow("buy")])
    result = Desk(agent, checkpoints).run()
    assert (["a"], Decimal("0.1")) == (shop.sold, result.usage.cost)


@pytest.mark.parametrize("price", [1, 0.1, "0.1", Decimal(-1), Decimal("NaN"), "report"])
def test_a_price_that_is_none(price: Any) -> None:
    """Is refused where it is written."""
    with pytest.raises(ConfigurationError, match="price is"):
        Shop().buy(price=price)


@pytest.mark.parametrize("cost", [1, 0.1, Decimal(-1), None])
def test_a_report_that_is_none(cost: Any) -> None:
    """Money is exact, and never paid back."""
    with pytest.raises(ToolError, match="Decimal"):
        Effect().report_cost(cost)


def test_with_a_limit_on_cost_the_run_stops_after_a_dear_report(checkpoints: Checkpoints) -> None:
    """What was reported can go over the limit; nothing more is spent then."""
    turns: list[Any] = [call("buy", code="dear")]
    limits = Limits(max_cost=Decimal("0.05"))
    agent = create_agent(ScriptedModel(turns), [Shop().buy(price="reported")], price=FREE, limits=limits)
    result = Desk(agent, checkpoints).run()
    assert (StopReason.MAX_COST, Decimal("0.06")) == (result.stop_reason, result.usage.cost)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("price", [Decimal("0.10"), "reported"])
@pytest.mark.parametrize("effect", ["read", "write"])
def test_what_was_reported_before_it_was_late_counts(
    checkpoints: Checkpoints, effect: Any, price: Any, door: DoorName
) -> None:
    """Whatever becomes of the call: the money is spent. What is reported later on reaches nobody."""
    gate = Gate()

    @tool(effect=effect, price=price, timeout=0.05)
    def buy(handle: Effect) -> str:
        """Buy a report about a company."""
        handle.report_cost(Decimal("0.05"))
        gate.pass_through()
        return "report"

    agent = create_agent(ScriptedModel([call("buy"), "Done."]), [buy], price=FREE, permissions=[allow("buy")])
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    cost = Decimal("0.05") if price == "reported" else Decimal("0.15")
    if effect == "write":
        assert ["outcome_unknown"] == [asked.question for asked in result.approvals]
        assert cost == result.usage.cost
        result = desk.answer(result, respond("report"))
    gate.open()
    assert ("succeeded", cost) == (result.status, result.usage.cost)
    rows = checkpoints.ledger.spend.of_run(result.run_id)
    assert [int(cost * NANO)] == [row.cost_nano for row in rows if row.cost_nano]
