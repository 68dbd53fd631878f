"""Opening a database: what cannot be used is refused in one line, and left as it was."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.world.nursery import Nursery

from loopwright import aopen_checkpoints, open_checkpoints
from loopwright.checkpoints import PruneReport
from loopwright.errors import ConfigurationError, StorageCorrupt, StorageError, VersionUnsupported


def tables(path: Path) -> set[str]:
    """Return the names of a database's tables."""
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}


def test_both_share_one_file(tmp_path: Path) -> None:
    """Saver and ledger live in one database, and opening it again changes nothing."""
    path = tmp_path / "runs.db"
    for _ in range(2):
        with open_checkpoints(f"sqlite:///{path}") as checkpoints:
            assert not checkpoints.ledger.is_memory
    assert {"checkpoints", "writes", "lw_runs", "lw_leases", "lw_approvals", "lw_effects", "lw_spend", "lw_log"} <= (
        tables(path)
    )


@pytest.mark.parametrize("url", ["", "runs.db", "sqlite://", "sqlite:///", "sqlite:runs.db", "mysql://x/y", "memory"])
def test_a_url_without_a_known_form(url: str) -> None:
    """The message lists the forms."""
    with pytest.raises(ConfigurationError, match="the forms are memory:"):
        open_checkpoints(url)


SECRETS = [
    ("postgresql+psycopg://u:S3CRET@h/db", "postgresql+psycopg://h…"),
    ("mysql://u:S3/CRET@h:3306/db", "mysql://h…"),
    ("mysql://u:S3?CRET@h/db", "mysql://…"),
    ("mysql://h/db?password=S3CRET", "mysql://h…"),
    ("mysql://h/db?password=x@S3CRET", "mysql://…"),
    ("u:S3CRET@h/db", "u:…"),
    ("host=h password=S3CRET", "…"),
    ("mysql://h", "mysql://h"),
]


@pytest.mark.parametrize(("url", "shown"), SECRETS)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    """Scheme and host only: the message, and the facts, end up in a log."""
    with pytest.raises(ConfigurationError) as raised:
        open_checkpoints(url)
    assert f"cannot open checkpoints at {shown!r}" in str(raised.value)
    assert {"url": shown} == raised.value.facts
    assert "CRET" not in repr(raised.value.to_json())


def test_a_url_is_a_text() -> None:
    """A path is none; its value is not shown."""
    url: Any = Path("runs.db")
    with pytest.raises(ConfigurationError, match=r"opened by URL, not by a .*Path"):
        open_checkpoints(url)


@pytest.mark.parametrize("size", [0, "3", True, 2.5, None])
def test_a_pool_has_a_size(size: Any) -> None:
    """A whole number of connections."""
    with pytest.raises(ConfigurationError, match="pool_size"):
        open_checkpoints("memory:", pool_size=size)


@pytest.mark.parametrize("keys", [b"x" * 32, b"", None, "", "x" * 32, ["x" * 32], {b"x" * 32: 1}])
def test_keys_come_in_a_list(keys: Any) -> None:
    """One key by itself is a sequence of numbers, and nothing at all must not mean: not encrypted."""
    with pytest.raises(ConfigurationError, match=r"encryption=\[key\]") as raised:
        open_checkpoints("memory:", encryption=keys)
    assert "xxx" not in repr(raised.value.to_json())


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), "3", True, None])
def test_a_lease_lasts(seconds: Any) -> None:
    """A lease that is over at once would let everybody in."""
    with pytest.raises(ConfigurationError, match="lease_seconds"):
        open_checkpoints("memory:", lease_seconds=seconds)


def _no_folder(folder: Path) -> Path:
    return folder / "nowhere" / "runs.db"


def _a_folder(folder: Path) -> Path:
    (folder / "runs.db").mkdir()
    return folder / "runs.db"


