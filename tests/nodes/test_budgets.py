"""Budgets: kept apart by label and window, reserved before each call, and given back."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from tests.world.doors import DOORS, Desk, DoorName

from loopwright import Agent, Budget, Checkpoints, Price, Runs, StopReason, SyncRuns, create_agent, deny
from loopwright.errors import ConfigurationError, RunError
from loopwright.state import checked_labels
from loopwright.testing import ManualClock, ScriptedModel, call

PRICE = Price(Decimal(1), Decimal(1))
DAY = 86_400


def reply(tokens: int = 1000, text: Any = "Done.") -> AIMessage:
    """An answer that takes so many tokens in all."""
    usage: Any = {"input_tokens": 10, "output_tokens": tokens - 10, "total_tokens": tokens}
    return AIMessage(text, usage_metadata=usage)


def build(turns: list[Any], *budgets: Budget, **options: Any) -> Agent:
    """An agent that shares these budgets."""
    return create_agent(ScriptedModel(turns), [], price=PRICE, budgets=budgets, **options)


@pytest.mark.parametrize("door", DOORS)
def test_apart_by_label_and_by_day(checkpoints: Checkpoints, clock: ManualClock, door: DoorName) -> None:
    """What one tenant has used up, another one has still, and the first one tomorrow."""
    budget = Budget(name="b", by="tenant", max_tokens=1050, per="day")
    agent = build([reply()] * 3, budget)
    seen: list[Any] = []
    for number, (tenant, wait) in enumerate([("a", 0), ("a", 0), ("b", 0), ("a", DAY)]):
        clock.advance(wait)
        result = Desk(agent, checkpoints, door).run(thread_id=f"{number}", labels={"tenant": tenant})
        seen.append(result.stop_reason)
    assert [StopReason.ANSWERED, StopReason.MAX_TOKENS, StopReason.ANSWERED, StopReason.ANSWERED] == seen


def test_what_was_not_used_is_given_back(checkpoints: Checkpoints) -> None:
    """The worst case is reserved, the real figures are kept; a failed call costs nothing."""
    budget = Budget(name="b", max_cost=Decimal("0.02"), max_tokens=50_000)
    agent = build([reply(700), RuntimeError("gone"), reply(300)], budget)
    for number in range(3):
        Desk(agent, checkpoints).run(thread_id=f"{number}")
    checkpoints.ledger.spend.flush()
    share = budget.share({}, checkpoints.ledger.clock())
    (drawn,) = checkpoints.ledger.budgets.drawn([share])
    assert (1000, 1_000_000) == (drawn.tokens, drawn.cost_nano)


@pytest.mark.parametrize("door", DOORS)
def test_more_for_the_run_is_no_more_for_the_budget(
    checkpoints: Checkpoints, clock: ManualClock, door: DoorName
) -> None:
    """It is refused with the budget's name, rather than stopping at once again; tomorrow the run can go on."""
    agent = build([reply()] * 3, Budget(name="b", by="tenant", max_tokens=1050, per="day"))
    desk = Desk(agent, checkpoints, door)
    stopped = [desk.run(thread_id=number, labels={"tenant": "a"}) for number in range(2)][-1]
    with pytest.raises(
        RunError, match=r"budget 'b' \(a, 2027-01-15\): max_tokens of 1,050 is used up, and more for a run"
    ):
        desk.extend(stopped.run_id, tokens=5_000)
    clock.advance(DAY)
    assert desk.extend(stopped.run_id, tokens=5_000).accepted
    assert StopReason.ANSWERED == desk.wait(stopped.run_id).stop_reason


def test_of_several_the_tightest_counts(checkpoints: Checkpoints) -> None:
    """And is the one that the run names; the other one is not drawn on for a call that was not made."""
    wide, tight = Budget(name="wide", max_tokens=90_000), Budget(name="tight", max_tokens=10)
    result = Desk(build([], wide, tight), checkpoints).run()
    assert (StopReason.MAX_TOKENS, "budget 'tight': max_tokens of 10") == (result.stop_reason, result.limit)
    shares = [budget.share({}, checkpoints.ledger.clock()) for budget in (wide, tight)]
    assert [0, 0] == [drawn.tokens for drawn in checkpoints.ledger.budgets.drawn(shares)]


