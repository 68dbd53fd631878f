"""The demo: one story told twice, by real processes that really die."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from .demo_processes import Ended, clean_environment, run_together, run_watched
from .exits import Exit
from .screen import Screen

QUESTION = "Can I get a refund for my order A100? Today is 2026-10-13."
ORDER = "Refund 40000 of my order A100. Today is 2026-10-13."
PEOPLE = ("ana", "ben")
KILL = {"LOOPWRIGHT_CRASH_AT": "after_effect"}
"""What arms the shop of both stories: SIGKILL right after the refund is in its books."""

_INDENT = "   "
_AGENT = ["--agent", "loopwright.cli.demo_agent:agent"]
_KILLED = "KILLED by SIGKILL, right after the refund was in the shop's books"
_INTRODUCTION = (
    "A refund waits for a person. Two people approve it at the same moment, and the process that pays is killed right "
    "after the money has moved. Another process goes on. How often is it paid?\n\n"
    "Everything is real: the processes, the kill, the databases. Only the model is no language model: a rule-based "
    "stand-in that needs no key and no network. The refund is a part of the order's total: the shop refuses to pay "
    "back more than the total, so it would notice a second full refund, but not a second part."
)
_MORAL = (
    "The tool had run, and no checkpoint said so yet. A bare graph runs it again, and to the shop that is another "
    "refund. loopwright had claimed the effect in its ledger before, found the claim of a process that is gone, and "
    "asked the tool's verify hook: it was paid."
)


@dataclass(frozen=True, slots=True)
class Books:
    """What a story's shop has paid back, as its database says."""

    refunds: int
    paid: int


def tell(screen: Screen) -> Exit:
    """Tell both stories in a temporary folder; done only if the databases say one refund, and two.

    Where a program reads the figures from stdout, the story is told on stderr.
    """
    began = time.monotonic()
    told = Screen(is_beside=True) if screen.as_json else screen
    told.prose(_INTRODUCTION)
    with TemporaryDirectory(prefix="loopwright-demo-") as folder:
        ours = _Stage(Path(folder) / "loopwright", told)
        winner = _tell_ours(ours)
        bare = _Stage(Path(folder) / "bare", told)
        was_killed = _tell_bare(bare)
        books = (ours.books(), bare.books())
    is_so = bool(winner) and was_killed and (books[0].refunds, books[1].refunds) == (1, 2)
    _show_end(*books, is_so=is_so, screen=told)
    screen.data(
        {
            "loopwright": {"refunds": books[0].refunds, "paid": books[0].paid, "approved_by": winner},
            "bare_langgraph": {"refunds": books[1].refunds, "paid": books[1].paid},
            "as_promised": is_so,
            "seconds": round(time.monotonic() - began, 1),
        }
    )
    return Exit.DONE if is_so else Exit.ERROR


class _Stage:
    """A folder with a shop and a database of its own, in which processes play."""

    def __init__(self, folder: Path, screen: Screen) -> None:
        """Make the folder."""
        folder.mkdir()
        self._folder = folder
        self._screen = screen
        self._shop = folder / "shop.db"
        self.runs = folder / "runs.db"
        self._environment = clean_environment(
            LOOPWRIGHT_SHOP=str(self._shop),
            LOOPWRIGHT_CHECKPOINTS=f"sqlite:///{self.runs}",
            LOOPWRIGHT_LEASE_SECONDS="3",  # so that nobody who watches has to wait long
            COLUMNS=str(screen.width - len(_INDENT)),
        )

    def title(self, text: str) -> None:
        """Begin a scene."""
        self._screen.line()
        self._screen.line(text, bold=True)

    def show(self, line: str) -> None:
        """Show a line of a process."""
        self._screen.line(f"{_INDENT}{line}".rstrip())

    def say(self, text: str) -> None:
        """Tell what cannot be seen in the output."""
        self._screen.prose(text, indent=_INDENT)

    def play(self, module: str, *args: str, is_armed: bool = False, is_quiet: bool = False) -> Ended:
        """Run a process, and show what it writes."""
        watch: Callable[[str], None] = _ignore if is_quiet else self.show
        environment = {**self._environment, **(KILL if is_armed else {})}
        return run_watched(module, args, folder=self._folder, environment=environment, watch=watch)

    def race(self, module: str, *each: list[str]) -> list[Ended]:
        """Run several processes that are let go together, all armed."""
        return run_together(module, each, folder=self._folder, environment={**self._environment, **KILL})

    def books(self) -> Books:
        """Read from the shop's database what was paid."""
        if not self._shop.exists():
            return Books(0, 0)
        with closing(sqlite3.connect(self._shop)) as shop:
            count, paid = shop.execute("select count(*), coalesce(sum(amount), 0) from refunds").fetchone()
        return Books(count, paid)


