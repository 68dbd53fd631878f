"""`open_checkpoints`: saver and ledger together."""

from __future__ import annotations

import asyncio
import time
from types import TracebackType
from typing import Self

from loopwright.errors import ConfigurationError

from .database import Database
from .ledger import LEASE_SECONDS, Clock, Ledger
from .saver import Saver

FORMS = "memory:, sqlite:///runs.db (relative) or sqlite:////var/lib/app/runs.db (absolute)"


class Checkpoints:
    """Where runs are kept: LangGraph's checkpoints and the ledger, in one database.

    Use it in `with` or in `async with`; both close it.

    Attributes:
        saver: The LangGraph checkpoint saver, sync and async.
        ledger: Runs, leases, approvals, effects, spend and log.
        url: As it was opened.
    """

    def __init__(self, url: str, *, clock: Clock = time.time, lease_seconds: float = LEASE_SECONDS) -> None:
        """Open the database and set it up; see `open_checkpoints`."""
        if not lease_seconds > 0:
            raise ConfigurationError(f"lease_seconds is {lease_seconds!r}; give seconds above 0")
        self.url = url
        self._database = Database(_path(url))
        try:
            self.saver = Saver(self._database)
            self.ledger = Ledger(self._database, clock, lease_seconds=lease_seconds)
        except BaseException:
            self._database.close()
            raise

    def close(self) -> None:
        """Store what waits, and close the database; closing twice is fine."""
        self.ledger.close()
        self._database.close()

    def __enter__(self) -> Self:
        """Use it in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Use it in a block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, off the loop."""
        await asyncio.to_thread(self.close)


def open_checkpoints(url: str, *, clock: Clock = time.time, lease_seconds: float = LEASE_SECONDS) -> Checkpoints:
    """Open saver and ledger; sets the database up where that is needed, safe for many processes at once.

    Args:
        url: `memory:`, `sqlite:///runs.db` (relative to the current folder) or `sqlite:////absolute/path.db`.
        clock: Seconds since the epoch; tests give a manual one.
        lease_seconds: How long a lease or claim outlives its last heartbeat: after a crash, others wait so long.

    Raises:
        ConfigurationError: If the URL has none of these forms.
        StorageError: If the database cannot be opened; `StorageCorrupt` and `VersionUnsupported` say more.
    """
    return Checkpoints(url, clock=clock, lease_seconds=lease_seconds)


async def aopen_checkpoints(url: str, *, clock: Clock = time.time, lease_seconds: float = LEASE_SECONDS) -> Checkpoints:
    """Do what `open_checkpoints` does, with the set-up off the event loop."""
    return await asyncio.to_thread(Checkpoints, url, clock=clock, lease_seconds=lease_seconds)


def _path(url: str) -> str:
    if url in ("memory:", "sqlite:///:memory:"):
        return ":memory:"
    path = url.removeprefix("sqlite:///")
    if not url.startswith("sqlite:///") or not path:
        raise ConfigurationError(f"cannot open checkpoints at {url!r}; the forms are {FORMS}", url=url)
    return path
