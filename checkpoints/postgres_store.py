"""Checkpoints in PostgreSQL: LangGraph's tables, and one child a checkpoint."""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from random import getrandbits
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, DeltaChannelHistory, get_checkpoint_id
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name
from psycopg import Connection, Cursor
from psycopg.errors import UniqueViolation
from psycopg.rows import DictRow, RowFactory, RowMaker, dict_row, tuple_row
from psycopg.types.json import Jsonb

from loopwright.errors import StorageError, ThreadMoved

from .database import load_statements
from .history import Chain
from .metadata import is_first, is_stored_nowhere
from .postgres import PostgresDatabase
from .serializer import Serializer
from .store import BLOBS, WRITES, Batch, Seal, SealedColumn, TaskWrites, name_blob, name_write, place_of, sealed_write

SET_UP_LOCK = 0x6C6F6F71
"""Of the advisory lock for setting up."""
SET_UP_SECONDS = 60.0
"""How long one process waits for another that sets up; indexes of a large database take some time."""
LOCK_POLL_SECONDS = 0.05
_HOLDER = """
select a.pid, a.application_name, a.client_addr::text as address, a.state
from pg_locks l join pg_stat_activity a on a.pid = l.pid
where a.datname = current_database() and l.locktype = 'advisory' and l.granted
    and l.classid = 0 and l.objid = %s and l.objsubid = 1
"""
VERSION_DIGITS = 10
"""Of a channel's version, so that versions are ordered as texts: more than super-steps that any thread will see."""
_STORE = """
with written as (
    insert into checkpoint_writes
        (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, blob)
    select %(thread)s, %(namespace)s, %(parent)s, given.*
    from unnest(
        %(tasks)b::text[], %(paths)b::text[], %(numbers)b::int[], %(channels)b::text[],
        %(kinds)b::text[], %(values)b::bytea[]
    ) as given
    on conflict (thread_id, checkpoint_ns, checkpoint_id, task_id, idx) do nothing
), kept as (
    insert into checkpoint_blobs (thread_id, checkpoint_ns, channel, version, type, blob)
    select %(thread)s, %(namespace)s, given.*
    from unnest(
        %(blob_channels)b::text[], %(blob_versions)b::text[], %(blob_kinds)b::text[], %(blobs)b::bytea[]
    ) as given
    on conflict (thread_id, checkpoint_ns, channel, version) do nothing
)
insert into checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
values (%(thread)s, %(namespace)s, %(id)s, %(parent)s, %(checkpoint)s, %(metadata)s)
on conflict (thread_id, checkpoint_ns, checkpoint_id)
do update set checkpoint = excluded.checkpoint, metadata = excluded.metadata
"""
"""One statement, and so one round trip and one transaction."""
_PARENTS = """
select checkpoint_id, parent_checkpoint_id,
    case when checkpoint_id = %s or parent_checkpoint_id is null then metadata end
from checkpoints where thread_id = %s and checkpoint_ns = %s
"""
_WRITES_ON = (
    "select checkpoint_id, channel, task_path, task_id, idx, type, blob from checkpoint_writes"
    " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = any(%s) and channel = any(%s)"
)
_SQUASH = (
    "update checkpoints set parent_checkpoint_id = null, checkpoint = %s, metadata = %s"
    " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s"
)
_DROP_BLOBS = """
delete from checkpoint_blobs b using unnest(%s::text[], %s::text[]) as seen (channel, version)
where b.thread_id = %s and b.checkpoint_ns = %s
    and b.channel = seen.channel and b.version <= seen.version collate "C"
"""
"""Newer values are those of checkpoints that were put behind it meanwhile."""
_WRITTEN = (
    "select 'w' as _kind, checkpoint_id, task_id, idx, channel, type, blob from checkpoint_writes"
    " where thread_id = %s and checkpoint_ns = %s and checkpoint_id = %s and task_id = %s"
)


