"""Which ledger a graph uses: the bound one, the one that the environment names, or one in memory."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.world.plans import planned
from tests.world.sqlite import connection_of
from tests.world.till import Till

from loopwright import Checkpoints, allow, create_agent
from loopwright.errors import StorageError
from loopwright.graphs import build_ring
from loopwright.nodes import Ledgers, run_through
from loopwright.testing import call

PAY = call("pay", order_id="A1", amount=5)


def test_the_bound_one_counts(checkpoints: Checkpoints) -> None:
    """Whatever the environment says."""
    ledgers = Ledgers(checkpoints.ledger)
    assert ledgers.open(has_saver=True) is ledgers.open(has_saver=False) is checkpoints.ledger
    assert ledgers.now() == checkpoints.ledger.clock()


def test_without_a_saver_it_lives_in_memory() -> None:
    """One for the graph, opened once."""
    ledgers = Ledgers()
    assert ledgers.opened(has_saver=False) is None
    ledger = ledgers.open(has_saver=False)
    assert ledger.is_memory
    assert ledgers.opened(has_saver=False) is ledgers.open(has_saver=False) is ledger


def test_nothing_is_kept_of_a_run_without_a_saver() -> None:
    """A service that invokes an agent for years must not grow by it."""
    ledgers, till = Ledgers(), Till()
    agent = create_agent(planned([PAY, PAY, "Done."]), [till.pay()], permissions=[allow("pay")])
    built: Any = build_ring(agent.spec, ledgers)
    ring = built.compile()
    for _ in range(3):
        assert ring.invoke({"messages": [("user", "Pay.")]})["run"]["status"] == "succeeded"
    connection = connection_of(ledgers.open(has_saver=False))
    tables = ("lw_runs", "lw_effects", "lw_spend", "lw_log", "lw_approvals", "lw_leases")
    assert [0] * 6 == [connection.execute(f"select count(*) from {table}").fetchone()[0] for table in tables]  # noqa: S608 -- our own names
    assert len(till.paid) == 6


def test_beside_a_foreign_saver_it_is_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the folder of the project by default, else where `LOOPWRIGHT_LEDGER` says."""
    monkeypatch.chdir(tmp_path)
    first = Ledgers().open(has_saver=True)
    assert (tmp_path / ".loopwright" / "ledger.db").exists()
    monkeypatch.setenv("LOOPWRIGHT_LEDGER", f"sqlite:///{tmp_path / 'other.db'}")
    second = Ledgers().open(has_saver=True)
    assert (tmp_path / "other.db").exists()
    monkeypatch.setenv("LOOPWRIGHT_LEDGER", f"sqlite:///{tmp_path / 'nowhere' / 'other.db'}")
    with pytest.raises(StorageError, match="no folder"):
        Ledgers().open(has_saver=True)
    for ledger in (first, second):
        ledger.close()
        ledger.database.close()


def test_what_never_suspends_is_run_through() -> None:
    """And what does is a mistake of ours, said aloud."""

    async def straight() -> int:
        return 7

    async def suspending() -> None:
        await asyncio.sleep(0)  # noqa: TID251 -- it is to suspend, not to sleep

    assert run_through(straight()) == 7
    with pytest.raises(RuntimeError, match="suspended"):
        run_through(suspending())
