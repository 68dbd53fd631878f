"""The SQLite connection below checkpoints, for tests that look at its tables."""

from __future__ import annotations

import sqlite3

from loopwright.checkpoints import Ledger
from loopwright.checkpoints.sqlite import SqliteDatabase


def connection_of(ledger: Ledger) -> sqlite3.Connection:
    """Return the connection of a ledger that is kept in SQLite."""
    assert isinstance(ledger.database, SqliteDatabase)
    return ledger.database.connection
