"""The ledger under encryption: its texts cannot be read, and its rows cannot be changed by who has no key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any

from loopwright.errors import StorageCorrupt
from loopwright.state import canonical, storable

from .cipher import Cipher
from .database import Call, Database, Row
from .resealing import Resealable
from .row_seals import GUARDED, Guarded, RowSeals, guarded_by, table_of

SEALED_COLUMNS = frozenset(
    {"task", "input", "args", "payload", "decision", "result", "data", "key", "context", "brought", "state"}
)
"""Ids, names of tools and people, statuses, times and amounts stay readable: they are what is searched by."""
PROOF = "this database is encrypted"
"""What stands sealed in one that is, and the place that it is sealed for."""
_LOG_COLUMNS = ("at", "thread_id", "run_id", "event")
"""What else a record of the log is bound to: it never changes."""


class SealedDatabase(Database):
    """A database whose sensitive columns are sealed, each for its own row and column, and whose rows are, as a whole.

    A row is checked whenever it is read, and sealed anew in the transaction of each change.
    """

    def __init__(self, inner: Database, cipher: Cipher) -> None:
        """Seal what goes into `inner`, and open what comes out."""
        self._inner = inner
        self._cipher = cipher
        self._seals = RowSeals(cipher)
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
        return self._read(name, self._inner.query(name, **values))

    def write(self, name: str, /, **values: Any) -> list[Row]:
        """Run a named query that writes."""
        guarded = guarded_by(name)
        if guarded is not None:
            return self._change(name, guarded, values)
        return self._read(name, self._inner.write(name, **self._all_sealed(name, values)))

    def together(self, calls: Sequence[Call]) -> list[list[Row]]:
        """Run named queries in one transaction."""
        if any(guarded_by(name) for name, _ in calls):
            with self.serial():
                return [self.write(name, **values) for name, values in calls]
        found = self._inner.together([(name, self._all_sealed(name, values)) for name, values in calls])
        return [self._read(name, rows) for (name, _), rows in zip(calls, found, strict=True)]

    def _change(self, name: str, guarded: Guarded, values: dict[str, Any]) -> list[Row]:
        """Change a row that carries a seal: what stood there is checked, and what stands there then is sealed."""
        with self._inner.serial():
            named = {key: values[key] for key in guarded.keys}
            change = (name, self._all_sealed(name, values))
            before, returned, after = self._inner.together([(guarded.find, named), change, (guarded.find, named)])
            table = table_of(name)
            for row in before:
                self._seals.check(table, row)
            if before != after:
                for row in after:
                    self._inner.write(guarded.put, seal=self._seals.of(table, row), **named)
            return [self._opened(table, row) for row in returned]

    def _read(self, name: str, rows: list[Row]) -> list[Row]:
        table = table_of(name)
        for row in rows:
            if "seal" in row:
                self._seals.check(table, row)
        readable = self._with_copies(rows) if table == "lw_log" else rows
        return [self._opened(table, row) for row in readable]

    def _with_copies(self, rows: list[Row]) -> list[Row]:
        """Put what was sealed anew in the place of records of the log whose key is not given."""
        old = [row["number"] for row in rows if not self._cipher.has_key_of(row["data"])]
        if not old:
            return rows
        copies = {row["number"]: row["data"] for row in self._inner.query("log_copies", first=min(old), last=max(old))}
        known = copies.keys() & set(old)
        return [{**row, "data": copies[row["number"]]} if row["number"] in known else row for row in rows]

    def _all_sealed(self, name: str, values: dict[str, Any]) -> dict[str, Any]:
        table = table_of(name)
        return {column: self._sealed(table, column, value, values) for column, value in values.items()}

    def _sealed(self, table: str, column: str, value: Any, values: Mapping[str, Any]) -> Any:
        if column not in SEALED_COLUMNS or not value:
            return value
        return self._cipher.seal_text(storable(value), _place(column, values), _row(table, values))

    def _opened(self, table: str, row: Row) -> Row:
        return {
            column: self._cipher.open_text(value, _place(column, row), _row(table, row))
            if column in SEALED_COLUMNS and value
            else value
            for column, value in row.items()
        }

    def seal_what_is_there(self) -> None:
        """Seal the rows of releases that knew no seals, once: from then on a row without one is refused.

        Their texts open here, or the rows stay as they are. A row with a text that was written since, and without a
        seal, is none of those.

        Raises:
            StorageCorrupt: If a row has lost its seal, or a key is missing.
        """
        if self._is_proven():
            return
        with self._inner.serial():
            noted = self._inner.query("sealed_since")
            if not noted:
                for table, guarded in GUARDED.items():
                    self._seal_table(table, guarded)
            self._prove(noted)

    def _is_proven(self) -> bool:
        """Tell whether the database says that it is encrypted; with which key, each value tells for itself."""
        return any(row["proof"] for row in self._inner.query("sealed_since"))

    def _prove(self, noted: Sequence[Row]) -> None:
        """Note that rows are sealed, and that the database is encrypted; not of one that holds texts in the clear."""
        proof = "" if self._has_plain() else self._cipher.seal_text(PROOF, PROOF)
        if noted:
            self._inner.write("add_proof", proof=proof)
        else:
            self._inner.write("mark_sealed", now=self._inner.now(), proof=proof)

    def _has_plain(self) -> bool:
        texts = [row["data"] for row in self._inner.query("first_log")]
        texts += [row["task"] for row in self._inner.query("page_of_runs", after="")]
        return not all(self._cipher.is_sealed(text) for text in texts if text)

    def _seal_table(self, table: str, guarded: Guarded) -> None:
        after = ""
        while rows := self._inner.query(guarded.page, after=after):
            after = rows[-1][guarded.keys[0]]
            old = [row for row in rows if self._is_old(table, row)]
            put = [{"seal": self._seals.of(table, row), **{key: row[key] for key in guarded.keys}} for row in old]
            self._inner.together([(guarded.put, values) for values in put])

    def _is_old(self, table: str, row: Row) -> bool:
        """Tell whether an earlier release wrote a row with one of these keys."""
        texts = {column: value for column, value in row.items() if column in SEALED_COLUMNS and value}
        if row["seal"] or any(self._cipher.is_bound_to_row(text) for text in texts.values()):
            name = " ".join(str(row[key]) for key in GUARDED[table].keys)
            text = f"row {name} of {table} was sealed, and the note that rows are is gone; restore a backup"
            raise StorageCorrupt(text, table=table, row=name)
        if not all(self._cipher.is_sealed(text) for text in texts.values()):
            return False
        self._opened(table, row)
        return True

    def resealable(self) -> list[Resealable]:
        """Return what can be sealed anew with the first key: rows in their place, records of the log beside it."""
        marks = {"mark": self._cipher.text_mark}
        rows = [
            Resealable(
                table.stale,
                table.find,
                table.reseal,
                dict.fromkeys(table.keys, ""),
                marks,
                partial(self._resealed, name),
            )
            for name, table in GUARDED.items()
        ]
        marks = {**marks, "earlier": self._cipher.earlier_text_mark}
        return [*rows, Resealable("stale_log", "find_log", "copy_log", {"number": 0}, marks, self._copied)]

    def _resealed(self, table: str, row: Row) -> Row:
        self._seals.check(table, row)
        opened = {column: value for column, value in self._opened(table, row).items() if column in SEALED_COLUMNS}
        texts = {column: self._sealed(table, column, text, row) for column, text in opened.items()}
        return {**texts, "seal": self._seals.of(table, {**row, **texts})}

    def _copied(self, row: Row) -> Row:
        (readable,) = self._with_copies([row])
        return {"data": self._sealed("lw_log", "data", self._opened("lw_log", readable)["data"], row)}

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


def _row(table: str, row: Mapping[str, Any]) -> str:
    """Name what a text is bound to beside its row's id and its column."""
    return f"{table} {canonical([row[column] for column in _LOG_COLUMNS])}" if table == "lw_log" else table
