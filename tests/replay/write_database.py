"""Writes the database of this release that all later ones must load: one run that has ended, one that waits.

Run it once a release, at the root of the repository: `python -m tests.replay.write_database`. What it writes is
committed, and not written again once the release is out. Its times lie in the past, so that no clock is behind them.
"""

from __future__ import annotations

import itertools
import sqlite3
from contextlib import closing
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

from tests.world.stories import build_shop, finish, wait_at_question
from tests.world.till import Till

from loopwright import open_checkpoints

FOLDER = Path(__file__).parent
BEGAN = 1_767_225_600
"""The first second of 2026."""


def main() -> None:
    """Write `<version>.db` beside this file."""
    path = FOLDER / f"{metadata.version('loopwright')}.db"
    path.unlink(missing_ok=True)
    ticks = itertools.count(BEGAN * 10**9, 10**6)
    # The ids of checkpoints are made of LangGraph's own clock, which cannot be set otherwise.
    with (
        patch("langgraph.checkpoint.base.id.time", SimpleNamespace(time_ns=lambda: next(ticks))),
        open_checkpoints(f"sqlite:///{path}", clock=lambda: float(BEGAN)) as checkpoints,
    ):
        finish(build_shop(Till()), checkpoints, "finished")
        wait_at_question(build_shop(Till()), checkpoints, "waiting")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = delete")  # one file, without a log beside it
        connection.execute("pragma page_size = 1024")  # many small tables: most of a larger page would be empty
        connection.execute("vacuum")
        connection.execute("vacuum")


if __name__ == "__main__":
    main()