class PostgresStore(PostgresSaver):
    """LangGraph's saver over our pool, with a fence."""

    sealed_columns: Sequence[SealedColumn] = (BLOBS, WRITES)

    def __init__(self, database: PostgresDatabase, seal: Seal, serde: SerializerProtocol | None = None) -> None:
        """Share the database's pool, and set the tables and the fence up; safe for many processes at once."""
        super().__init__(cast("Any", database.pool), serde=serde or Serializer())
        self._database = database
        self._seal = seal
        self._rows_as = _opened_rows(seal) if seal.is_on else dict_row
        with database.translated():
            self._set_up()

    def _set_up(self) -> None:
        """Build LangGraph's tables and the fence, one process at a time.

        LangGraph builds indexes `concurrently`: outside a transaction, and not while anybody waits inside a statement,
        who would be waited for in turn. So the lock is tried for again and again. Building waits for every transaction
        that is open, however long: given up in between, it would leave an index that is never used, nor made again.

        Raises:
            StorageError: If another session has the lock for longer than `SET_UP_SECONDS`.
        """
        with self._database.pool.connection() as connection:
            give_up = time.monotonic() + SET_UP_SECONDS
            while not _is_mine(connection):
                if time.monotonic() > give_up:
                    raise StorageError(_explain_wait(self._database.name, connection), database=self._database.name)
                time.sleep(LOCK_POLL_SECONDS)
            try:
                with _waiting_for_ever(connection):
                    PostgresSaver(connection).setup()
                for statement in load_statements("fence_postgres"):
                    connection.execute(cast("Any", statement))
            finally:
                connection.execute("select pg_advisory_unlock(%s)", (SET_UP_LOCK,))

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Generator[Cursor[DictRow]]:
        """Give LangGraph's code a cursor in a transaction of ours; a pipeline saves its round trips.

        What it reads is opened, row by row.
        """
        database = self._database
        with database.translated(), database.transaction(), database.connection() as connection:
            if pipeline and self.supports_pipeline:
                with connection.pipeline(), connection.cursor(binary=True, row_factory=self._rows_as) as cursor:
                    yield cursor
            else:
                with connection.cursor(binary=True, row_factory=self._rows_as) as cursor:
                    yield cursor

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Count up, with a random part that keeps the values of two branches apart.

        LangGraph's own versions have 50 characters, which each checkpoint holds for each channel, most of them twice. A
        thread that began with such versions goes on with them: versions are compared as texts.
        """
        if isinstance(current, str) and current.find(".") != VERSION_DIGITS:
            return super().get_next_version(current, channel)
        number = int(current[:VERSION_DIGITS]) + 1 if current else 1
        return f"{number:0{VERSION_DIGITS}}.{getrandbits(48):012x}"

    def store(self, batch: Batch) -> None:
        """Store a checkpoint with its writes."""
        place = (batch.thread_id, batch.namespace)
        stored, blobs = self._split(cast("dict[str, Any]", batch.checkpoint))
        versions = {name: version for name, version in batch.versions.items() if name in blobs}
        given = [row for task in batch.writes for row in self._rows(*place, str(batch.parent_id), task)]
        written = self._sealed(given)
        kept = self._blobs(*place, blobs, versions)
        values = {
            "thread": batch.thread_id,
            "namespace": batch.namespace,
            "id": batch.checkpoint["id"],
            "parent": batch.parent_id,
            "checkpoint": Jsonb(stored),
            "metadata": Jsonb({**batch.metadata}),
            **_columns(("tasks", "paths", "numbers", "channels", "kinds", "values"), [row[3:] for row in written]),
            **_columns(("blob_channels", "blob_versions", "blob_kinds", "blobs"), [row[2:] for row in kept]),
        }
        try:
            self._database.execute(lambda connection: connection.execute(_STORE, values))
        except Exception as error:
            if isinstance(error.__cause__ or error, UniqueViolation):
                raise ThreadMoved.of(batch.thread_id) from error
            raise

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what delta channels are built from, as it stood in one moment.

        LangGraph's own looks at every ancestor for a stored value. Where there is none, the writes are all that counts.
        """
        with self._database.reading():
            found = None if self._seal.is_on else self._written(config, channels)  # sealed, only values are believed
            return found or super().get_delta_channel_history(config=config, channels=channels)

    def _written(self, config: RunnableConfig, channels: Sequence[str]) -> Mapping[str, DeltaChannelHistory] | None:
        """Return what was written on all ancestors; None where one of them may hold a value."""
        given, newest = place_of(config), get_checkpoint_id(config)
        place, chain = (given["thread_id"], given.get("checkpoint_ns", "")), Chain(channels)
        with self._database.connection() as lent, lent.cursor(binary=True, row_factory=tuple_row) as cursor:
            line = {row[0]: row[1:] for row in cursor.execute(_PARENTS, (newest, *place))}
            chain.walk({checkpoint_id: parent for checkpoint_id, (parent, _) in line.items()}, newest)
            # The oldest is the thread's first one, unless `prune` made it that since the run began that counts on.
            if not chain.ids or not is_stored_nowhere(line[newest][1], channels) or not is_first(line[chain.ids[0]][1]):
                return None
            places = {checkpoint_id: number for number, checkpoint_id in enumerate(chain.ids)}
            rows = cursor.execute(_WRITES_ON, (*place, [*places], [*channels])).fetchall()
        return chain.history(((places[row[0]], *row[1:], row[0]) for row in rows), self.serde)

    def _rows(self, thread_id: str, namespace: str, checkpoint_id: str, task: TaskWrites) -> list[Any]:
        return self._dump_writes(thread_id, namespace, checkpoint_id, task.task_id, task.task_path, task.writes)

    def _sealed(self, rows: list[Any]) -> list[Any]:
        return [sealed_write(self._seal, row) for row in rows] if self._seal.is_on else rows

    def _blobs(self, thread_id: str, namespace: str, values: dict[str, Any], versions: dict[str, Any]) -> list[Any]:
        """Return the rows of channels' values."""
        rows = self._dump_blobs(thread_id, namespace, values, versions)
        return [(*row[:4], *self._seal.seal(row[4], row[5] or b"", name_blob(row[2], row[3]))) for row in rows]

    def _split(self, checkpoint: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Part a checkpoint into what its row holds and what goes into blobs, as LangGraph's own saver reads it back.

        Blobs alone are encrypted: then everything goes there.
        """
        values: dict[str, Any] = checkpoint["channel_values"]
        inline = {} if self._seal.is_on else {name: value for name, value in values.items() if _is_inline(value)}
        blobs = {name: value for name, value in values.items() if name not in inline}
        marks = {name: True for name, value in blobs.items() if isinstance(value, _DeltaSnapshot)}
        return {**checkpoint, "channel_values": {**inline, **marks}}, blobs

    def replace_history(self, head: Batch) -> int:
        """Keep this checkpoint and what was put behind it meanwhile."""
        stored, blobs = self._split(cast("dict[str, Any]", head.checkpoint))
        versions = {name: version for name, version in head.versions.items() if name in blobs}
        place = (head.thread_id, head.namespace)
        key = (*place, head.checkpoint["id"])
        older = "where thread_id = %s and checkpoint_ns = %s and checkpoint_id < %s"
        seen = {name: str(version) for name, version in head.checkpoint["channel_versions"].items()}
        with self._cursor() as cursor:
            if not cursor.execute(_SQUASH, (Jsonb(stored), Jsonb({**head.metadata}), *key)).rowcount:
                return 0
            deleted = cursor.execute(f"delete from checkpoints {older}", key).rowcount  # noqa: S608 -- fixed
            cursor.execute(f"delete from checkpoint_writes {older}", key)  # noqa: S608 -- fixed
            cursor.execute(_DROP_BLOBS, ([*seen], [*seen.values()], *place))
            cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, self._blobs(*place, blobs, versions))
        return deleted

    def add_writes(self, config: RunnableConfig, task: TaskWrites) -> bool:
        """Store what a task wrote."""
        given = place_of(config)
        key = (str(given["thread_id"]), str(given["checkpoint_ns"]), str(given["checkpoint_id"]))
        rows = self._rows(*key, task)
        if all(channel in WRITES_IDX_MAP for channel, _ in task.writes):
            with self._cursor(pipeline=True) as cursor:
                cursor.executemany(self.UPSERT_CHECKPOINT_WRITES_SQL, self._sealed(rows))
            return True
        with self._cursor(pipeline=True) as cursor:
            cursor.executemany(self.INSERT_CHECKPOINT_WRITES_SQL, self._sealed(rows))
            stored = cursor.rowcount
        if stored == len(rows):
            return True
        with self._cursor() as cursor:
            found = cursor.execute(_WRITTEN, (*key, task.task_id)).fetchall()
        there = {row["idx"]: (row["channel"], row["type"], bytes(row["blob"])) for row in found}
        return all(there.get(row[5]) == (row[6], row[7], bytes(row[8])) for row in rows)


def _columns(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
    """Turn rows into one array a column."""
    return {name: [row[number] for row in rows] for number, name in enumerate(names)}


def _is_mine(connection: Connection[DictRow]) -> bool:
    row = connection.execute("select pg_try_advisory_lock(%s) as mine", (SET_UP_LOCK,)).fetchone()
    return bool(row and row["mine"])


def _explain_wait(name: str, connection: Connection[DictRow]) -> str:
    """Say who keeps the tables from being set up, and what to do about it."""
    text = f"the checkpoints in {name} could not be set up: for {SET_UP_SECONDS:g} s "
    row = connection.execute(_HOLDER, (SET_UP_LOCK,)).fetchone()
    if row is None:
        return f"{text}other processes took turns at it; try again"
    who = f"backend {row['pid']} ({row['application_name'] or 'no name'}, {row['address'] or 'local'}, {row['state']})"
    return (
        f"{text}{who} has held the lock for it (advisory lock {SET_UP_LOCK}); wait if it builds indexes, which "
        f"pg_stat_activity shows, else end it: select pg_terminate_backend({row['pid']})"
    )


@contextmanager
def _waiting_for_ever(connection: Connection[DictRow]) -> Generator[None]:
    """Take the bound off what a statement waits for, within a block."""
    (before,) = connection.execute("show lock_timeout").fetchall()
    connection.execute("set lock_timeout = 0")
    try:
        yield
    finally:
        connection.execute("select set_config('lock_timeout', %s, false)", (before["lock_timeout"],))


def _is_inline(value: Any) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _opened_rows(seal: Seal) -> RowFactory[DictRow]:
    """Return what builds rows with every sealed value in them opened, by what the row says it is."""

    def factory(cursor: Any) -> RowMaker[DictRow]:
        build = dict_row(cursor)
        return lambda values: _opened(seal, build(values))

    return factory


def _opened(seal: Seal, row: DictRow) -> DictRow:
    """Open a row of LangGraph's: a checkpoint with its values and writes, or a single write (`w`) or value (`b`)."""
    if "pending_writes" in row:
        versions: dict[str, Any] = row["checkpoint"]["channel_versions"]
        row["channel_values"] = [_opened_value(seal, versions, item) for item in row["channel_values"] or ()]
        at = row["checkpoint_id"]
        row["pending_writes"] = [_opened_write(seal, at, item) for item in row["pending_writes"] or ()]
    elif row.get("_kind") == "w":
        name = name_write(row["checkpoint_id"], row["task_id"], row["idx"], row["channel"])
        row["type"], row["blob"] = seal.open(row["type"], row["blob"], name)
    elif row.get("_kind") == "b":
        row["type"], row["blob"] = seal.open(row["type"], row["blob"], name_blob(row["channel"], row["version"]))
    return row


def _opened_value(seal: Seal, versions: dict[str, Any], item: Sequence[bytes]) -> tuple[bytes, ...]:
    """Open a channel's value, as it stands in a checkpoint's row: channel, kind and value."""
    channel, kind, blob = item
    name = channel.decode()
    opened, value = seal.open(kind.decode(), blob, name_blob(name, versions[name]))
    return channel, opened.encode(), value


def _opened_write(seal: Seal, checkpoint_id: str, item: Sequence[bytes]) -> tuple[bytes, ...]:
    """Open a write, as it stands in a checkpoint's row: task, channel, kind, value, path and index."""
    task_id, channel, kind, blob, path, index = item
    name = name_write(checkpoint_id, task_id.decode(), int(index), channel.decode())
    opened, value = seal.open(kind.decode(), blob, name)
    return task_id, channel, opened.encode(), value, path, index
