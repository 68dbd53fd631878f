"""Resealing: all that is sealed is sealed anew with the first key, so that the others can be dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from loopwright.errors import StorageCorrupt

from .database import Call, Database, Row

BATCH_ROWS = 100
BATCH_CHARACTERS = 4_000_000
"""A batch is a transaction of at most so much, or of a single row: whoever works beside it waits for no longer."""
PASSES = 5
"""What others write with an older key meanwhile, or had locked, is looked for again; not for ever."""
SHOWN = 20
"""Problems that a report tells of; it counts them all."""


@dataclass(frozen=True, slots=True)
class ResealReport:
    """What sealing anew did."""

    rewritten: int
    """Rows that were sealed anew: of the ledger, of the checkpoints, and records of the log that got a copy."""
    left: int
    """Rows that still need another key than the first: those with a problem, and what was written or locked by others
    to the last. While there are any, keep the old keys."""
    problems: tuple[str, ...]
    """One sentence for each row that cannot be opened, of the first 20: its key is not given, or it was changed."""

    @property
    def is_complete(self) -> bool:
        """Whether the first key alone opens everything."""
        return not self.left


@dataclass(frozen=True, slots=True)
class Resealable:
    """Rows that are sealed alike, and the queries for them."""

    stale: str
    """Lists what names those that are not sealed by the first key for their row, behind one, with their size."""
    find: str
    """Returns one of them; none that somebody else is just writing."""
    put: str
    """Stores what was sealed anew of it."""
    before: Mapping[str, str | int]
    """What names a row, with values that come before those of any."""
    marks: Mapping[str, str | bytes]
    """How what needs nothing begins."""
    reseal: Callable[[Row], Row]
    """Seals anew; `StorageCorrupt` if a row cannot be opened."""


def reseal(
    database: Database, parts: list[Resealable], *, on_batch: Callable[[int], object] | None = None
) -> ResealReport:
    """Seal every row anew that the first key does not open, or that an earlier release bound to its thread alone.

    Each batch is committed by itself, and what is done needs nothing more: it may be stopped, or killed, and begun
    again at any time. Others may work meanwhile, if they have the same first key, and the old ones behind it. The log
    cannot be written anew: a record with an older key gets a copy beside the log, which is read where that key is not
    given.

    Args:
        database: Without encryption: what it returns is as it is stored.
        parts: All that is sealed in it.
        on_batch: Is told after each batch how many rows were sealed anew so far.
    """
    rewritten, one = 0, _Pass(database)
    for _ in range(PASSES):
        one = _Pass(database)
        for part in parts:
            for done in one.over(part):
                rewritten += done
                if on_batch is not None:
                    on_batch(rewritten)
        if not one.rewritten:
            break
    return ResealReport(rewritten, one.found - one.rewritten, tuple(one.problems))


class _Pass:
    """Looks once at all rows."""

    def __init__(self, database: Database) -> None:
        """Begin."""
        self._database = database
        self.found = self.rewritten = 0
        self.problems: list[str] = []

    def over(self, part: Resealable) -> Iterator[int]:
        """Seal the rows of a part anew; yields how many they were, batch by batch."""
        last: Mapping[str, str | int] = part.before
        while rows := self._database.query(part.stale, limit=BATCH_ROWS, **last, **part.marks):
            batch = [{name: row[name] for name in part.before} for row in _fitting(rows)]
            last = batch[-1]
            self.found += len(batch)
            done = self._rewrite(part, batch)
            self.rewritten += done
            yield done

    def _rewrite(self, part: Resealable, batch: list[Row]) -> int:
        """Read them again, where nobody else can write them, and write them anew."""
        with self._database.serial():
            found = self._database.together([(part.find, named) for named in batch])
            pairs = [(named, row) for named, rows in zip(batch, found, strict=True) for row in rows]
            calls = [call for named, row in pairs if (call := self._call(part, named, row))]
            self._database.together(calls)
        return len(calls)

    def _call(self, part: Resealable, named: Row, row: Row) -> Call | None:
        try:
            return part.put, {**named, **part.reseal(row)}
        except StorageCorrupt as error:
            if len(self.problems) < SHOWN:
                where = ", ".join(f"{name} {value!r}" for name, value in named.items() if value != "")
                self.problems.append(f"{part.find.removeprefix('find_')} ({where}): {error}")
            return None


def _fitting(rows: list[Row]) -> list[Row]:
    """Return as many of them as a batch takes."""
    total = 0
    for number, row in enumerate(rows):
        total += row["size"]
        if number and total > BATCH_CHARACTERS:
            return rows[:number]
    return rows
