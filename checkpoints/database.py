"""What the ledger asks of a database; `sqlite.py` and `postgres.py` are the two that there are."""

from __future__ import annotations

import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cache
from importlib import resources
from typing import Any

from loopwright.errors import VersionUnsupported
from loopwright.state import storable

SCHEMA_VERSION = 11
"""Of the ledger's tables."""

Row = dict[str, Any]
Call = tuple[str, dict[str, Any]]
"""A named query with its values."""


class Database(ABC):
    """Named queries, in transactions.

    Every method may be called from any thread. A transaction belongs to the thread that opened it; what is called
    within it joins it.
    """

    name: str
    """How messages name the database: a path, or an address without its password."""
    is_memory: bool = False
    """Whether a call costs no input or output, so that it needs no thread of its own."""

    @abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """Run a block atomically; a block within a block joins the outer one."""

    @abstractmethod
    def serial(self) -> AbstractContextManager[None]:
        """Run a block atomically, and after all other such blocks of all processes.

        What reads before it writes, or appends to the log, needs this; the lock is taken before anything else, so that
        two of them cannot wait for each other.
        """

    @abstractmethod
    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that only reads."""

    @abstractmethod
    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes, in the open transaction or in one of its own; returns what it returned."""

    @abstractmethod
    def together(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run named queries, one after the other, in the open transaction or in one of their own; returns their rows.

        None of them may need what another one returns: where the database is a server, they make one round trip.
        """

    def now(self) -> float:
        """Return seconds since the epoch, by the clock that all who share the database go by; asks nobody."""
        return time.time()

    @abstractmethod
    def hear_clock(self) -> None:
        """Ask that clock, where it is not this machine's."""

    @abstractmethod
    def close(self) -> None:
        """Close the connections; closing twice is fine."""


def storable_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values that every database takes: what none can keep of a text is replaced, alike in all of them."""
    return {name: storable(value) if isinstance(value, str) else value for name, value in values.items()}


@cache
def load_queries(dialect: str) -> dict[str, str]:
    """Read all queries, for `sqlite` or `postgres`: each by its name, with its parameters as `:name`."""
    texts = (_sql("queries.sql"), _sql(f"queries_{dialect}.sql"))
    parts = [part for text in texts for part in re.split(r"^-- name: (\w+)$", text, flags=re.MULTILINE)[1:]]
    return {name: _bare(body).rstrip(";") for name, body in zip(parts[::2], parts[1::2], strict=True)}


@cache
def load_migration(version: int) -> tuple[str, ...]:
    """Read the statements that lead from one schema version to the next; a number that was never used has none."""
    folder = resources.files(__package__ or "loopwright.checkpoints") / "sql"
    name = next((file.name for file in folder.iterdir() if file.name.startswith(f"{version:04}_")), "")
    if not name:
        return ()
    return tuple(statement.strip() for statement in _bare(_sql(name)).split(";") if statement.strip())


@cache
def load_statements(name: str) -> tuple[str, ...]:
    """Read the statements of one dialect; each ends with two semicolons, since triggers hold single ones."""
    return tuple(statement.strip() for statement in _bare(_sql(f"{name}.sql")).split(";;") if statement.strip())


def migrate(name: str, found: int, run: Callable[[str], object], note: Callable[[int], object]) -> None:
    """Bring the ledger's tables up to date, within the caller's transaction.

    Args:
        name: The database's, for messages.
        found: The version that it has; 0 for none.
        run: Executes a statement.
        note: Notes a version as reached.
    """
    refuse_newer(name, found)
    for version in range(found + 1, SCHEMA_VERSION + 1):
        for statement in load_migration(version):
            run(statement)
        note(version)


def refuse_newer(name: str, found: int) -> None:
    """Leave alone what a later release wrote.

    Raises:
        VersionUnsupported: If the database has a schema that this release does not know.
    """
    if found > SCHEMA_VERSION:
        text = f"{name} was written by a newer loopwright (schema {found}, this one knows {SCHEMA_VERSION}); "
        raise VersionUnsupported(text + "upgrade loopwright, nothing was changed", found=found)


def _bare(text: str) -> str:
    return re.sub(r"--[^\n]*", "", text).strip()


def _sql(name: str) -> str:
    return (resources.files(__package__ or "loopwright.checkpoints") / "sql" / name).read_text(encoding="utf-8")
