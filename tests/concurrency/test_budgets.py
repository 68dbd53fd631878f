"""One budget under many runs at once: never more is spent than it holds."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.stores import Store, open_store

from loopwright import Agent, Budget, Price, RunResult, StopReason, SyncRuns, create_agent, open_checkpoints
from loopwright.testing import ScriptedModel, call

RUNS = 50
INPUT = 5
"""Tokens of each call, fewer than are reserved for its message: what is reserved bounds what is billed."""
PRICE = Price(Decimal(1), Decimal(10))
DOLLAR = Budget(name="support", by="tenant", max_cost=Decimal(1), per="day")


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that processes share."""
    return open_store(request, tmp_path)


class Meter:
    """Adds up what the provider would bill."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.dollars = Decimal(0)
        self._lock = threading.Lock()

    def say(self, turn: Any, tokens_in: int, tokens_out: int) -> AIMessage:
        """Return a reply, and note what it costs."""
        with self._lock:
            self.dollars += (tokens_in * PRICE.input + tokens_out * PRICE.output) / 10**6
        usage: Any = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
        calls: list[Any] = [] if isinstance(turn, str) else [{**turn, "id": "c"}]
        return AIMessage("" if calls else str(turn), tool_calls=calls, usage_metadata=usage)


class Spender(ScriptedModel):
    """Two turns a run, each as long as it may be: it takes its cap to the last token, else ten thousand."""

    max_tokens: int = 2_000
    meter: Any = None

    def __init__(self, meter: Meter) -> None:
        """Bill to a meter."""
        super().__init__([], meter=meter)

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        most = min(self.max_tokens, kwargs.get("max_tokens", self.max_tokens))
        first = messages[-1].type == "human"
        turn = call("unknown") if first else "Done."
        self._turns = [self.meter.say(turn, INPUT, most)]
        self._used = 0
        return super()._generate(messages, *args)


def build(meter: Meter) -> Agent:
    """An agent whose runs cost four cents each, as long as they may."""
    return create_agent(Spender(meter), [], price=PRICE, budgets=[DOLLAR])


def test_fifty_runs_share_a_dollar(store: Store) -> None:
    """At most a dollar is billed, the ledger says just what was billed, and who came too late is told why."""
    meter = Meter()
    results: list[RunResult] = []
    with open_checkpoints(store.url) as one, open_checkpoints(store.url) as two:

        def drive(number: int) -> None:
            runs = SyncRuns(build(meter), one if number % 2 else two)
            labels = {"tenant": "acme"}
            results.append(runs.run("Do it.", thread_id=f"t{number}", labels=labels))

        threads = [threading.Thread(target=drive, args=[number]) for number in range(RUNS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        one.ledger.spend.flush()
        two.ledger.spend.flush()
        ((cost, label),) = store.execute("select cost_nano, label from lw_budgets")
    assert RUNS == len(results)
    assert meter.dollars <= 1
    assert meter.dollars > Decimal("0.97")
    assert (int(meter.dollars * 10**9), "acme") == (cost, label)
    assert meter.dollars == sum(result.usage.cost for result in results)
    reasons = Counter(result.stop_reason for result in results)
    assert {StopReason.ANSWERED, StopReason.MAX_COST} == set(reasons)
    said = {result.limit for result in results if result.stop_reason == StopReason.MAX_COST}
    assert all(text.startswith("budget 'support' (acme, ") and text.endswith("max_cost of $1") for text in said)