def _ignore(_: str) -> None:
    pass


def _tell_ours(stage: _Stage) -> str:
    """Tell the story with loopwright; returns whose approval counted, if it went as it should."""
    stage.title("loopwright 1: a question about an order is answered")
    stage.show(f'$ loopwright run "{QUESTION}"')
    stage.play("loopwright.cli", "run", QUESTION, *_AGENT)

    stage.title("loopwright 2: a refund waits for a person")
    stage.show(f'$ loopwright run "{ORDER}"')
    stage.play("loopwright.cli", "run", ORDER, *_AGENT)
    waiting = json.loads("\n".join(stage.play("loopwright.cli", "inbox", "--json", is_quiet=True).lines))[0]

    stage.title("loopwright 3: ana and ben approve at the same moment, in two processes")
    id_, run = waiting["id"][:6], waiting["run_id"][:6]
    winner = _race(stage, id_)

    stage.title("loopwright 4: another process carries the run on")
    stage.show(f"$ loopwright resume {run}")
    ended = stage.play("loopwright.cli", "resume", waiting["run_id"])
    return winner if ended.code == Exit.DONE else ""


def _race(stage: _Stage, id_: str) -> str:
    """Let both people approve; returns whose process was killed while it paid, if exactly one was."""
    commands = [["approve", id_, "--by", name] for name in PEOPLE]
    ended = dict(zip(PEOPLE, stage.race("loopwright.cli.demo_child", *commands), strict=True))
    for name, process in sorted(ended.items(), key=lambda item: not item[1].was_killed):
        stage.show(f"$ loopwright approve {id_} --by {name}")
        for line in process.lines:
            stage.show(line)
        if process.was_killed:
            stage.show(_KILLED)
        stage.show("")
    stage.say(f"The shop's books now say: {stage.books().refunds} refund.")
    killed = [name for name, process in ended.items() if process.was_killed]
    told = [name for name, process in ended.items() if process.code == Exit.DONE]
    return killed[0] if len(killed) == len(told) == 1 else ""


def _tell_bare(stage: _Stage) -> bool:
    """Tell it with a bare LangGraph graph; returns whether the process was killed."""
    module, path = "loopwright.cli.demo_bare", str(stage.runs)
    stage.title("bare LangGraph 1: the same question, with the same model and tools")
    stage.play(module, "ask", path, "question", QUESTION)

    stage.title("bare LangGraph 2: the same refund waits for a person, at an interrupt")
    stage.play(module, "ask", path, "refund", ORDER)

    stage.title("bare LangGraph 3: one person approves, and the same kill strikes")
    ended = stage.play(module, "approve", path, "refund", is_armed=True)
    stage.show(_KILLED if ended.was_killed else "")
    stage.show("")
    stage.say(f"The shop's books now say: {stage.books().refunds} refund.")

    stage.title("bare LangGraph 4: another process carries the graph on")
    stage.play(module, "resume", path, "refund")
    return ended.was_killed


def _show_end(ours: Books, bare: Books, *, is_so: bool, screen: Screen) -> None:
    screen.line()
    screen.line(f"{'':<16}{'refunds':>10}{'paid':>10}", bold=True)
    screen.line(f"{'loopwright':<16}{ours.refunds:>10}{ours.paid:>10}")
    screen.line(f"{'bare LangGraph':<16}{bare.refunds:>10}{bare.paid:>10}")
    screen.line()
    if is_so:
        screen.prose(_MORAL)
    else:
        screen.note("error: this is not what the demo promises; please report it with the output above")
