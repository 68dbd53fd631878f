"""Setting a database up: by many processes at once, from any state of it; and never over what a later release wrote."""

from __future__ import annotations

from collections.abc import Callable, Generator
from importlib import resources
from pathlib import Path

import pytest
from tests.world.nursery import Nursery
from tests.world.postgres import Postgres
from tests.world.stores import Store
from tests.world.stories import ANSWER, build_shop, finish
from tests.world.till import Till

from loopwright import Budget, SyncRuns, open_checkpoints
from loopwright.checkpoints import Drawn, extensions_of, labels_of
from loopwright.checkpoints.database import SCHEMA_VERSION, load_migration
from loopwright.errors import StorageError, VersionUnsupported
from loopwright.state import Tokens

MANY = 8


@pytest.fixture(name="empty", params=["sqlite", "postgres"])
def lend_empty_store(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Store]:
    """A database in which nothing is."""
    if request.param == "sqlite":
        yield Store("sqlite", f"sqlite:///{tmp_path / 'runs.db'}", path=tmp_path / "runs.db")
        return
    server: Postgres = request.getfixturevalue("postgres_server")
    with server.database("template0") as database:
        yield Store("postgres", database.url, postgres=database)


def leave_empty(_store: Store) -> None:
    """Nothing is there."""


def make_ready(store: Store) -> None:
    """Everything is there."""
    open_checkpoints(store.url).close()


def stop_after_the_savers_tables(store: Store) -> None:
    """LangGraph's own saver was here before: its tables, without a fence or a ledger."""
    make_ready(store)
    if store.kind == "postgres":
        named = "select tablename from pg_tables where tablename like 'lw\\_%'"
        store.run([f"drop table {table}" for (table,) in store.execute(named)])
        store.run(["drop index lw_one_child", "drop index lw_one_root"])
        return
    store.run([f"drop trigger {name}" for name in ("lw_one_child", "lw_one_root")])
    named = "select name from sqlite_master where type = 'table' and name like 'lw\\_%' escape '\\'"
    store.run([f"drop table {table}" for (table,) in store.execute(named)])
    store.run(["drop index lw_line", "pragma user_version = 0"])


def stop_after_the_ledgers_tables(store: Store) -> None:
    """A process died between the ledger and the checkpoints: half of LangGraph's migrations are missing."""
    make_ready(store)
    if store.kind == "postgres":
        store.run(["drop index lw_one_child", "drop index lw_one_root", "drop table checkpoint_writes"])
        store.run(["delete from checkpoint_migrations where v > 2"])
        store.run(
            ["drop index if exists checkpoints_thread_id_idx", "drop index if exists checkpoint_blobs_thread_id_idx"]
        )
        return
    store.run(["drop table checkpoints", "drop table writes"])


def stop_without_triggers(store: Store) -> None:
    """Somebody took the fence and the guard of the log away."""
    make_ready(store)
    if store.kind == "postgres":
        store.run(["drop index lw_one_child", "drop index lw_one_root"])
    else:
        store.run(["drop trigger lw_one_child", "drop trigger lw_one_root"])
    store.drop_log_triggers()


@pytest.mark.parametrize(
    ("state", "many"),
    [
        (leave_empty, MANY),
        (make_ready, 2),
        (stop_after_the_ledgers_tables, MANY),
        (stop_after_the_savers_tables, 2),
        (stop_without_triggers, 2),
    ],
)
def test_many_processes_at_once(nursery: Nursery, empty: Store, state: Callable[[Store], None], many: int) -> None:
    """Each opens and writes, whatever was there; in the end everything is in its place, and a run goes through."""
    state(empty)
    names = [f"p{number}" for number in range(many)]
    children = [nursery.start("tests.world.crowds:open_at_once", url=empty.url, pool_size=2) for _ in names]
    assert ["ready"] * many == [child.receive() for child in children]
    for child, name in zip(children, names, strict=True):
        child.send(name)
    assert [True] * many == [child.receive() for child in children]
    assert [0] * many == [child.wait() for child in children]
    with open_checkpoints(empty.url) as checkpoints:
        assert set(names) == {run.id for run in checkpoints.ledger.runs.list()}
        finish(build_shop(Till()), checkpoints)
        assert checkpoints.ledger.log.verify().is_whole
    objects = fenced(empty)
    assert {"lw_one_child", "lw_one_root"} <= objects
    assert objects & {"lw_log_append_only", "lw_log_no_update"}


