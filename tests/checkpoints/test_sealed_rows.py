"""Sealed rows: each value belongs to its own row; nothing can be moved, not even within its thread."""

from __future__ import annotations

import shutil
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.world.stores import Store
from tests.world.stories import ANSWER, build_shop, finish, wait_at_question
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, approve, open_checkpoints
from loopwright.checkpoints import Ledger
from loopwright.errors import StorageCorrupt
from loopwright.graphs import compile_agent

KEY, NEW = b"k" * 32, b"n" * 32
THREAD = "waiting"
SEALED = Path(__file__).parent / "sealed" / "0.1.0.db"
"""Written by 0.1.0 with this key; its values are bound to their thread alone."""

NAMES = {
    "checkpoints": "checkpoint_id",
    "writes": "checkpoint_id || task_id || idx",
    "checkpoint_writes": "checkpoint_id || task_id || idx",
    "checkpoint_blobs": "channel || version",
}
"""What names a row of each table, within its thread."""
MOVABLE = {
    "sqlite": [
        ("checkpoints", ("type", "checkpoint")),
        ("checkpoints", ("metadata",)),
        ("checkpoints", ("type", "checkpoint", "metadata")),
        ("writes", ("type", "value")),
    ],
    "postgres": [
        ("checkpoints", ("checkpoint",)),
        ("checkpoints", ("metadata",)),
        ("checkpoints", ("checkpoint", "metadata")),
        ("checkpoint_writes", ("type", "blob")),
        ("checkpoint_blobs", ("type", "blob")),
    ],
}


def read_all(checkpoints: Checkpoints, agent: Any) -> int:
    """Read every checkpoint of the thread, with all that stands on it; returns how many there are."""
    compiled: Any = compile_agent(agent.spec, checkpoints)
    return len([*compiled.get_state_history({"configurable": {"thread_id": THREAD}})])


@pytest.fixture(name="sealed")
def seal_thread(kept: Store) -> Generator[tuple[Store, Checkpoints, Any]]:
    """A thread that waits, with every super-step stored, and sealed."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url, encryption=[KEY], write_behind=False) as checkpoints:
        wait_at_question(agent, checkpoints, THREAD)
        assert read_all(checkpoints, agent) > 3
        yield kept, checkpoints, agent


class Table:
    """One table of a store: its rows of the thread can change places, and go back."""

    def __init__(self, store: Store, name: str, columns: Sequence[str]) -> None:
        """Keep a copy of the table."""
        self._store, self._name, self._columns = store, name, ", ".join(columns)
        store.execute(f"create table before as select *, {NAMES[name]} as name from {name}")  # noqa: S608 -- ours
        found = store.execute(f"select name from before where thread_id = '{THREAD}' order by name")  # noqa: S608 -- ours
        self.rows: list[str] = [row[0] for row in found]

    def _put(self, row: str, other: str) -> None:
        source = f"select {self._columns} from before where thread_id = '{THREAD}' and name = '{other}'"  # noqa: S608
        where = f"thread_id = '{THREAD}' and {NAMES[self._name]} = '{row}'"
        self._store.execute(f"update {self._name} set ({self._columns}) = ({source}) where {where}")  # noqa: S608 -- ours

    def swap(self, one: str, other: str) -> None:
        """Put each in the other's place."""
        self._put(one, other)
        self._put(other, one)

    def restore(self, *rows: str) -> None:
        """Put them where they were."""
        for row in rows:
            self._put(row, row)

    def forget(self) -> None:
        """Drop the copy."""
        self._store.execute("drop table before")


def test_rows_of_one_thread_cannot_change_places(sealed: tuple[Store, Checkpoints, Any]) -> None:
    """Two checkpoints, two writes, two channels, two sets of metadata: whoever reads them is told."""
    store, checkpoints, agent = sealed
    for name, columns in MOVABLE[store.kind]:
        table = Table(store, name, columns)
        believed: list[tuple[str, str]] = []
        for pair in zip(table.rows[::2], table.rows[1::2], strict=False):
            table.swap(*pair)
            try:
                read_all(checkpoints, agent)
            except StorageCorrupt:
                pass
            else:
                believed.append(pair)
            table.restore(*pair)
        table.forget()
        assert (len(table.rows) > 2, []) == (True, believed), (name, columns)
    assert read_all(checkpoints, agent) > 3


