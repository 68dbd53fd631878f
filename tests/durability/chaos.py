"""Many runs, a few workers, and somebody who kills them at random: nothing is lost, nothing is done twice.

`python -m tests.durability.chaos --seconds 60 --runs 200 --url sqlite:///runs.db` prints how it goes, and what was
counted at the end; its exit code is 1 if anything was lost, or done twice. Without `--url` it takes a file in a folder
of its own; with `--postgres` a server of its own.
"""

from __future__ import annotations

import argparse
import os
import random
import select
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.messages import AnyMessage
from tests.world.bank import Bank, build_pay, look_up
from tests.world.nursery import KILLED, Channel, Child, Nursery
from tests.world.plans import spoken
from tests.world.postgres import Postgres
from tests.world.recovery import KINDS

from loopwright import (
    Approval,
    Checkpoints,
    SyncRuns,
    approve,
    create_agent,
    happened,
    not_happened,
    open_checkpoints,
    reject,
)
from loopwright.state import Question
from loopwright.testing import ScriptedModel, call, check_transcript

WORKERS = 4
LEASE_SECONDS = 2.0
PATIENCE = 90.0
"""Seconds after the last kill by which everything must have ended."""
MANY = 100_000


class Office:
    """One agent for each kind of tool, over one bank and one store: what every process has."""

    def __init__(self, folder: Path, checkpoints: Checkpoints) -> None:
        """Open the bank, and build the agents."""
        self.bank = Bank(folder / "bank.db")
        self.checkpoints = checkpoints
        self.desks = {f"kind-{number}": self._desk(number, kind) for number, kind in enumerate(KINDS)}

    def _desk(self, number: int, kind: dict[str, Any]) -> SyncRuns:
        pay = build_pay(self.bank, before=dawdle, after=dawdle, **kind)
        agent = create_agent(ScriptedModel([say] * MANY), [look_up, pay])
        return SyncRuns(agent, self.checkpoints, reference=f"kind-{number}")

    def desk_of(self, run_id: str) -> SyncRuns:
        """Return who drives a run."""
        row = self.checkpoints.ledger.runs.find(run_id)
        assert row is not None
        return self.desks[row.agent]

    def click(self, asked: Approval) -> None:
        """Answer a question twice, as an honest person with a nervous finger does."""
        desk = self.desk_of(asked.run_id)
        if asked.question == Question.APPROVAL:
            desk.decide(asked.id, approve(), by="ana")
            assert not desk.decide(asked.id, reject("no"), by="ben").accepted
        else:
            key = self.checkpoints.ledger.effects.get(asked.effect_id).key
            outcome = happened("found in the bank") if self.bank.keys().count(key) else not_happened()
            desk.resolve(asked.effect_id, outcome, by="ana")
            assert not desk.resolve(asked.effect_id, outcome, by="ben").accepted


def dawdle() -> None:
    """Take some time, so that a kill may fall into it."""
    threading.Event().wait(0.05)


def say(messages: list[AnyMessage]) -> Any:
    """Look the order up that the user names, pay it, and say so."""
    task = next(message.text for message in reversed(messages) if message.type == "human")
    order = task.split()[-1]
    return [call("look_up", order_id=order), call("pay", order_id=order, amount=1), "Paid."][spoken(messages)]


def work(channel: Channel, *, folder: str, url: str, seed: int) -> None:
    """Carry on whatever is to be done, and answer whatever is asked, until the other side hangs up."""
    dice = random.Random(seed)  # noqa: S311 -- no secret
    with open_checkpoints(url, lease_seconds=LEASE_SECONDS, pool_size=2) as checkpoints:
        office = Office(Path(folder), checkpoints)
        while not is_over(channel):
            rows = checkpoints.ledger.runs.unfinished()
            asked = checkpoints.ledger.approvals.list_open(limit=20)
            if rows:
                row = dice.choice(rows[:10])
                office.desks[row.agent].wait(row.id)
            if asked:
                office.click(dice.choice(asked))
            if not rows and not asked:
                threading.Event().wait(0.02)


def is_over(channel: Channel) -> bool:
    """Tell whether the other side has hung up; it never says anything else."""
    return bool(select.select([channel.fileno()], [], [], 0)[0])


@dataclass(frozen=True, slots=True)
class Report:
    """What was counted."""

    runs: int
    kills: int
    crashed: int
    """Workers that ended by themselves: there should be none."""
    succeeded: int
    paid: int
    twice: int
    """Orders that were paid more than once."""
    unknown: int
    """Questions about an outcome that nobody knew."""
    seconds: float

    @property
    def is_as_promised(self) -> bool:
        """Whether nothing was lost, and nothing was done twice."""
        return (self.succeeded, self.paid, self.twice, self.crashed) == (self.runs, self.runs, 0, 0)


