"""Which ledger an agent's graph uses."""

from __future__ import annotations

import os
import threading
import time
import weakref
from pathlib import Path

from loopwright.checkpoints import Ledger, open_checkpoints

LEDGER_VARIABLE = "LOOPWRIGHT_LEDGER"
DEFAULT_LEDGER = ".loopwright/ledger.db"


class Ledgers:
    """Finds the ledger: the bound one; beside a foreign saver the one that the environment names; else memory.

    A graph under LangGraph's server gets the server's saver, whose database we cannot share; so the ledger is
    `LOOPWRIGHT_LEDGER`, by default a SQLite file in the folder of the project, opened when it is first needed. Without
    a saver nothing outlives the run, and neither does the ledger.
    """

    def __init__(self, bound: Ledger | None = None) -> None:
        """Take the ledger that goes with the graph's saver, if there is one."""
        self._bound = bound
        self._opened: dict[bool, Ledger] = {}
        self._lock = threading.Lock()

    def now(self) -> float:
        """Return seconds since the epoch, by the ledger's clock; by this machine's while none is open."""
        known = self._bound or next(iter([*self._opened.values()]), None)
        return known.clock() if known else time.time()

    def opened(self, *, has_saver: bool) -> Ledger | None:
        """Return the ledger if it is open; costs no input or output."""
        return self._bound or self._opened.get(has_saver)

    def open(self, *, has_saver: bool) -> Ledger:
        """Return the ledger, opening it once.

        Raises:
            StorageError: If the file that the environment names cannot be opened.
        """
        with self._lock:
            known = self.opened(has_saver=has_saver)
            if known is None:
                opened = open_checkpoints(_server_url() if has_saver else "memory:")
                weakref.finalize(self, opened.close)
                known = self._opened[has_saver] = opened.ledger
            return known


def _server_url() -> str:
    url = os.environ.get(LEDGER_VARIABLE)
    if url:
        return url
    Path(DEFAULT_LEDGER).parent.mkdir(parents=True, exist_ok=True)
    return f"sqlite:///{DEFAULT_LEDGER}"
