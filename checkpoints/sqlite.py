"""One SQLite connection, shared by saver and ledger; every write is a short transaction of its own."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from loopwright.errors import StorageCorrupt, StorageError

from .database import (
    SCHEMA_VERSION,
    Call,
    Database,
    Row,
    load_queries,
    load_statements,
    migrate,
    refuse_newer,
    storable_values,
)

BUSY_SECONDS = 30.0
"""How long a write waits for another process's write before it is an error."""
WAL_POLL_SECONDS = 0.02
CACHE_KIB = 16_384
"""Of the database at most so much is kept in memory: a long thread is read again and again as a run goes on."""


class SqliteDatabase(Database):
    """A SQLite database: WAL, full synchronisation (a committed claim survives a power cut), one connection.

    All threads of the process share the connection under a lock.
    """

    def __init__(self, path: str) -> None:
        """Open the file, or a private database in memory for `":memory:"`, and bring its tables up to date.

        Raises:
            StorageError: If the file cannot be opened; its subclasses say more.
        """
        self.name = self.path = path
        self.is_memory = path == ":memory:"
        self.lock = threading.RLock()
        self._depth = 0
        self._queries = load_queries("sqlite")
        self.connection = _connect(path)
        try:
            with translated(path):
                self._set_up()
        except BaseException:
            self.connection.close()
            raise

    def _set_up(self) -> None:
        """Safe for many processes at once, and idempotent."""
        found = self._version()
        refuse_newer(self.path, found)
        if not self.is_memory:
            self._use_wal()
        self.connection.execute("pragma synchronous = full")
        self.connection.execute(f"pragma cache_size = -{CACHE_KIB}")
        if found < SCHEMA_VERSION:
            with self.cursor(transaction=True) as cursor:
                note = "pragma user_version = {}".format
                migrate(self.path, self._version(), cursor.execute, lambda version: cursor.execute(note(version)))
        # A log in memory is its process's own, and is forgotten with each run that nothing can resume.
        if not self.is_memory and not self._is_append_only():
            with self.cursor(transaction=True) as cursor:
                for statement in load_statements("append_only_sqlite"):
                    cursor.execute(statement)

    def _is_append_only(self) -> bool:
        query = "select count(*) from sqlite_master where type = 'trigger' and tbl_name = 'lw_log'"
        return int(self.connection.execute(query).fetchone()[0]) == len(load_statements("append_only_sqlite"))

    def _use_wal(self) -> None:
        """Switch the file's journal; SQLite does not wait for others here, whatever its busy timeout says."""
        give_up = time.monotonic() + BUSY_SECONDS
        while True:
            try:
                self.connection.execute("pragma journal_mode = wal")
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > give_up:
                    raise
                time.sleep(WAL_POLL_SECONDS)
            else:
                return

    def _version(self) -> int:
        return int(self.connection.execute("pragma user_version").fetchone()[0])

    @contextmanager
    def cursor(self, *, transaction: bool) -> Generator[sqlite3.Cursor]:
        """Give a cursor, in a transaction or for reading.

        `begin immediate` takes the write lock at once: a transaction that first reads and then writes could not be
        waited for by the busy timeout.
        """
        with self.lock:
            cursor = self.connection.cursor()
            begins = transaction and self._depth == 0
            self._depth += transaction
            try:
                if begins:  # in here: whatever interrupts what follows, nothing stays open
                    cursor.execute("begin immediate")
                yield cursor
                if begins:
                    self.connection.commit()
            except BaseException:
                if begins:
                    self.connection.rollback()
                raise
            finally:
                self._depth -= transaction
                cursor.close()

    @contextmanager
    def reading(self) -> Generator[None]:
        """Read within a block what stood there when it began, whatever other processes write meanwhile."""
        with translated(self.path), self.lock:
            if self._depth:
                yield
                return
            self.connection.execute("begin")
            try:
                yield
            finally:
                self.connection.rollback()

    @contextmanager
    def transaction(self) -> Generator[None]:
        """Run a block atomically."""
        with translated(self.path), self.cursor(transaction=True):
            yield

    def serial(self) -> AbstractContextManager[None]:
        """SQLite has one writer at a time: each transaction comes after all others."""
        return self.transaction()

    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that only reads."""
        with translated(self.path), self.lock:
            return _rows(_execute(self.connection, self._queries[name], values))

    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes."""
        with translated(self.path), self.lock:
            if self._depth:  # whoever holds the lock has opened it
                return _rows(_execute(self.connection, self._queries[name], values))
            with self.cursor(transaction=True) as cursor:
                return _rows(_execute(cursor, self._queries[name], values))

    def together(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run named queries in one transaction."""
        with self.transaction():
            return [_rows(_execute(self.connection, self._queries[name], values)) for name, values in calls]

    def hear_clock(self) -> None:
        """Ask nobody: all who share a file share this machine's clock."""

    def close(self) -> None:
        """Close the connection."""
        with self.lock:
            self.connection.close()


def _execute(target: sqlite3.Connection | sqlite3.Cursor, query: str, values: dict[str, Any]) -> sqlite3.Cursor:
    return target.execute(query, storable_values(values))


def _rows(cursor: sqlite3.Cursor) -> list[Row]:
    if cursor.description is None:
        return []
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def _connect(path: str) -> sqlite3.Connection:
    if path != ":memory:":
        folder = Path(path).resolve().parent
        if not folder.is_dir():
            text = f"no folder {str(folder)!r} for the database {Path(path).name!r}; create it, or choose another path"
            raise StorageError(text, path=path)
        if Path(path).is_dir():
            raise StorageError(f"{path!r} is a folder, not a database file", path=path)
    try:
        return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    except sqlite3.Error as error:
        raise StorageError(f"cannot open the database {path!r}: {error}", path=path) from error


@contextmanager
def translated(path: str) -> Generator[None]:
    """Turn SQLite's errors into ours, each with the way out."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise StorageError(_explain(path, str(error)), path=path) from error
    except (sqlite3.ProgrammingError, sqlite3.IntegrityError, sqlite3.InterfaceError) as error:
        raise StorageError(f"the database {path!r} was used wrongly: {error}", path=path) from error
    except sqlite3.DatabaseError as error:
        text = f"{path!r} is no usable SQLite database ({error}); restore it from a backup, or choose another file"
        raise StorageCorrupt(text, path=path) from error


def _explain(path: str, reason: str) -> str:
    if "readonly" in reason:
        return f"the database {path!r} is read-only; make the file and its folder writable, or choose another"
    if "locked" in reason:
        return f"the database {path!r} stayed locked for {BUSY_SECONDS:g} s by another process; try again"
    return f"the database {path!r} cannot be used: {reason}"
