"""Checkpoints in SQLite: LangGraph's tables, and one child a checkpoint."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    Checkpoint,
    CheckpointTuple,
    DeltaChannelHistory,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.utils import search_where

from loopwright.errors import ThreadMoved

from .database import load_statements
from .history import Chain
from .metadata import is_stored_nowhere
from .serializer import Serializer
from .sqlite import SqliteDatabase, translated
from .store import (
    STATES,
    WRITES,
    Batch,
    Seal,
    SealedColumn,
    TaskWrites,
    WriteRow,
    name_checkpoint,
    name_write,
    place_of,
    sealed_write,
)

_MOVED = "this thread has moved on"
_FENCE = ("lw_line", "lw_one_child", "lw_one_root")
_PUT = (
    "insert or replace into checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type,"
    " checkpoint, metadata) values (?, ?, ?, ?, ?, ?, ?)"
)
_WRITE = (
    "insert or {} into writes (thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value)"
    " values (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_SQUASH = (
    "update checkpoints set parent_checkpoint_id = null, type = ?, checkpoint = ?, metadata = ?"
    " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?"
)
_WRITTEN = (
    "select idx, channel, type, value, task_id, checkpoint_id from writes"
    " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ? and task_id = ?"
)
# `cross join` fixes the order of the loops: one look-up by primary key for each ancestor.
_ANCESTORS = """
with recursive chain (id, parent, metadata) as (
    select checkpoint_id, parent_checkpoint_id, metadata from checkpoints
    where thread_id = ?1 and checkpoint_ns = ?2 and checkpoint_id = ?3
    union all
    select c.checkpoint_id, c.parent_checkpoint_id, c.metadata from chain cross join checkpoints c
    where c.thread_id = ?1 and c.checkpoint_ns = ?2 and c.checkpoint_id = chain.parent
)
select id, json_extract(cast(metadata as text), '$.counters_since_delta_snapshot') from chain limit -1 offset 1
"""
_LINE = "select checkpoint_id, parent_checkpoint_id from checkpoints where thread_id = ? and checkpoint_ns = ?"
_METADATA = "select metadata from checkpoints where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?"
_CHECKPOINT = (
    "select type, checkpoint, checkpoint_id from checkpoints"
    " where thread_id = ? and checkpoint_ns = ? and checkpoint_id = ?"
)
_WRITES_ON = """
select given.key, w.channel, w.task_path, w.task_id, w.idx, w.type, w.value, w.checkpoint_id
from json_each(?1) as given cross join writes w
where w.thread_id = ?2 and w.checkpoint_ns = ?3 and w.checkpoint_id = given.value
    and w.channel in (select value from json_each(?4))
"""
_WRITES_BEFORE = """
select checkpoint_id, channel, task_path, task_id, idx, type, value, checkpoint_id from writes
where thread_id = ? and checkpoint_ns = ? and checkpoint_id < ? and channel in (select value from json_each(?))
"""
_PLACE = ("thread_id", "checkpoint_ns", "checkpoint_id")


class _Opener:
    """Opens the sealed value of each row that a cursor reads, by what the row says it is."""

    def __init__(self, seal: Seal) -> None:
        """Take what opens."""
        self._seal = seal
        self._checkpoint_id = ""

    def __call__(self, cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the row with its value opened; LangGraph asks for a checkpoint's writes right behind it."""
        values = dict(zip((column[0] for column in cursor.description), row, strict=True))
        if "type" not in values:
            return row
        self._checkpoint_id = values.get("checkpoint_id", self._checkpoint_id)
        held = "checkpoint" if "checkpoint" in values else "value"
        if held == "checkpoint":
            name = name_checkpoint(self._checkpoint_id)
        else:
            name = name_write(self._checkpoint_id, values["task_id"], values["idx"], values["channel"])
        values["type"], values[held] = self._seal.open(values["type"], values[held], name)
        return tuple(values.values())


