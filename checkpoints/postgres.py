"""PostgreSQL: a pool of connections; a transaction belongs to the thread that opened it."""

from __future__ import annotations

import math
import re
import select
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, LiteralString, TypeVar, cast

import psycopg
from psycopg import Connection, Cursor
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import AdminShutdown, LockNotAvailable
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from loopwright.errors import StorageError

from .database import Call, Database, Row, load_queries, load_statements, migrate, storable_values
from .server_clock import ServerClock

T = TypeVar("T")

POOL_SECONDS = 30.0
"""How long a caller waits for a free connection."""
LOCK_SECONDS = 30.0
"""How long a statement waits for what another transaction holds before it is an error."""
STALLED_SECONDS = 15.0
"""How long a transaction may lie idle. Ours never do, unless their process was stopped or its machine is gone; all
others would wait for it, until the server learns of that after hours."""
_TAKE_LOCK: LiteralString = "select pg_advisory_xact_lock(1819242352)"  # 0x6C6F6F70: the letters `loop`
_BEGIN_SERIAL: LiteralString = f"begin; {_TAKE_LOCK}; select extract(epoch from clock_timestamp())::float8 as now"  # noqa: S608 -- fixed
"""One round trip; the server's clock is read when the lock is there."""
_SETTINGS = """
select set_config(name, value, false) from (values
    ('lock_timeout', %s, current_setting('lock_timeout') = '0'),
    ('idle_in_transaction_session_timeout', %s, current_setting('idle_in_transaction_session_timeout') = '0'),
    ('default_transaction_isolation', 'read committed', true),
    ('synchronous_commit', 'on',
        exists (select from pg_settings where name = 'synchronous_commit' and setting = 'off' and source <> 'client'))
) as wanted (name, value, applies) where applies
"""
"""Bounds that the server, the role or the URL has set hold. A transaction that waits for the lock must see what was
committed meanwhile, whatever isolation is the default. And a claim that is committed must survive the server's crash,
unless the URL says otherwise."""
IDLE_SECONDS = 10.0
"""A connection that lay idle for longer is asked whether it still works, before it is lent out."""


class _PooledConnection(Connection[DictRow]):
    """A connection that knows when it was last lent out."""

    lent_at = -math.inf


def _check(connection: _PooledConnection) -> None:
    """Look whether a connection can be lent out; asking it would be a round trip for every statement.

    A server that has closed a connection has said so on it: there is something to read where nothing was asked for.
    """
    idle_since, connection.lent_at = connection.lent_at, time.monotonic()
    if connection.lent_at - idle_since > IDLE_SECONDS or _is_readable(connection.fileno()):
        ConnectionPool.check_connection(cast("Connection[Any]", connection))


def _set(connection: Connection[Any]) -> None:
    """Say to a new connection what must hold in it: above all, that nobody waits for ever."""
    connection.execute(_SETTINGS, [f"{seconds * 1000:.0f}" for seconds in (LOCK_SECONDS, STALLED_SECONDS)])


def _is_readable(descriptor: int) -> bool:
    if not hasattr(select, "poll"):  # Windows, where `select` takes any number of a descriptor
        return bool(select.select([descriptor], [], [], 0)[0])
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


