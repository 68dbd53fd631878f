"""One budget under many runs at once: never more is spent than it holds."""

from __future__ import annotations

import threading
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from tests.world.nursery import Nursery
from tests.world.spenders import Meter, build
from tests.world.stores import Store, open_store

from loopwright import RunResult, StopReason, SyncRuns, open_checkpoints

RUNS = 50
PROCESSES = 4


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """A store that processes share."""
    return open_store(request, tmp_path)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
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


def test_fifty_runs_of_four_processes_share_a_dollar(nursery: Nursery, store: Store) -> None:
    """The same where nothing but the database is shared."""
    with open_checkpoints(store.url):  # set up
        pass
    shares = [[*range(first, RUNS, PROCESSES)] for first in range(PROCESSES)]
    children = [nursery.start("tests.world.spenders:spend", url=store.url, numbers=numbers) for numbers in shares]
    assert ["ready"] * PROCESSES == [child.receive() for child in children]
    for child in children:
        child.send("go")
    told = [child.result() for child in children]
    billed = sum(Decimal(dollars) for dollars, _, _ in told)
    ((cost, label),) = store.execute("select cost_nano, label from lw_budgets")
    assert Decimal("0.97") < billed <= 1
    assert (int(billed * 10**9), "acme") == (cost, label)
    assert billed == sum(Decimal(said) for _, said, _ in told)
    reasons = Counter(reason for *_, ended in told for reason in ended)
    assert ({"answered", "max_cost"}, RUNS) == (set(reasons), reasons.total())