class SqliteStore(SqliteSaver):
    """LangGraph's saver over our connection, with a fence."""

    sealed_columns: Sequence[SealedColumn] = (STATES, WRITES)

    def __init__(self, database: SqliteDatabase, seal: Seal, serde: SerializerProtocol | None = None) -> None:
        """Share the database's connection and lock, and set the tables and the fence up."""
        super().__init__(database.connection, serde=serde or Serializer())
        self._database = database
        self._seal = seal
        with translated(database.path), database.lock:
            self.setup()
            if not self._is_fenced():
                with database.cursor(transaction=True) as cursor:
                    for statement in load_statements("fence_sqlite"):
                        cursor.execute(statement)

    def _is_fenced(self) -> bool:
        found = self.conn.execute("select count(*) from sqlite_master where name in (?, ?, ?)", _FENCE).fetchone()
        return bool(found[0] == len(_FENCE))

    @contextmanager
    def cursor(self, transaction: bool = True) -> Generator[sqlite3.Cursor]:  # noqa: FBT001, FBT002 -- LangGraph's signature
        """Give LangGraph's code a cursor in a transaction of ours; what it reads is opened, row by row."""
        with translated(self._database.path), self._database.cursor(transaction=transaction) as cursor:
            if self._seal.is_on:
                cursor.row_factory = _Opener(self._seal)
            yield cursor

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 -- LangGraph's name
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Return checkpoints, newest first; sealed ones are read one by one: LangGraph's query takes its own cursor."""
        if not self._seal.is_on:
            yield from super().list(config, filter=filter, before=before, limit=limit)
            return
        where, values = search_where(config, filter, before)
        wanted = f"select thread_id, checkpoint_ns, checkpoint_id from checkpoints {where} order by checkpoint_id desc"  # noqa: S608 -- LangGraph's
        with self.cursor(transaction=False) as cursor:
            places = cursor.execute(f"{wanted} limit ?", (*values, -1 if limit is None else limit)).fetchall()
        for place in places:
            with self._seal.at(place[0]):
                found = self.get_tuple({"configurable": dict(zip(_PLACE, place, strict=True))})
            if found is not None:
                yield found

    def get_next_version(self, current: Any, channel: None) -> Any:  # noqa: ARG002 -- LangGraph's signature
        """Count up: LangGraph's own versions carry 48 characters of padding into every checkpoint, per channel."""
        if isinstance(current, str):  # written by LangGraph's saver
            return int(current.split(".")[0]) + 1
        return (current or 0) + 1

    def store(self, batch: Batch) -> None:
        """Store a checkpoint with its writes."""
        place = (batch.thread_id, batch.namespace)
        kind, blob = self._dump(batch.checkpoint)
        text = json.dumps(batch.metadata, ensure_ascii=False).encode("utf-8", "ignore")
        rows = [row for task in batch.writes for row in self._rows(*place, str(batch.parent_id), task)]
        try:
            with self.cursor() as cursor:
                if rows:
                    cursor.executemany(_WRITE.format("ignore"), self._sealed(rows))
                cursor.execute(_PUT, (*place, batch.checkpoint["id"], batch.parent_id, kind, blob, text))
        except Exception as error:
            if _MOVED in str(error.__cause__ or error):
                raise ThreadMoved.of(batch.thread_id) from error
            raise

    def _dump(self, checkpoint: Checkpoint) -> tuple[str, bytes]:
        return self._seal.seal(*self.serde.dumps_typed(checkpoint), name_checkpoint(checkpoint["id"]))

    def _sealed(self, rows: Sequence[WriteRow]) -> Iterable[WriteRow]:
        return (sealed_write(self._seal, row) for row in rows) if self._seal.is_on else rows

    def _rows(self, thread_id: str, namespace: str, checkpoint_id: str, task: TaskWrites) -> Iterator[WriteRow]:
        for index, (channel, value) in enumerate(task.writes):
            number = WRITES_IDX_MAP.get(channel, index)
            where = (thread_id, namespace, checkpoint_id, task.task_id, task.task_path, number, channel)
            yield (*where, *self.serde.dumps_typed(value))

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return what delta channels are built from, without deserializing every ancestor as LangGraph's saver does."""
        chain, given = Chain(channels), place_of(config)
        newest = get_checkpoint_id(config) or self._newest_id(config)
        place, wanted = (str(given["thread_id"]), str(given.get("checkpoint_ns", ""))), json.dumps([*channels])
        reading = self.cursor(transaction=False)
        with self._database.reading(), reading as cursor, self.cursor(transaction=False) as other:
            found = other.execute(_METADATA, (*place, newest)).fetchone()
            # Under encryption, only what is sealed is believed: then each ancestor is looked into.
            if not self._seal.is_on and found is not None and is_stored_nowhere(json.loads(found[0]), channels):
                line = dict(cursor.execute(_LINE, place).fetchall())
                chain.walk(line, newest)
                if chain.ids:  # `prune` may have stored them there since the run began that counts on
                    chain.look_into(self._values(other, place, chain.ids[0]))
                if chain.is_straight(line, newest):
                    before = cursor.execute(_WRITES_BEFORE, (*place, newest, wanted))
                    return chain.history(chain.of_ancestors(before), self.serde)
            else:
                self._walk(chain, place, newest, cursor, other)
            rows = other.execute(_WRITES_ON, (json.dumps(chain.ids), *place, wanted)).fetchall()
        return chain.history(rows, self.serde)

    def _walk(
        self, chain: Chain, place: tuple[str, str], newest: str | None, cursor: sqlite3.Cursor, other: sqlite3.Cursor
    ) -> None:
        """Walk to where every channel has its stored value; one cursor walks, the other one looks."""
        for checkpoint_id, counters in cursor.execute(_ANCESTORS, (*place, newest)):
            if chain.is_over or not chain.enter(checkpoint_id):
                break
            if self._seal.is_on or chain.may_hold(counters):
                chain.look_into(self._values(other, place, checkpoint_id))

    def _values(self, cursor: sqlite3.Cursor, place: tuple[str, str], checkpoint_id: str) -> Mapping[str, Any]:
        kind, blob, _ = cursor.execute(_CHECKPOINT, (*place, checkpoint_id)).fetchone()
        values: Mapping[str, Any] = self.serde.loads_typed((kind, blob))["channel_values"]
        return values

    def _newest_id(self, config: RunnableConfig) -> str | None:
        found = self.get_tuple(config)
        return found.checkpoint["id"] if found else None

    def replace_history(self, head: Batch) -> int:
        """Keep this checkpoint and what was put behind it meanwhile."""
        kind, blob = self._dump(head.checkpoint)
        text = json.dumps(head.metadata, ensure_ascii=False).encode("utf-8", "ignore")
        place = (head.thread_id, head.namespace, head.checkpoint["id"])
        older = "where thread_id = ? and checkpoint_ns = ? and checkpoint_id < ?"
        with self.cursor() as cursor:
            if not cursor.execute(_SQUASH, (kind, blob, text, *place)).rowcount:
                return 0
            deleted = cursor.execute(f"delete from checkpoints {older}", place).rowcount  # noqa: S608 -- fixed
            cursor.execute(f"delete from writes {older}", place)  # noqa: S608 -- fixed
        return deleted

    def add_writes(self, config: RunnableConfig, task: TaskWrites) -> bool:
        """Store what a task wrote."""
        given = place_of(config)
        key = (str(given["thread_id"]), str(given["checkpoint_ns"]), str(given["checkpoint_id"]))
        rows = [*self._rows(*key, task)]
        if all(channel in WRITES_IDX_MAP for channel, _ in task.writes):
            with self.cursor() as cursor:
                cursor.executemany(_WRITE.format("replace"), self._sealed(rows))
            return True
        with self.cursor() as cursor:
            cursor.executemany(_WRITE.format("ignore"), self._sealed(rows))
            if cursor.rowcount == len(rows):
                return True
            there = {row[0]: row[1:4] for row in cursor.execute(_WRITTEN, (*key, task.task_id))}
        return all(there.get(row[5]) == row[6:] for row in rows)
