"""`open_checkpoints`: saver and ledger together."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from typing_extensions import TypedDict, Unpack

from loopwright.errors import ConfigurationError
from loopwright.state import is_span, refuse_unknown

from .database import Database
from .ledger import LEASE_SECONDS, Clock, Ledger
from .pruning import PruneReport, prune
from .resealing import Resealable, ResealReport, reseal
from .saver import Saver
from .store import NoSeal, Seal, Store

if TYPE_CHECKING:
    from .cipher import Cipher

FORMS = (
    "memory:, sqlite:///runs.db (relative), sqlite:////var/lib/app/runs.db (absolute), postgresql://user@host/database"
)
POOL_SIZE = 8
"""Connections to PostgreSQL at most."""


class OpeningOptions(TypedDict, total=False):
    """What can be chosen when checkpoints are opened; each has a default."""

    clock: Clock
    """Seconds since the epoch; tests give a manual one. By default the clock that all who share the database go by: on
    PostgreSQL the server's, else this machine's."""
    lease_seconds: float
    """How long a lease or claim outlives its last heartbeat: after a crash, others wait so long. 10 by default."""
    write_behind: bool
    """Store at barriers only (before whatever changes something, at pauses, at the end), not after each super-step; a
    crash in between repeats reads. On by default; off, each super-step is a commit."""
    pool_size: int
    """Connections at most, for PostgreSQL. 8 by default."""
    encryption: Sequence[bytes]
    """Keys of 32 bytes, the newest first (the extra `encryption`); none by default. Values, metadata and the ledger's
    texts are encrypted with the first; what was changed, swapped between rows or is not encrypted is refused."""


class Checkpoints:
    """Where runs are kept: LangGraph's checkpoints and the ledger, in one database.

    Use it in `with` or in `async with`; both close it.

    Attributes:
        saver: The LangGraph checkpoint saver, sync and async.
        ledger: Runs, leases, approvals, effects, spend and log.
    """

    def __init__(self, url: str, **options: Unpack[OpeningOptions]) -> None:
        """Open the database and set it up; see `open_checkpoints`."""
        lease_seconds, pool_size = options.get("lease_seconds", LEASE_SECONDS), options.get("pool_size", POOL_SIZE)
        _check_options(url, options, lease_seconds, pool_size)
        self._cipher = cipher = _cipher(options.get("encryption", ()))
        self._database, build = _open(url, pool_size)
        try:
            if cipher is None:
                _refuse_sealed(self._database)
            self.saver = _saver(self._database, build, cipher, write_behind=options.get("write_behind", True))
            clock = options.get("clock", self._database.now)
            self.ledger = Ledger(_sealed(self._database, cipher), clock, lease_seconds=lease_seconds)
        except BaseException:
            self._database.close()
            raise

    def __repr__(self) -> str:
        """Say where runs are kept; without a password."""
        return f"<Checkpoints in {self._database.name!r}{', encrypted' if self._cipher is not None else ''}>"

    def prune(self, *, older_than: float) -> PruneReport:
        """Shrink the threads whose runs have all ended at least `older_than` seconds ago; see `prune`.

        With 0, all whose runs have ended by now.

        Raises:
            ConfigurationError: If it is no number, or below 0.
        """
        _check_age(older_than)
        return prune(self.saver, self.ledger, before=self.ledger.clock() - older_than)

    async def aprune(self, *, older_than: float) -> PruneReport:
        """Do what `prune` does, off the event loop."""
        return await asyncio.to_thread(self.prune, older_than=older_than)

    def reseal(self, *, on_batch: Callable[[int], object] | None = None) -> ResealReport:
        """Seal all that is here anew with the first key, so that the others can be dropped; see `reseal`.

        Args:
            on_batch: Is told after each batch, when that is committed, how many rows were sealed anew so far.

        Raises:
            ConfigurationError: If these checkpoints were opened without encryption.
        """
        if self._cipher is None:
            text = "nothing is sealed without encryption; give keys, the new one first: encryption=[new, old], "
            text += "or LOOPWRIGHT_ENCRYPTION for the command line"
            raise ConfigurationError(text, option="encryption")
        return reseal(self._database, _resealable(self._database, self._cipher, self.saver), on_batch=on_batch)

    async def areseal(self, *, on_batch: Callable[[int], object] | None = None) -> ResealReport:
        """Do what `reseal` does, off the event loop; so is `on_batch`."""
        return await asyncio.to_thread(self.reseal, on_batch=on_batch)

    def close(self) -> None:
        """Store what waits, and close the database; closing twice is fine."""
        try:
            self.ledger.close()
            self.saver.flush_all()
        finally:
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


def open_checkpoints(url: str, **options: Unpack[OpeningOptions]) -> Checkpoints:
    """Open saver and ledger; sets the database up where that is needed, safe for many processes at once.

    Args:
        url: `memory:`, `sqlite:///runs.db` (relative to the current folder), `sqlite:////absolute/path.db` or
            `postgresql://user@host/database` (the extra `postgres`).
        **options: See `OpeningOptions`: `clock`, `lease_seconds`, `write_behind`, `pool_size` and `encryption`.

    Raises:
        ConfigurationError: If the URL has none of these forms, an option has a wrong value, or the extra is not
            installed.
        StorageError: If the database cannot be opened; `StorageCorrupt` and `VersionUnsupported` say more.
    """
    return Checkpoints(url, **options)


async def aopen_checkpoints(url: str, **options: Unpack[OpeningOptions]) -> Checkpoints:
    """Do what `open_checkpoints` does, with the set-up off the event loop."""
    return await asyncio.to_thread(lambda: Checkpoints(url, **options))


Build = Callable[[Seal], Store]
"""Builds the checkpoint store over an opened database."""


def _check_options(url: object, given: Mapping[str, object], lease_seconds: object, pool_size: object) -> None:
    refuse_unknown("open_checkpoints", given, OpeningOptions.__annotations__)
    if not isinstance(url, str):
        text = f"checkpoints are opened by URL, not by a {type(url).__name__}; the forms are {FORMS}"
        raise ConfigurationError(text, option="url")
    if not is_span(lease_seconds):
        text = f"lease_seconds is {lease_seconds!r}; give seconds above 0, as a number"
        raise ConfigurationError(text, option="lease_seconds")
    if not isinstance(pool_size, int) or isinstance(pool_size, bool) or pool_size < 1:
        text = f"pool_size is {pool_size!r}; give a whole number, at least 1 connection"
        raise ConfigurationError(text, option="pool_size")


def _check_age(older_than: object) -> None:
    if isinstance(older_than, bool) or (older_than != 0 and not is_span(older_than)):
        text = f"older_than is {older_than!r}; give seconds, as a number; 0 for all that has ended by now"
        raise ConfigurationError(text, option="older_than")


def _check_keys(keys: object) -> None:
    """Refuse what is no list of keys: nothing in its place must ever mean that nothing is encrypted."""
    listed = isinstance(keys, list | tuple)
    if not listed or not all(isinstance(key, bytes) for key in cast("Sequence[Any]", keys)):
        text = "encryption wants a list of keys, each of 32 bytes, the newest first: encryption=[key]"
        raise ConfigurationError(text, option="encryption")


def _cipher(keys: Sequence[bytes]) -> Cipher | None:
    _check_keys(keys)
    if not keys:
        return None
    try:
        from .cipher import Cipher
    except ImportError as error:
        text = "encryption needs the extra 'encryption': pip install 'loopwright[encryption]'"
        raise ConfigurationError(text, missing=error.name) from error
    return Cipher(keys)


def _refuse_sealed(database: Database) -> None:
    """Refuse to open without a key what was encrypted: its texts would be read as gibberish, its log as tampered with.

    Raises:
        ConfigurationError: Saying where a key is given.
    """
    is_proven = any(row["proof"] for row in database.query("sealed_since"))
    # Releases before this one left no proof; their first record tells.
    if is_proven or any(not row["data"].startswith("{") for row in database.query("first_log")):
        text = f"the database {database.name!r} is encrypted; give its key: open_checkpoints(url, encryption=[key]),"
        raise ConfigurationError(f"{text} or LOOPWRIGHT_ENCRYPTION for the command line", option="encryption")


def _saver(database: Database, build: Build, cipher: Cipher | None, *, write_behind: bool) -> Saver:
    seal: Seal = NoSeal()
    if cipher is not None:
        from .cipher import SealedRows

        seal = SealedRows(cipher)
    return Saver(build(seal), is_memory=database.is_memory, write_behind=write_behind, seal=seal)


def _sealed(database: Database, cipher: Cipher | None) -> Database:
    if cipher is None:
        return database
    from .sealed import SealedDatabase

    sealed = SealedDatabase(database, cipher)
    sealed.seal_what_is_there()
    return sealed


def _resealable(database: Database, cipher: Cipher, saver: Saver) -> list[Resealable]:
    from .cipher import SealedRows
    from .sealed import SealedDatabase

    return [*SealedDatabase(database, cipher).resealable(), *SealedRows(cipher).resealable(saver.sealed_columns)]


def _open(url: str, pool_size: int) -> tuple[Database, Build]:
    """Open the database that a URL names; returns it with what builds the checkpoint store over it."""
    if url.startswith(("postgresql://", "postgres://")):
        return _open_postgres(url, pool_size)
    from .sqlite import SqliteDatabase
    from .sqlite_store import SqliteStore

    sqlite = SqliteDatabase(_path(url))
    return sqlite, lambda seal: SqliteStore(sqlite, seal)


def _open_postgres(url: str, pool_size: int) -> tuple[Database, Build]:
    try:
        from .postgres import PostgresDatabase
        from .postgres_store import PostgresStore
    except ImportError as error:
        text = "PostgreSQL needs the extra 'postgres': pip install 'loopwright[postgres]'"
        raise ConfigurationError(text, missing=error.name) from error
    postgres = PostgresDatabase(url, pool_size=pool_size)
    return postgres, lambda seal: PostgresStore(postgres, seal)


def _path(url: str) -> str:
    if url in ("memory:", "sqlite:///:memory:"):
        return ":memory:"
    path = url.removeprefix("sqlite:///")
    if not url.startswith("sqlite:///") or not path:
        shown = _public(url)
        raise ConfigurationError(f"cannot open checkpoints at {shown!r}; the forms are {FORMS}", url=shown)
    return path


def _public(url: str) -> str:
    """Return scheme and host of a URL that nobody understands: anything else in it may be a password."""
    scheme, colon, rest = url.partition(":")
    if not colon:
        return url if re.fullmatch(r"[\w./\\-]*", url) else "…"
    if not rest.startswith("//"):
        return f"{scheme}:…"
    before, _, after = rest[2:].rpartition("@")
    host = re.match(r"[\w.-]*", after)
    is_plain = host is not None and not set("?#") & set(before)
    shown = f"{scheme}://{host.group() if host and is_plain else ''}"
    return shown if shown == url else f"{shown}…"