@pytest.mark.parametrize("part", ["versions_seen", "channel_versions"])
def test_what_stays_readable_cannot_be_changed(sealed: tuple[Store, Checkpoints, Any], part: str) -> None:
    """Which versions count and what nodes have seen is in the clear in PostgreSQL; the clear metadata in both."""
    store, checkpoints, agent = sealed
    if store.kind == "postgres":
        changed = f"jsonb_set(checkpoint, '{{{part}}}', '{{}}')"
        store.execute(f"update checkpoints set checkpoint = {changed}")  # noqa: S608 -- ours
    else:
        store.execute("update checkpoints set metadata = json_set(metadata, '$.step', 7)")
    with pytest.raises(StorageCorrupt):
        read_all(checkpoints, agent)


@pytest.mark.parametrize("kind", ["null", "bytes", "json"])
def test_the_kind_of_a_value_cannot_be_changed(sealed: tuple[Store, Checkpoints, Any], kind: str) -> None:
    """It stands in the clear: as another kind, a message would be read as nothing, or as bytes."""
    store, checkpoints, agent = sealed
    table = "checkpoint_writes" if store.kind == "postgres" else "writes"
    store.execute(f"update {table} set type = '{kind}+sealed' where channel = 'messages'")  # noqa: S608 -- ours
    with pytest.raises(StorageCorrupt):
        read_all(checkpoints, agent)


TEXTS = [
    ("lw_runs", "task", "lw_runs", "input"),
    ("lw_approvals", "args", "lw_approvals", "payload"),
    ("lw_log", "data", "lw_runs", "task"),
    ("lw_effects", "result", "lw_effects", "key"),
]


@pytest.mark.parametrize(("table", "column", "source", "from_"), TEXTS)
def test_texts_of_the_ledger_cannot_change_places(
    kept: Store, table: str, column: str, source: str, from_: str
) -> None:
    """Neither between columns nor between rows."""
    agent = build_shop(Till())
    with open_checkpoints(kept.url, encryption=[KEY]) as checkpoints:
        finish(agent, checkpoints)
        wait_at_question(agent, checkpoints)
        value = f"(select {from_} from {source} where {from_} <> '' limit 1)"  # noqa: S608 -- ours
        row = f"(select min(number) from {table})" if table == "lw_log" else f"(select max(id) from {table})"  # noqa: S608 -- ours
        if table == "lw_log":
            kept.drop_log_triggers()
        if (table, column) == ("lw_runs", "task"):
            value = f"(select task from lw_runs where id <> {row})"  # noqa: S608 -- ours
        kept.execute(f"update {table} set {column} = {value} where {'number' if table == 'lw_log' else 'id'} = {row}")  # noqa: S608
        with pytest.raises(StorageCorrupt):
            read_ledger(checkpoints.ledger)


def read_ledger(ledger: Ledger) -> None:
    """Read every text."""
    ledger.log.records()
    for run in ledger.runs.list():
        ledger.effects.of_run(run.id)
        ledger.approvals.of_run(run.id)


def test_what_an_earlier_release_sealed(tmp_path: Path) -> None:
    """It is read, and carried on; what is written from then on is bound to its row."""
    path = Path(shutil.copy(SEALED, tmp_path / "runs.db"))
    store = Store("sqlite", f"sqlite:///{path}", path=path)
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(store.url, encryption=[NEW, KEY]) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        (asked,) = runs.approvals()
        runs.decide(asked.id, approve(), by="ana")
        result = runs.wait(asked.run_id)
        assert (ANSWER, [("A1", 5)]) == (result.answer, till.paid)
        assert 2 == checkpoints.prune(older_than=0).threads
    rows = store.execute("select hex(substr(checkpoint, 1, 3)) from checkpoints")
    assert [("6C7732",), ("6C7732",)] == rows
    with open_checkpoints(store.url, encryption=[NEW, KEY]) as checkpoints:
        assert result.messages == SyncRuns(agent, checkpoints).get(result.run_id).messages
        assert "succeeded" == finish(agent, checkpoints, "finished", "Once more.").status


def test_an_old_value_of_another_thread_is_refused(tmp_path: Path) -> None:
    """Those are bound to their thread, as they were."""
    path = Path(shutil.copy(SEALED, tmp_path / "runs.db"))
    store = Store("sqlite", f"sqlite:///{path}", path=path)
    source = "select type, checkpoint from checkpoints where thread_id = 'finished' limit 1"
    store.execute(f"update checkpoints set (type, checkpoint) = ({source}) where thread_id = '{THREAD}'")  # noqa: S608
    with open_checkpoints(store.url, encryption=[KEY]) as checkpoints, pytest.raises(StorageCorrupt, match="swapped"):
        read_all(checkpoints, build_shop(Till()))