class PostgresDatabase(Database):
    """A PostgreSQL database.

    A connection that the server closed while it was idle is replaced when it is next asked for; so a server may be
    restarted between a pause and its resume.
    """

    def __init__(self, url: str, *, pool_size: int) -> None:
        """Open the pool, and bring the tables up to date.

        Raises:
            StorageError: If the server cannot be reached, or refuses.
        """
        self.name = _public_name(url)
        self._queries = {name: _with_markers(text) for name, text in load_queries("postgres").items()}
        self._local = threading.local()
        self._clock = ServerClock()
        self.pool: ConnectionPool[Any] = ConnectionPool(
            url,
            min_size=1,
            max_size=pool_size,
            timeout=POOL_SECONDS,
            kwargs={"autocommit": True, "row_factory": dict_row, "prepare_threshold": 0},
            connection_class=_PooledConnection,
            configure=_set,
            check=_check,
            open=False,
        )
        try:
            with self.translated():
                _reach(url)
                self.pool.open(wait=True)
                self._set_up()
        except BaseException:
            self.pool.close()
            raise

    def _set_up(self) -> None:
        """Safe for many processes at once, and idempotent."""
        with self.serial(), self.connection() as connection:
            connection.execute("create table if not exists lw_schema (version integer primary key)")
            row = connection.execute("select coalesce(max(version), 0) as version from lw_schema").fetchone()
            note = "insert into lw_schema (version) values (%s)"
            migrate(
                self.name,
                row["version"] if row else 0,
                lambda statement: connection.execute(cast("LiteralString", statement)),  # type: ignore[redundant-cast]  # pyright wants it
                lambda version: connection.execute(note, (version,)),
            )
            for statement in load_statements("append_only_postgres"):
                connection.execute(cast("LiteralString", statement))  # type: ignore[redundant-cast]  # pyright wants it

    @contextmanager
    def connection(self) -> Generator[Connection[DictRow]]:
        """Give the open transaction's connection, or one of the pool."""
        own: Connection[DictRow] | None = getattr(self._local, "connection", None)
        if own is not None:
            yield own
            return
        with self.pool.connection() as connection:
            yield connection

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Run a block atomically."""
        if getattr(self._local, "connection", None) is not None:
            yield
            return
        with self._begun("begin", is_serial=False):
            yield

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read within a block what stood there at its first query, whatever others write meanwhile."""
        if getattr(self._local, "connection", None) is not None:
            yield
            return
        with self._begun("begin isolation level repeatable read read only", is_serial=False):
            yield

    @contextmanager
    def serial(self) -> Generator[None]:
        """Run a block after all other such blocks: they hold one advisory lock until they commit."""
        if getattr(self._local, "connection", None) is None:
            with self._begun(_BEGIN_SERIAL, is_serial=True):
                yield
            return
        if not self._local.is_serial:
            self._local.connection.execute(_TAKE_LOCK)
            self._local.is_serial = True
        yield

    @contextmanager
    def _begun(self, begin: LiteralString, *, is_serial: bool) -> Generator[None]:
        with self.translated():
            connection = self._begin(begin)
            self._local.connection, self._local.is_serial = connection, is_serial
            try:
                yield
            except BaseException:
                with suppress(psycopg.Error):  # a connection that is gone has nothing to roll back
                    connection.rollback()
                raise
            else:
                connection.commit()
            finally:
                self._local.connection = None
                self.pool.putconn(connection)

    def _begin(self, begin: LiteralString) -> Connection[DictRow]:
        """Lend a connection with a transaction begun on it; another one where the server was just closing it."""
        for left in reversed(range(self.pool.max_size + 1)):
            connection: Connection[DictRow] = self.pool.getconn()
            try:
                self._hear(connection.execute(begin, prepare=False))
            except BaseException:
                is_gone = connection.broken
                self.pool.putconn(connection)
                if not (is_gone and left):
                    raise
            else:
                return connection
        raise RuntimeError("the loop above returns or raises")

    def _hear(self, begun: Cursor[DictRow]) -> None:
        """Take the server's time from what began a transaction, if it was asked."""
        while begun.nextset():
            pass
        for row in _rows(begun):
            self._clock.hear(row["now"])

    def now(self) -> float:
        """Return seconds since the epoch, by the server's clock."""
        return self._clock()

    def hear_clock(self) -> None:
        """Ask the server."""
        (row,) = self.query("server_time")
        self._clock.hear(row["now"])

    def execute(self, work: Callable[[Connection[DictRow]], T]) -> T:
        """Do what is one transaction in itself, in the open one or on a connection of the pool.

        Where the server ended the connection instead, nothing was done: it is tried again on another one.
        """
        with self.translated():
            own: Connection[DictRow] | None = getattr(self._local, "connection", None)
            if own is not None:
                return work(own)
            for _ in range(self.pool.max_size):
                with suppress(AdminShutdown), self.pool.connection() as connection:
                    return work(connection)
            with self.pool.connection() as connection:
                return work(connection)

    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that only reads."""
        return self._run(name, values)

    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes."""
        return self._run(name, values)

    def together(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run named queries atomically; outside a transaction they travel together, and end in one commit."""
        return self.execute(partial(self._pipelined, calls))

    def _pipelined(self, calls: Sequence[Call], connection: Connection[DictRow]) -> list[list[Row]]:
        with connection.pipeline():
            cursors = [connection.execute(self._text(name), storable_values(values)) for name, values in calls]
        return [_rows(cursor) for cursor in cursors]

    def _run(self, name: str, values: dict[str, Any]) -> list[Row]:
        return self.execute(lambda connection: _rows(connection.execute(self._text(name), storable_values(values))))

    def _text(self, name: str) -> LiteralString:
        return cast("LiteralString", self._queries[name])  # type: ignore[redundant-cast]  # pyright wants it

    @contextmanager
    def translated(self) -> Generator[None]:
        """Turn psycopg's errors into ours, each with the way out."""
        try:
            yield
        except PoolTimeout as error:
            text = f"no connection to {self.name} was free within {POOL_SECONDS:g} s; try again, or raise pool_size"
            raise StorageError(text, database=self.name) from error
        except LockNotAvailable as error:
            text = (
                f"the database {self.name} stayed locked for {LOCK_SECONDS:g} s by another session; try again, or look "
            )
            text += "in pg_stat_activity for one that is idle in a transaction"
            raise StorageError(text, database=self.name) from error
        except psycopg.Error as error:
            text = f"the database {self.name} cannot be used: {_first_line(error)}"
            raise StorageError(text, database=self.name) from error

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()


def _rows(cursor: Cursor[DictRow]) -> list[Row]:
    return [] if cursor.description is None else [*cursor.fetchall()]


def _reach(url: str) -> None:
    """Connect once: the pool would try for long, and then say only that it timed out."""
    psycopg.connect(url, connect_timeout=10).close()


def _public_name(url: str) -> str:
    """Name the database without its password."""
    try:
        parts = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise StorageError(f"cannot read the PostgreSQL URL: {_first_line(error)}") from error
    return f"postgresql://{parts.get('host', '')}:{parts.get('port', 5432)}/{parts.get('dbname', '')}"


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def _with_markers(text: str) -> str:
    """Write the parameters as psycopg wants them."""
    return re.sub(r"(?<!:):(\w+)", r"%(\1)s", text)
