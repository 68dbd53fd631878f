"""The seal of a row: what stays readable in the ledger cannot be changed by who has no key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from loopwright.errors import StorageCorrupt
from loopwright.state import digest

from .cipher import Cipher
from .database import Row, load_queries


@dataclass(frozen=True, slots=True)
class Guarded:
    """A table whose rows carry a seal, and the queries for it."""

    find: str
    """Finds the row that a change is about."""
    put: str
    """Stores its seal."""
    page: str
    """Lists rows, behind the one that it is given."""
    stale: str
    """Lists those that need another key than the first."""
    reseal: str
    """Stores its texts and its seal."""
    keys: tuple[str, ...]
    """The columns that name a row."""
    free: frozenset[str]
    """Columns that are not sealed: they change often, and open nothing, or no table has them and a list adds them."""


GUARDED: Mapping[str, Guarded] = {
    "lw_runs": Guarded(
        "find_run",
        "seal_run",
        "page_of_runs",
        "stale_runs",
        "reseal_run",
        ("id",),
        frozenset({"status", "reason", "worker", "cost_nano", "updated_at", "parked_until"}),
    ),
    "lw_approvals": Guarded(
        "find_approval",
        "seal_approval",
        "page_of_approvals",
        "stale_approvals",
        "reseal_approval",
        ("id",),
        frozenset({"reminded_at"}),
    ),
    "lw_votes": Guarded(
        "find_vote", "seal_vote", "page_of_votes", "stale_votes", "seal_vote", ("approval_id", "voter"), frozenset()
    ),
    "lw_effects": Guarded(
        "find_effect",
        "seal_effect",
        "page_of_effects",
        "stale_effects",
        "reseal_effect",
        ("id",),
        frozenset({"until"}),
    ),
}
FREE = frozenset(
    {
        "set_run_status",
        "reopen_run",
        "set_run_worker",
        "claim_reminder",
        "return_reminder",
        "renew_effects",
        *(table.put for table in GUARDED.values()),
    }
)
"""Queries that write to such a table, and change nothing that is sealed."""
_TABLE = re.compile(r"\blw_\w+")
_CHANGE = re.compile(r"(insert into|update) ")
_WITHIN = re.compile(r"\([^()]*\)")


@cache
def _queries() -> dict[str, str]:
    return {**load_queries("postgres"), **load_queries("sqlite")}


@cache
def table_of(query: str) -> str:
    """Return the table whose rows a named query returns or writes; empty for none."""
    text = _queries()[query]
    while (outer := _WITHIN.sub("", text)) != text:  # what stands in parentheses is about other rows
        text = outer
    found = _TABLE.search(text)
    return found.group() if found else ""


@cache
def guarded_by(query: str) -> Guarded | None:
    """Return the table whose seals a named query makes stale, if it does."""
    is_change = query not in FREE and _CHANGE.match(_queries()[query])
    return GUARDED.get(table_of(query)) if is_change else None


class RowSeals:
    """Seals rows of the ledger: a digest over all that does not change freely, encrypted for this row alone."""

    def __init__(self, cipher: Cipher) -> None:
        """Seal with a cipher."""
        self._cipher = cipher

    def of(self, table: str, row: Row) -> str:
        """Return the seal of a row as it is stored."""
        return self._cipher.seal_text(_contents(table, row), table, _name(table, row))

    def check(self, table: str, row: Row) -> None:
        """Refuse a row that was changed, or made, by who has no key.

        Raises:
            StorageCorrupt: If its seal is not there, is another row's, or does not fit what the row says.
        """
        name = " ".join(str(row[key]) for key in GUARDED[table].keys)
        if not row["seal"]:
            text = f"row {name} of {table} is not sealed, although what is here is encrypted; it is refused"
            raise StorageCorrupt(text, table=table, row=name)
        if self._cipher.open_text(row["seal"], table, _name(table, row)) != _contents(table, row):
            raise StorageCorrupt(f"row {name} of {table} was changed; it is refused", table=table, row=name)


def _name(table: str, row: Row) -> str:
    return digest([row[key] for key in GUARDED[table].keys])


def _contents(table: str, row: Row) -> str:
    free = GUARDED[table].free
    return digest({column: value for column, value in row.items() if column != "seal" and column not in free})