@pytest.mark.parametrize(("build", "match"), [(_no_folder, "no folder"), (_a_folder, "is a folder")])
def test_a_place_where_no_file_can_be(tmp_path: Path, build: Callable[[Path], Path], match: str) -> None:
    """Nothing is created along the way."""
    with pytest.raises(StorageError, match=match):
        open_checkpoints(f"sqlite:///{build(tmp_path)}")
    assert not (tmp_path / "nowhere").exists()


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    """It is refused, and not a byte of it changes."""
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, " * 500)
    with pytest.raises(StorageCorrupt, match="restore it from a backup"):
        open_checkpoints(f"sqlite:///{path}")
    assert path.read_text() == "Dear diary, " * 500


def test_a_damaged_database(tmp_path: Path) -> None:
    """Damage within is told as damage, not as a mistake of ours."""
    path = tmp_path / "runs.db"
    with open_checkpoints(f"sqlite:///{path}") as checkpoints:
        for number in range(200):
            checkpoints.ledger.runs.start(f"r{number}", thread_id="t", agent="a", message="m" * 100, task="t")
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * (path.stat().st_size - 4096))
    with pytest.raises(StorageCorrupt), open_checkpoints(f"sqlite:///{path}") as checkpoints:
        checkpoints.ledger.runs.list()


def test_a_newer_database_is_left_alone(tmp_path: Path) -> None:
    """A schema from the future is refused; what is in it stays, to the byte."""
    path = tmp_path / "runs.db"
    with open_checkpoints(f"sqlite:///{path}") as checkpoints:
        checkpoints.ledger.runs.start("r1", thread_id="t", agent="a", message="hi", task="hi")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("pragma user_version = 99")
    before = path.read_bytes()
    with pytest.raises(VersionUnsupported, match="schema 99"):
        open_checkpoints(f"sqlite:///{path}")
    assert before == path.read_bytes()


@pytest.fixture(name="open_folder")
def make_open_folder() -> Generator[Path]:
    """A folder that everybody may enter."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def test_a_file_that_cannot_be_written(open_folder: Path, nursery: Nursery) -> None:
    """Read-only: opening or the first write says so, with the way out."""
    path = open_folder / "runs.db"
    open_checkpoints(f"sqlite:///{path}").close()
    path.chmod(0o444)
    message = nursery.start("write_as_nobody", path=str(path)).result()
    assert "StorageError" in message
    assert "read-only" in message or "writable" in message


def test_closing_twice_is_fine() -> None:
    """And what comes after is an error of ours."""
    checkpoints = open_checkpoints("memory:")
    checkpoints.close()
    checkpoints.close()
    with pytest.raises(StorageError, match="closed"):
        checkpoints.ledger.runs.list()


def test_c65_a_locked_database_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that never lets go: the wait is bounded, and its end is an error of ours."""
    monkeypatch.setattr("loopwright.checkpoints.sqlite.BUSY_SECONDS", 0.05)
    path = tmp_path / "runs.db"
    with open_checkpoints(f"sqlite:///{path}") as checkpoints, closing(sqlite3.connect(path)) as other:
        other.execute("begin immediate")
        with pytest.raises(StorageError, match="stayed locked"):
            checkpoints.ledger.runs.start("r1", thread_id="t", agent="a", message="hi", task="hi")
        with pytest.raises(StorageError, match="stayed locked"):
            checkpoints.ledger.cancel("r1", "ana")
        other.rollback()
        checkpoints.ledger.runs.start("r1", thread_id="t", agent="a", message="hi", task="hi")
        assert ["r1"] == [row.id for row in checkpoints.ledger.runs.list()]


def test_opening_off_the_loop(tmp_path: Path) -> None:
    """The async door opens the same, prunes, and closes it."""

    async def main() -> None:
        async with await aopen_checkpoints(f"sqlite:///{tmp_path}/runs.db") as checkpoints:
            assert await asyncio.to_thread(checkpoints.ledger.runs.list) == []
            assert PruneReport(0, 0, 0) == await checkpoints.aprune(older_than=0)

    asyncio.run(main())
