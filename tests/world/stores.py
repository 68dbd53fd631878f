"""The kinds of store behind one: so that one test holds for all, and can look below."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import strategies as st

from loopwright import Checkpoints, open_checkpoints
from loopwright.testing import ManualClock

from .postgres import Database

STORES = ("memory", "sqlite", "postgres")


@dataclass(frozen=True, slots=True)
class Store:
    """Where one test's runs are kept."""

    kind: str
    url: str
    path: Path | None = None
    """The file, of SQLite."""
    postgres: Database | None = None

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """Run one statement on a connection that knows nothing of loopwright; it commits."""
        if self.postgres is not None:
            return self.postgres.execute(statement)
        assert self.path is not None, "a store in memory has no other connection"
        with closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
            return connection.execute(statement).fetchall()

    def run(self, statements: Sequence[str]) -> None:
        """Run several statements."""
        for statement in statements:
            self.execute(statement)

    def text(self) -> str:
        """Return all that is stored: the bytes of the files, or every row."""
        if self.postgres is not None:
            return self.postgres.text()
        assert self.path is not None
        files = sorted(self.path.parent.glob(f"{self.path.name}*"))
        return "\n".join(file.read_bytes().decode("latin-1") for file in files)

    def drop_log_triggers(self) -> None:
        """Do what an attacker with all rights would do first."""
        on = " on lw_log" if self.kind == "postgres" else ""
        names = [
            ("lw_log_append_only", "lw_log_no_truncate"),
            ("lw_log_no_update", "lw_log_no_delete", "lw_log_no_replace"),
        ]
        self.run([f"drop trigger {name}{on}" for name in names[self.kind == "sqlite"]])


def open_store(request: pytest.FixtureRequest, folder: Path) -> Store:
    """Lend the kind of store that the fixture's parameter names."""
    if request.param == "postgres":
        database: Database = request.getfixturevalue("postgres")
        return Store("postgres", database.url, postgres=database)
    if request.param == "sqlite":
        return Store("sqlite", f"sqlite:///{folder / 'runs.db'}", path=folder / "runs.db")
    return Store("memory", "memory:")


@contextmanager
def some_store(kind: Literal["memory", "sqlite"]) -> Generator[str]:
    """Lend the address of an empty store that is gone with the block: for tests that draw where runs are kept."""
    if kind == "memory":
        yield "memory:"
        return
    with tempfile.TemporaryDirectory() as folder:
        yield f"sqlite:///{folder}/runs.db"


MOSTLY_IN_MEMORY = st.sampled_from(("memory",) * 7 + ("sqlite",))
"""Kinds of store to draw from: a file is slower."""


@pytest.fixture(name="checkpoints")
def open_memory(clock: ManualClock) -> Generator[Checkpoints]:
    """A store in memory, by the manual clock; a folder's conftest takes it where one store is enough."""
    with open_checkpoints("memory:", clock=clock) as checkpoints:
        yield checkpoints