class Chaos:
    """The workers, and who kills them."""

    def __init__(self, nursery: Nursery, office: Office, folder: Path, url: str, seed: int) -> None:
        """Start nothing yet."""
        self._nursery = nursery
        self._office = office
        self._options = {"folder": str(folder), "url": url}
        self._dice = random.Random(seed)  # noqa: S311 -- no secret
        self._workers: list[Child] = []
        self._kills = 0
        self._crashed = 0
        self._started = 0

    def run(self, runs: int, seconds: float, tell: Callable[[str], None]) -> Report:
        """Start runs evenly over some seconds, killing workers meanwhile; then let them end what is left."""
        self._workers = [self._hire() for _ in range(WORKERS)]
        began = told = time.monotonic()
        while (passed := time.monotonic() - began) < seconds + PATIENCE:
            while self._started < min(runs, runs * passed / (seconds * 0.9)):
                self._start()
            threading.Event().wait(self._dice.uniform(0.05, 0.5))
            if passed < seconds:
                self._replace(self._dice.randrange(WORKERS))
            elif not self._left():
                break
            if time.monotonic() - told > 5:
                told = time.monotonic()
                tell(f"{passed:5.1f} s: {self._started} runs, {self._left()} not ended, {self._kills} kills")
        for worker in self._workers:
            worker.hang_up()
        self._crashed += sum(worker.wait() != 0 for worker in self._workers)
        return self._count(time.monotonic() - began)

    def _hire(self) -> Child:
        task = "tests.durability.chaos:work"
        return self._nursery.start(task, seed=self._dice.randrange(2**32), **self._options)

    def _start(self) -> None:
        number = self._started
        desk = self._office.desks[f"kind-{number % len(KINDS)}"]
        desk.start(f"Please refund O{number}", thread_id=f"t{number}", run_id=f"r{number}")
        self._started += 1

    def _replace(self, place: int) -> None:
        worker = self._workers[place]
        os.kill(worker.pid, signal.SIGKILL)
        self._crashed += worker.wait() != KILLED
        self._kills += 1
        self._workers[place] = self._hire()

    def _left(self) -> int:
        rows = self._office.checkpoints.ledger.runs.list(limit=MANY)
        return self._started - sum(row.is_final for row in rows)

    def _count(self, seconds: float) -> Report:
        """Look at everything, click on every question once more, and count."""
        ledger, unknown, succeeded = self._office.checkpoints.ledger, 0, 0
        for number in range(self._started):
            desk = self._office.desk_of(f"r{number}")
            result = desk.get(f"r{number}")
            check_transcript(result.messages)
            succeeded += (result.status, result.answer) == ("succeeded", "Paid.")
            for asked in ledger.approvals.of_run(f"r{number}"):
                unknown += asked.question == Question.OUTCOME
                assert not desk.decide(asked.id, {"type": "reject"}, by="carl").accepted
        decided = Counter(r.data["approval"] for r in ledger.log.records() if r.event == "decided")
        assert {*decided.values()} <= {1}
        assert ledger.log.verify().is_whole
        paid = Counter(order for order, _ in self._office.bank.payments())
        twice = sum(count > 1 for count in paid.values())
        return Report(
            self._started, self._kills, self._crashed, succeeded, len(paid), twice, unknown, round(seconds, 1)
        )


def unleash(
    nursery: Nursery, folder: Path, url: str, *, runs: int, seconds: float, seed: int, tell: Callable[[str], None]
) -> Report:
    """Do it all over a store; returns what was counted."""
    with open_checkpoints(url, lease_seconds=LEASE_SECONDS) as checkpoints:
        return Chaos(nursery, Office(folder, checkpoints), folder, url, seed).run(runs, seconds, tell)


def main() -> None:
    """Read the options, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--url", default="")
    parser.add_argument("--postgres", action="store_true")
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        nursery = stack.enter_context(Nursery())
        stack.callback(nursery.sweep)
        url = given.url or f"sqlite:///{folder / 'runs.db'}"
        if given.postgres:
            server = stack.enter_context(Postgres())
            url = stack.enter_context(server.database()).url
        options = {"runs": given.runs, "seconds": given.seconds, "seed": given.seed}
        report = unleash(nursery, folder, url, tell=tell, **options)
    tell(str(report))
    sys.exit(not report.is_as_promised)


def tell(line: str) -> None:
    """Print a line at once."""
    print(line, flush=True)  # noqa: T201 -- its output


if __name__ == "__main__":
    main()
