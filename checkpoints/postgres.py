"""PostgreSQL: a pool of connections; a transaction belongs to the thread that opened it."""

from __future__ import annotations

import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, LiteralString, cast

import psycopg
from psycopg import Connection
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool, PoolTimeout

from loopwright.errors import StorageError

from .database import Database, Row, load_queries, load_statements, migrate

POOL_SECONDS = 30.0
"""How long a caller waits for a free connection."""
LOCK = 0x6C6F6F70
"""Of the advisory lock that `serial` takes; the letters `loop`."""


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
        self._queries = {name: _with_markers(text) for name, text in load_queries().items()}
        self._local = threading.local()
        self.pool: ConnectionPool[Any] = ConnectionPool(
            url,
            min_size=1,
            max_size=pool_size,
            timeout=POOL_SECONDS,
            kwargs={"autocommit": True, "row_factory": dict_row, "prepare_threshold": 0},
            check=ConnectionPool.check_connection,
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
        with self.translated(), self.pool.connection() as connection, connection.transaction():
            self._local.connection, self._local.is_serial = connection, False
            try:
                yield
            finally:
                self._local.connection = None

    @contextmanager
    def serial(self) -> Generator[None]:
        """Run a block after all other such blocks: they hold one advisory lock until they commit."""
        with self.transaction():
            if not self._local.is_serial:
                self._local.connection.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
                self._local.is_serial = True
            yield

    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that only reads; tried once more on a fresh connection if the server had closed it."""
        return self._run(name, values)

    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes."""
        return self._run(name, values)

    def _run(self, name: str, values: dict[str, Any]) -> list[Row]:
        with self.translated(), self.connection() as connection:
            cursor = connection.execute(cast("LiteralString", self._queries[name]), values)  # type: ignore[redundant-cast]  # pyright wants it
            return [] if cursor.description is None else [*cursor.fetchall()]

    @contextmanager
    def translated(self) -> Generator[None]:
        """Turn psycopg's errors into ours, each with the way out."""
        try:
            yield
        except PoolTimeout as error:
            text = f"no connection to {self.name} was free within {POOL_SECONDS:g} s; try again, or raise pool_size"
            raise StorageError(text, database=self.name) from error
        except psycopg.Error as error:
            text = f"the database {self.name} cannot be used: {_first_line(error)}"
            raise StorageError(text, database=self.name) from error

    def close(self) -> None:
        """Close the pool."""
        self.pool.close()


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
