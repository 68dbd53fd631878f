"""Whatever a model says and tools cost: no sequence of runs spends over a limit, if usage stays within the reserved."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tests.world.stores import MOSTLY_IN_MEMORY, some_store

from loopwright import Budget, Limits, Price, Retry, SyncRuns, create_agent, open_checkpoints, tool
from loopwright.testing import ScriptedModel, call

PRICE = Price(Decimal(1), Decimal(3))
FAILURES = {"refused": ConnectionRefusedError, "cut": ConnectionResetError, "bug": TypeError}
TURN = st.tuples(st.sampled_from(["look", "buy", "both", "answer", *FAILURES]), st.integers(min_value=1, max_value=600))


class Bounded(ScriptedModel):
    """Says what was drawn, as long as was drawn, within its cap and within what the input was estimated at."""

    max_tokens: int = 400
    drawn: Any = ()

    def __init__(self, drawn: list[Any]) -> None:
        """Take what was drawn."""
        super().__init__([])
        self.drawn = [*drawn]

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        kind, length = self.drawn.pop(0) if self.drawn else ("answer", 5)
        if kind in FAILURES:
            raise FAILURES[kind](kind)
        output = min(length, self.max_tokens, kwargs.get("max_tokens", self.max_tokens))
        names = {"look": ["look"], "buy": ["buy"], "both": ["buy", "buy", "look"], "answer": []}[kind]
        calls: list[Any] = [
            {**call(name, code=f"{length}-{place}"), "id": f"{place}"} for place, name in enumerate(names)
        ]
        usage: Any = {"input_tokens": 1, "output_tokens": output, "total_tokens": 1 + output}
        self._turns, self._used = [AIMessage("Said.", tool_calls=calls, usage_metadata=usage)], 0
        return super()._generate(messages, *args)


@tool(effect="read")
def look(code: str) -> str:
    """Look up an order by its code; returns its status."""
    return f"{code} is there"


@tool(effect="read", price=Decimal("0.0004"))
def buy(code: str) -> str:
    """Buy a report about an order by its code; returns it."""
    return f"{code} is dear"


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(
    turns=st.lists(TURN, min_size=1, max_size=20),
    run=st.integers(0, 3000),
    shared=st.integers(0, 4000),
    wrap_up=st.booleans(),
    store=MOSTLY_IN_MEMORY,
)
def test_no_sequence_of_runs_spends_over_a_limit(
    *, turns: list[Any], run: int, shared: int, wrap_up: bool, store: Any
) -> None:
    """Of the run, of its thread, or of the budget that its threads share."""
    dollars = Decimal(1) / 1_000_000
    limits = Limits(
        max_tokens=run, max_cost=run * 2 * dollars, thread=Limits(max_tokens=2 * run, max_cost=run * 3 * dollars)
    )
    budget = Budget(name="b", max_cost=shared * dollars, max_tokens=shared)
    model, again = Bounded(turns), Retry(tries=2, base=0.0)
    agent = create_agent(
        [model, model],
        [look, buy],
        price={"scripted": PRICE},
        limits=limits,
        budgets=[budget],
        wrap_up=wrap_up,
        retry=again,
    )
    totals: dict[str, list[Any]] = {}
    with some_store(store) as url, open_checkpoints(url) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        for number in range(6):
            thread = f"t{number % 2}"
            result = runs.run("Do it.", thread_id=thread)
            assert result.usage.tokens <= run
            assert result.usage.cost <= run * 2 * dollars
            totals.setdefault(thread, []).append(result.usage)
        checkpoints.ledger.spend.flush()
        (drawn,) = checkpoints.ledger.budgets.drawn([budget.share({}, 0)])
    used = [usage for usages in totals.values() for usage in usages]
    for usages in totals.values():
        assert sum(usage.tokens for usage in usages) <= 2 * run
        assert sum(usage.cost for usage in usages) <= run * 3 * dollars
    assert drawn.tokens == sum(usage.tokens for usage in used) <= shared
    assert Decimal(drawn.cost_nano) / 10**9 == sum(usage.cost for usage in used) <= shared * dollars
