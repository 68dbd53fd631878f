"""PostgreSQL: every wait for what another session holds is bounded, and its end says who that is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import LiteralString

import pytest
from tests.world.gates import Gate
from tests.world.postgres import Database

from loopwright import open_checkpoints
from loopwright.checkpoints import ClaimRequest, Ledger
from loopwright.checkpoints.postgres import PostgresDatabase
from loopwright.checkpoints.postgres_store import SET_UP_LOCK
from loopwright.errors import StorageError

LEDGER_LOCK = 1819242352


def start(ledger: Ledger, run_id: str) -> None:
    """Write something, after everybody else."""
    with ledger.database.serial():
        ledger.runs.start(run_id, thread_id="t", agent="a", message="m", task="m")


def test_somebody_else_sets_up_for_ever(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the session that has the lock; when that is gone, opening succeeds."""
    monkeypatch.setattr("loopwright.checkpoints.postgres_store.SET_UP_SECONDS", 0.1)
    with postgres.server.connect(postgres.name) as other:
        other.execute("set application_name = 'a-migration'")
        other.execute("select pg_advisory_lock(%s)", (SET_UP_LOCK,))
        said = rf"backend {other.info.backend_pid} \(a-migration, local, idle\).*pg_terminate_backend"
        with pytest.raises(StorageError, match=said):
            open_checkpoints(postgres.url)
    with open_checkpoints(postgres.url) as checkpoints:
        start(checkpoints.ledger, "r1")


def test_somebody_has_the_ledgers_lock_for_ever(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening and writing end with our error; reading goes on; when it is free, writing succeeds."""
    monkeypatch.setattr("loopwright.checkpoints.postgres.LOCK_SECONDS", 0.1)
    with open_checkpoints(postgres.url) as checkpoints:
        with postgres.server.connect(postgres.name) as other:
            other.execute("select pg_advisory_lock(%s)", (LEDGER_LOCK,))
            with pytest.raises(StorageError, match=r"stayed locked for 0.1 s .*pg_stat_activity"):
                start(checkpoints.ledger, "r1")
            with pytest.raises(StorageError, match="stayed locked"):
                open_checkpoints(postgres.url)
            assert [] == checkpoints.ledger.runs.list()
        start(checkpoints.ledger, "r1")


def test_who_stops_in_a_transaction_is_cut_off(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is suspended, a machine without power: the others go on, and nothing of it is stored."""
    monkeypatch.setattr("loopwright.checkpoints.postgres.STALLED_SECONDS", 0.2)
    gate = Gate()

    def stop(ledger: Ledger) -> None:
        with ledger.database.serial():
            start(ledger, "stopped")
            gate.pass_through()

    with (
        open_checkpoints(postgres.url) as here,
        open_checkpoints(postgres.url) as there,
        ThreadPoolExecutor(1) as threads,
    ):
        stopped = threads.submit(stop, here.ledger)
        gate.wait_until_reached()
        start(there.ledger, "next")
        gate.open()
        with pytest.raises(StorageError, match="idle-in-transaction"):
            stopped.result()
        assert ["next"] == [row.id for row in there.ledger.runs.list()]
        start(here.ledger, "again")


def shown(url: str) -> list[str]:
    """Return what holds in a connection."""
    with open_checkpoints(url) as checkpoints:
        database = checkpoints.ledger.database
        assert isinstance(database, PostgresDatabase)
        with database.connection() as connection:
            rows = [connection.execute(f"show {name}").fetchone() for name in SETTINGS]
    return [row[name] for name, row in zip(SETTINGS, rows, strict=True) if row is not None]


SETTINGS: tuple[LiteralString, ...] = (
    "lock_timeout",
    "idle_in_transaction_session_timeout",
    "default_transaction_isolation",
    "synchronous_commit",
)


def test_what_holds_in_a_connection(postgres: Database) -> None:
    """Waits are bounded, and commits are durable; what the URL says is not overruled, save for the isolation."""
    assert ["30s", "15s", "read committed", "on"] == shown(postgres.url)
    own = "-clock_timeout%3D1234 -cdefault_transaction_isolation%3Dserializable -csynchronous_commit%3Doff"
    assert ["1234ms", "15s", "read committed", "off"] == shown(f"{postgres.url}&options={own.replace(' ', '%20')}")


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_whatever_isolation_is_the_default(postgres: Database, isolation: str) -> None:
    """Eight workers want one effect at once: one has it, and none fails because another was faster."""
    postgres.execute(f"alter database {postgres.name} set default_transaction_isolation = '{isolation}'")
    request = ClaimRequest("e1", "key", "digest", "pay", "r1", "t", repeatable=False, own_key=False)
    with open_checkpoints(postgres.url) as checkpoints, ThreadPoolExecutor(8) as threads:
        claims = [*threads.map(checkpoints.ledger.effects.claim, [request] * 8)]
    assert ["busy"] * 7 + ["mine"] == sorted(claim.status for claim in claims)
