"""The ledger's columns, encrypted: what holds the user's words, arguments, results and reasons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from loopwright.state import storable

from .cipher import Cipher
from .database import Call, Database, Row

SEALED_COLUMNS = frozenset(
    {"task", "input", "args", "payload", "decision", "result", "data", "key", "context", "brought", "state"}
)
"""Ids, names of tools and people, statuses, times and amounts stay readable: they are what is searched by."""


class SealedDatabase(Database):
    """A database whose sensitive columns are sealed, each for its own row and column."""

    def __init__(self, inner: Database, cipher: Cipher) -> None:
        """Seal what goes into `inner`, and open what comes out."""
        self._inner = inner
        self._cipher = cipher
        self.name = inner.name
        self.is_memory = inner.is_memory

    def transaction(self) -> AbstractContextManager[None]:
        """Run a block atomically."""
        return self._inner.transaction()

    def serial(self) -> AbstractContextManager[None]:
        """Run a block after all other such blocks."""
        return self._inner.serial()

    def query(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that only reads."""
        return [self._opened(row) for row in self._inner.query(name, **values)]

    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes."""
        return [self._opened(row) for row in self._inner.write(name, **self._all_sealed(values))]

    def together(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run named queries in one transaction."""
        found = self._inner.together([(name, self._all_sealed(values)) for name, values in calls])
        return [[self._opened(row) for row in rows] for rows in found]

    def _all_sealed(self, values: dict[str, Any]) -> dict[str, Any]:
        return {column: self._sealed(column, value, values) for column, value in values.items()}

    def _sealed(self, column: str, value: Any, values: Mapping[str, Any]) -> Any:
        if column not in SEALED_COLUMNS or not value:
            return value
        return self._cipher.seal_text(storable(value), _place(column, values))

    def _opened(self, row: Row) -> Row:
        return {
            column: self._cipher.open_text(value, _place(column, row)) if column in SEALED_COLUMNS and value else value
            for column, value in row.items()
        }

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._inner.now()

    def hear_clock(self) -> None:
        """Ask the clock that all go by."""
        self._inner.hear_clock()

    def close(self) -> None:
        """Close the database."""
        self._inner.close()


def _place(column: str, row: Mapping[str, Any]) -> str:
    return f"{column} of {row['id'] if 'id' in row else row['number']}"