def fenced(store: Store) -> set[str]:
    """Return the names of indexes and triggers."""
    if store.kind == "postgres":
        query = "select indexname from pg_indexes union select tgname::text from pg_trigger"
    else:
        query = "select name from sqlite_master"
    return {row[0] for row in store.execute(query)}


def test_a_newer_schema_is_refused(kept: Store) -> None:
    """Nothing is changed, and what is in it is there for who can read it."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url) as checkpoints:
        done = finish(agent, checkpoints)
    newer, back = ("pragma user_version = 99", f"pragma user_version = {SCHEMA_VERSION}")
    if kept.kind == "postgres":
        newer, back = ("insert into lw_schema (version) values (99)", "delete from lw_schema where version = 99")
    kept.execute(newer)
    before = kept.text()
    for _ in range(2):
        with pytest.raises(VersionUnsupported, match="schema 99"):
            open_checkpoints(kept.url)
    assert before == kept.text()
    kept.execute(back)
    with open_checkpoints(kept.url) as checkpoints:
        assert ANSWER == SyncRuns(agent, checkpoints).get(done.run_id).answer


def test_a_migration_that_breaks_off_leaves_nothing(empty: Store) -> None:
    """The tables of a version come in one transaction: one that cannot be made stops all, and opening anew succeeds."""
    empty.execute("create table lw_log_head (wrong integer)")
    with pytest.raises(StorageError, match="already exists"):
        open_checkpoints(empty.url)
    tables = "select name from sqlite_master" if empty.kind == "sqlite" else "select tablename from pg_tables"
    assert "lw_runs" not in {row[0] for row in empty.execute(tables)}
    empty.execute("drop table lw_log_head")
    make_ready(empty)


def test_the_first_schema_is_brought_up_to_date(empty: Store) -> None:
    """What 0.1.0 set up gets the columns and indexes that it lacks, with its rows in place."""
    run = "insert into lw_runs (id, thread_id, agent, task, status, created_at, updated_at)"
    note = ["create table lw_schema (version integer primary key)", "insert into lw_schema (version) values (1)"]
    empty.run([*load_migration(1), f"{run} values ('r1', 't', 'a', 'hello', 'running', 1, 1)"])
    empty.run(note if empty.kind == "postgres" else ["pragma user_version = 1"])
    with open_checkpoints(empty.url) as checkpoints:
        runs, spend = checkpoints.ledger.runs, checkpoints.ledger.spend
        (old,) = runs.list(status="running")
        assert ("r1", "", {}, []) == (old.id, old.requester, labels_of(old), extensions_of(old))
        runs.start("r2", thread_id="t2", agent="a", message="Hi.", task="Hi.", labels={"tenant": "acme"})
        row = runs.find("r2")
        assert row is not None
        assert {"tenant": "acme"} == labels_of(row)
        share = Budget(name="b", max_tokens=9).share({}, 0)
        spend.open("r2", 1, model="m", estimate=Tokens(5, 4), cost_nano=7, shares=[share])
        assert [Drawn(9, 7)] == checkpoints.ledger.budgets.drawn([share])
    versions = "select version from lw_schema order by version" if empty.kind == "postgres" else "pragma user_version"
    reached = [version for (version,) in empty.execute(versions)]
    assert reached[-1] == SCHEMA_VERSION
    assert empty.kind == "sqlite" or reached == list(range(1, SCHEMA_VERSION + 1))
    assert {"lw_runs_by_creation", "lw_runs_by_status"} <= fenced(empty)


def test_each_step_of_the_schema_has_a_number_of_its_own() -> None:
    """Of two with one number only one would be taken; the last one is the schema of this release."""
    files = resources.files("loopwright.checkpoints").joinpath("sql").iterdir()
    numbers = sorted(int(file.name[:4]) for file in files if file.name[:4].isdigit())
    assert [*range(1, SCHEMA_VERSION + 1)] == numbers