def test_a_missing_label_is_told_before_anything_runs(checkpoints: Checkpoints) -> None:
    """By each way in."""
    agent = build([], Budget(name="b", by="tenant", max_tokens=9))
    with pytest.raises(ConfigurationError, match="'tenant'"):
        SyncRuns(agent, checkpoints).start("Do it.", thread_id="t")
    with pytest.raises(ConfigurationError, match="'tenant'"):
        asyncio.run(Runs(agent, checkpoints).start("Do it.", thread_id="t", labels={"team": "x"}))
    with pytest.raises(ConfigurationError, match="'tenant'"):
        list(agent.stream({"messages": [HumanMessage("Do it.")]}))
    assert [] == checkpoints.ledger.runs.list()


def test_plain_invoke_brings_labels(checkpoints: Checkpoints) -> None:
    """In `configurable`; they stand in the run and in the ledger."""
    agent = build([reply(100)], Budget(name="b", by="tenant", max_tokens=900), checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": "t", "labels": {"tenant": "acme"}}}
    states: list[Any] = list(agent.stream({"messages": [HumanMessage("Do it.")]}, config, stream_mode="values"))
    assert {"tenant": "acme"} == states[-1]["run"]["labels"]
    (row,) = checkpoints.ledger.runs.list()
    assert '{"tenant": "acme"}' == row.labels


def test_rules_see_labels(checkpoints: Checkpoints) -> None:
    """So that a tenant can have rules of its own; whoever carries the run on has them too."""
    from tests.world.till import Till

    till = Till()
    rule = deny("look", when=lambda proposed: proposed.run.get("labels", {})["tenant"] == "acme")
    agent = create_agent(ScriptedModel([call("look", order_id="1"), "No."]), [till.look()], permissions=[rule])
    SyncRuns(agent, checkpoints).start("Do it.", thread_id="t", run_id="r", labels={"tenant": "acme"})
    SyncRuns(agent, checkpoints).wait("r")
    assert [] == till.looked


def test_an_id_names_one_run_with_its_labels(checkpoints: Checkpoints) -> None:
    """Started twice with others, it would be charged to whoever came first."""
    runs = SyncRuns(build(["Done."]), checkpoints)
    runs.start("Do it.", thread_id="t", run_id="r", labels={"tenant": "a"})
    with pytest.raises(ConfigurationError, match="labels"):
        runs.start("Do it.", thread_id="t", run_id="r", labels={"tenant": "b"})


@pytest.mark.parametrize("labels", [9, "a", {"a": 1}, {"": "x"}, {"a": ""}, {"a": "x" * 201}, {1: "a"}])
def test_labels_are_short_texts(labels: Any) -> None:
    """They stand in rows and messages."""
    with pytest.raises(ConfigurationError, match="label"):
        checked_labels(labels)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"name": ""}, "name is"),
    ({"name": "b"}, "bounds nothing"),
    ({"name": "b", "max_cost": 1}, "max_cost is"),
    ({"name": "b", "max_tokens": -1}, "max_tokens is"),
    ({"name": "b", "max_tokens": 1.5}, "max_tokens is"),
    ({"name": "b", "max_tokens": 1, "per": "week"}, "per is"),
    ({"name": "b", "max_tokens": 1, "by": 3}, "by is"),
]


@pytest.mark.parametrize(("options", "said"), WRONG)
def test_a_budget_that_cannot_be_kept(options: dict[str, Any], said: str) -> None:
    """Is refused where it is written."""
    with pytest.raises(ConfigurationError, match=said):
        Budget(**options)


def test_agents_that_could_not_keep_one() -> None:
    """Two of one name, something else, or money without a price."""
    budget = Budget(name="b", max_cost=Decimal(1))
    wrong: list[Any] = [[budget, budget], [9], budget]
    for budgets in wrong:
        with pytest.raises(ConfigurationError, match="budget"):
            create_agent("demo", [], budgets=budgets)
    with pytest.raises(ConfigurationError, match="price"):
        create_agent(ScriptedModel([]), [], budgets=[budget])
