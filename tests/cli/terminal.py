"""A terminal for tests: each command is a process of its own."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.world.nursery import Nursery

COMMAND = [sys.executable, "-m", "loopwright.cli"]
WITHOUT_ROOTS_POWERS = [
    sys.executable,
    "-c",
    # PR_CAPBSET_DROP of CAP_DAC_OVERRIDE: then a read-only file is read-only for root, too.
    (
        "import ctypes, os, sys\n"
        "ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)\n"
        "os.execv(sys.executable, [sys.executable, '-m', 'loopwright.cli', *sys.argv[1:]])"
    ),
]


@dataclass(frozen=True, slots=True)
class Ended:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """What `--json` wrote."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        """What stood on stdout."""
        return self.out.splitlines()


class Terminal:
    """Runs commands in a folder, in which runs and shop are kept."""

    def __init__(self, nursery: Nursery, place: Path) -> None:
        """Make the folder below a place."""
        self._nursery = nursery
        self._place = place
        self.folder = place / "folder"
        self.folder.mkdir()
        self.shop = self.folder / ".loopwright" / "shop.db"

    def run(self, *args: str, crash_at: str = "", **settings: str) -> Ended:
        """Run `loopwright` in a forked process that has imported the engine already; `crash_at` kills it there."""
        options = {"folder": str(self.folder), "args": args, "settings": {"COLUMNS": "200", **settings}}
        code = self._nursery.start("tests.cli.tasks:command", crash_at=crash_at, **options).wait()
        out, err = ((self._place / name).read_text(encoding="utf-8") for name in ("out", "err"))
        return Ended(code, out, err)

    def start_fresh(self, *args: str, command: Sequence[str] = COMMAND, **settings: str) -> Ended:
        """Run it as a user does: in a new interpreter."""
        environment = {**os.environ, "COLUMNS": "200", "PYTHONIOENCODING": "utf-8", **settings}
        done = subprocess.run([*command, *args], cwd=self.folder, env=environment, capture_output=True, check=False)
        return Ended(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))

    def ask(self, message: str, *args: str, **settings: str) -> Any:
        """Run a task that must pause; returns the first question."""
        ended = self.run("run", message, "--json", *args, **settings)
        assert (3, "waiting") == (ended.code, ended.data["status"])
        return ended.data["approvals"][0]

    def open_questions(self) -> list[Any]:
        """Return what the inbox holds."""
        return list(self.run("inbox", "--json").data)

    def refunds(self) -> list[tuple[str, int]]:
        """Read from the shop's database which orders were refunded, and how much."""
        with closing(sqlite3.connect(self.shop)) as shop:
            return list(shop.execute("select order_id, amount from refunds order by rowid"))

    def write(self, name: str, text: str) -> None:
        """Put a file into the folder."""
        (self.folder / name).write_text(text, encoding="utf-8")
