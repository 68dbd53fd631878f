"""`SyncRuns`: the same, driven in the caller's thread."""

from __future__ import annotations

import math
import threading
from collections.abc import AsyncGenerator, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Unpack

from loopwright.checkpoints import Approval, Checkpoints
from loopwright.graphs import Agent
from loopwright.nodes import run_through
from loopwright.state import Happened, NotHappened, Person, PersonDecision, RunStatus

from .deciding import cancel, decide, resolve
from .doors import BlockingDoor
from .driver import Driver
from .extending import extend
from .options import DrivingOptions, ExtendOptions, RunOptions
from .recovering import EVERY, check_every, expire, keep_recovering, recover
from .results import Event, Receipt, Run, RunResult, run_of


class SyncRuns:
    """Starts, drives, pauses and resumes the runs of one agent, in the caller's own thread.

    Nothing happens in the background: `start`, `decide`, `resolve` and `cancel` only write down what is to be done, and
    `wait`, `run`, `stream`, `follow` and `recover` do it, or the thread of a block of `recovering`. Safe to share
    between threads.
    """

    def __init__(
        self,
        agent: Agent,
        checkpoints: Checkpoints,
        **options: Unpack[DrivingOptions],
    ) -> None:
        """Drive an agent over checkpoints; see `Runs`. The hooks run in the caller's thread, too."""
        self._driver = Driver(agent, checkpoints, BlockingDoor(), options)

    def __repr__(self) -> str:
        """Name the agent, and where its runs are kept."""
        return f"<{type(self).__name__} of {self._driver.told}>"

    def start(
        self,
        message: str,
        *,
        thread_id: object,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Note a run in the ledger; `wait` drives it. See `Runs.start`."""
        return run_of(run_through(self._driver.start(message, thread_id, options)))

    def run(
        self,
        message: str,
        *,
        thread_id: object,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Start a run, and drive it until it pauses or ends. See `Runs.start`."""
        return self.wait(self.start(message, thread_id=thread_id, **options).id)

    def wait(self, run_id: str) -> RunResult:
        """Drive a run that nobody drives until it pauses or ends; else wait for who does. See `Runs.wait`."""
        return run_through(self._driver.wait(run_id))

    def stream(
        self,
        message: str,
        *,
        thread_id: object,
        tokens: bool = False,
        **options: Unpack[RunOptions],
    ) -> Iterator[Event]:
        """Start a run, drive it, and yield what happens; the last event holds the result. See `Runs.stream`."""
        started = self.start(message, thread_id=thread_id, **options)
        yield from self.follow(started.id, tokens=tokens)

    def follow(self, run_id: str, *, tokens: bool = False) -> Iterator[Event]:
        """Drive a run that nobody drives, and yield what happens; of one that is driven elsewhere, only its end."""
        return _iterate(self._driver.follow(run_id, tokens=tokens))

    def get(self, run_id: str) -> RunResult:
        """Return how a run stands, without driving it. See `Runs.get`."""
        return run_through(self._driver.result(run_id))

    def list(
        self,
        *,
        status: RunStatus | None = None,
        thread_id: str = "",
        since: float = 0.0,
        before: float = math.inf,
        limit: int = 50,
    ) -> Sequence[Run]:
        """Return runs, newest first. See `Runs.list`."""
        table = self._driver.ledger.runs
        rows = table.list(status=status or "", thread_id=thread_id, since=since, before=before, limit=limit)
        return [run_of(row) for row in rows]

    def approvals(self, run_id: str = "", *, limit: int = 50) -> Sequence[Approval]:
        """Return what waits for a person, oldest first: of one run, or of all."""
        return self._driver.ledger.approvals.list_open(run_id, limit)

    def decide(self, approval_id: str, decision: PersonDecision | Mapping[str, Any], *, by: str | Person) -> Receipt:
        """Decide about a call; the first decision counts. `wait` drives on. See `Runs.decide`."""
        return run_through(decide(self._driver, approval_id, decision, by))

    def resolve(self, effect_id: str, outcome: Happened | NotHappened, *, by: str | Person) -> Receipt:
        """Say whether an effect happened whose outcome is unknown. `wait` drives on. See `Runs.resolve`."""
        return run_through(resolve(self._driver, effect_id, outcome, by))

    def cancel(self, run_id: str, *, by: str | Person) -> Receipt:
        """Ask for a run's end. `wait` carries it out, unless somebody drives the run. See `Runs.cancel`."""
        return run_through(cancel(self._driver, run_id, by))

    def extend(
        self,
        run_id: str,
        *,
        by: str,
        **more: Unpack[ExtendOptions],
    ) -> Receipt:
        """Let a run that stopped at a limit go on with more. `wait` drives on. See `Runs.extend`."""
        return run_through(extend(self._driver, run_id, more, by))

    def recover(self) -> Sequence[RunResult]:
        """Carry on what crashed workers have left, one run after another. See `Runs.recover`."""
        return run_through(recover(self._driver, self._driver.wait))

    @contextmanager
    def recovering(self, *, every: float = EVERY) -> Generator[None]:
        """Within the block, a thread looks at once and every so many seconds for what is to be carried on, and does it.

        It drives one run after another, and calls the hooks. Leaving the block waits for the run that it drives. See
        `Runs.recovering`.
        """
        check_every(every)
        over = threading.Event()

        async def carry_on(run_id: str) -> None:
            if not over.is_set():
                await self._driver.carry_on(run_id)

        async def look() -> None:
            await recover(self._driver, carry_on)

        async def rest(seconds: float) -> bool:
            return over.wait(seconds)

        def keep() -> None:
            run_through(keep_recovering(look, rest, every))

        # A daemon: whoever is in a hurry ends the process all the same, and what it drove is found by the next one.
        thread = threading.Thread(target=keep, name="loopwright-recovering", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def expire(self) -> Sequence[RunResult]:
        """Reject what was not answered in time, carry those runs on, and send the reminders. See `Runs.expire`."""
        return run_through(expire(self._driver, self._driver.wait))


def _iterate(events: AsyncGenerator[Event]) -> Iterator[Event]:
    """Iterate over what never suspends."""
    try:
        while True:
            try:
                yield run_through(anext(events))
            except StopAsyncIteration:
                return
    finally:
        run_through(events.aclose())
