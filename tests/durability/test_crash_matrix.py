"""The crash matrix: a process is killed at each place, and the table in the docs says what became of the payment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.durability.crash_matrix import HEADER, PLACES, RULE, STORES, row_of
from tests.world.nursery import Nursery
from tests.world.postgres import Postgres

PAGE = Path(__file__).parents[2] / "docs" / "crash-matrix.md"


def table() -> list[str]:
    """Return the page's first table."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index(HEADER)
    return lines[begin : lines.index("", begin)]


# On SQLite alone, test_kill.py kills at the same places.
@pytest.mark.parametrize("stores", [("postgres",), pytest.param(STORES, marks=pytest.mark.in_full)], ids="+".join)
@pytest.mark.parametrize("place", PLACES)
def test_a_kill_there_does_what_the_page_says(
    nursery: Nursery, postgres_server: Postgres, tmp_path: Path, place: str, stores: Sequence[str]
) -> None:
    """Killed there, for each kind of tool and on both stores: the run ends as the page's row says."""
    assert row_of(place, nursery, postgres_server, tmp_path, stores) in table()


def test_the_page_has_a_row_for_each_place() -> None:
    """No place is missing from the page, and none is there that is not tried."""
    header, rule, *rows = table()
    assert (HEADER, RULE) == (header, rule)
    assert [*PLACES] == [row.split("|")[1].strip() for row in rows]
