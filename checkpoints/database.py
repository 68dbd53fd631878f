"""One SQLite connection, shared by saver and ledger; every write is a short transaction of its own."""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from loopwright.errors import StorageCorrupt, StorageError, VersionUnsupported

SCHEMA_VERSION = 1
"""Of the tables; kept in SQLite's `user_version`."""
BUSY_SECONDS = 30.0
"""How long a write waits for another process's write before it is an error."""

Row = dict[str, Any]


class Database:
    """A SQLite database: WAL, full synchronisation (a committed claim survives a power cut), one connection.

    All threads of the process share the connection under a lock. A second lock on the same thread is fine, so a
    transaction may call what opens one.
    """

    def __init__(self, path: str) -> None:
        """Open the file, or a private database in memory for `":memory:"`.

        Raises:
            StorageError: If the file cannot be opened; its subclasses say more.
        """
        self.path = path
        self.lock = threading.RLock()
        self._depth = 0
        self._queries = load_queries()
        self.connection = _connect(path)
        with translated(path):
            self._set_up()

    @property
    def is_memory(self) -> bool:
        """Whether a call costs no input or output, so that it needs no thread of its own."""
        return self.path == ":memory:"

    def _set_up(self) -> None:
        """Bring the tables up to date; safe for many processes at once, and idempotent."""
        if not self.is_memory:
            self.connection.execute("pragma journal_mode = wal")
        self.connection.execute("pragma synchronous = full")
        found = int(self.connection.execute("pragma user_version").fetchone()[0])
        if found > SCHEMA_VERSION:
            text = f"{self.path} was written by a newer loopwright (schema {found}, this one knows {SCHEMA_VERSION}); "
            raise VersionUnsupported(text + "upgrade loopwright, nothing was changed", found=found)
        if found == SCHEMA_VERSION:
            return
        with self.transaction() as cursor:
            found = int(cursor.execute("pragma user_version").fetchone()[0])
            for version in range(found + 1, SCHEMA_VERSION + 1):
                for statement in _migration(version):
                    cursor.execute(statement)
                cursor.execute(f"pragma user_version = {version}")

    @contextmanager
    def transaction(self) -> Generator[sqlite3.Cursor]:
        """Run a block atomically; nested blocks join the outer one.

        `begin immediate` takes the write lock at once: a transaction that first reads and then writes could not be
        waited for by the busy timeout.
        """
        with self.lock:
            cursor = self.connection.cursor()
            outermost = self._depth == 0
            if outermost:
                cursor.execute("begin immediate")
            self._depth += 1
            try:
                yield cursor
            except BaseException:
                if outermost:
                    self.connection.rollback()
                raise
            else:
                if outermost:
                    self.connection.commit()
            finally:
                self._depth -= 1
                cursor.close()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Cursor]:
        """Run a block that only reads."""
        with self.lock:
            cursor = self.connection.cursor()
            try:
                yield cursor
            finally:
                cursor.close()

    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that only reads."""
        with translated(self.path), self.reading() as cursor:
            return _rows(cursor.execute(self._queries[name], values))

    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes, in the open transaction or in one of its own; returns what it returned."""
        with translated(self.path), self.transaction() as cursor:
            return _rows(cursor.execute(self._queries[name], values))

    def close(self) -> None:
        """Close the connection; closing twice is fine."""
        with self.lock:
            self.connection.close()


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
        reason = str(error)
        if "readonly" in reason:
            text = f"the database {path!r} is read-only; make the file and its folder writable, or choose another"
        elif "locked" in reason:
            text = f"the database {path!r} stayed locked for {BUSY_SECONDS:g} s by another process; try again"
        else:
            text = f"the database {path!r} cannot be used: {reason}"
        raise StorageError(text, path=path) from error
    except sqlite3.DatabaseError as error:
        text = f"{path!r} is no usable SQLite database ({error}); restore it from a backup, or choose another file"
        raise StorageCorrupt(text, path=path) from error


@cache
def load_queries() -> dict[str, str]:
    """Read `sql/queries.sql`: each query by its name."""
    text = _sql("queries.sql")
    parts = re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)[1:]
    return {name: body.strip().rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}


@cache
def _migration(version: int) -> tuple[str, ...]:
    folder = resources.files(__package__ or "loopwright.checkpoints") / "sql"
    name = next(file.name for file in folder.iterdir() if file.name.startswith(f"{version:04}_"))
    statements = re.sub(r"--[^\n]*", "", _sql(name)).split(";")
    return tuple(statement.strip() for statement in statements if statement.strip())


def _sql(name: str) -> str:
    return (resources.files(__package__ or "loopwright.checkpoints") / "sql" / name).read_text(encoding="utf-8")
