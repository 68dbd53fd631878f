"""`Runs`: what an async service embeds."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Final, Self, TypeVar, Unpack

from loopwright.checkpoints import Approval, Checkpoints
from loopwright.graphs import Agent
from loopwright.state import Happened, NotHappened, Person, PersonDecision, RunStatus

from .deciding import cancel, decide, resolve
from .doors import AsyncDoor
from .driver import Driver
from .extending import extend
from .options import DrivingOptions, ExtendOptions, RunOptions
from .recovering import EVERY, check_every, expire, keep_recovering, parked_until, recover
from .results import Event, Receipt, Run, RunResult, run_of

logger = logging.getLogger(__name__)

T = TypeVar("T")

AT_ONCE: Final = 100
"""How many runs that others have left are carried on at a time: after an outage there may be thousands."""

AGAIN: Final = (1.0, 5.0, 30.0, 120.0, 600.0)
"""Seconds until a parked run that could not be woken is tried again; after the last one it is for `recovering`."""


class Runs:
    """Starts, drives, pauses and resumes the runs of one agent, in this process's event loop.

    `start`, `decide`, `resolve` and `cancel` return at once; what follows of them is driven in the background, and so
    is a run that was parked here, when its time has come. `recovering` looks after what others have left. Many
    processes may do so over one database: a lease a thread
    keeps them apart, and what must happen once is claimed in the ledger.
    """

    def __init__(
        self,
        agent: Agent,
        checkpoints: Checkpoints,
        **options: Unpack[DrivingOptions],
    ) -> None:
        """Drive an agent over checkpoints.

        Args:
            agent: Made by `create_agent`; its graph is built anew with this saver and ledger.
            checkpoints: Opened; `Runs` does not close it.
            **options: See `DrivingOptions`: `reference`, `on_reminder` and `restore_context`.

        Raises:
            ConfigurationError: If an option is unknown, or a reference cannot be kept.
        """
        self._driver = Driver(agent, checkpoints, AsyncDoor(), options, self._rested)
        self._tasks: dict[str, asyncio.Task[Any]] = {}
        self._recovered: set[asyncio.Task[RunResult | None]] = set()
        """Those of them that carry on what others have left."""
        self._timers: dict[str, asyncio.TimerHandle] = {}
        """Of the runs that are parked."""
        self._is_closed = False

    def __repr__(self) -> str:
        """Name the agent, and where its runs are kept."""
        return f"<{type(self).__name__} of {self._driver.told}>"

    async def start(
        self,
        message: str,
        *,
        thread_id: object,
        **options: Unpack[RunOptions],
    ) -> Run:
        """Start a run and drive it in the background; it stands in the ledger before this returns.

        Args:
            message: The task, in the user's words.
            thread_id: The conversation that it belongs to.
            **options: See `RunOptions`: `run_id`, `requester`, `labels`, `context` and `state`.

        Raises:
            ConfigurationError: If the message is empty, the thread id or a label cannot be used, the context does not
                fit, a channel does not take what it is given, a rule needs a requester, a budget a label, or an option
                is unknown.
        """
        row = await self._driver.start(message, thread_id, options)
        self._spawn(row.id)
        return run_of(row)

    async def run(
        self,
        message: str,
        *,
        thread_id: object,
        **options: Unpack[RunOptions],
    ) -> RunResult:
        """Start a run as `start` does, and wait until it pauses or ends."""
        started = await self.start(message, thread_id=thread_id, **options)
        return await self.wait(started.id)

    async def wait(self, run_id: str) -> RunResult:
        """Wait until a run pauses or ends; drives it if nobody does.

        Raises:
            RunNotFound: If there is no such run.
        """
        return await asyncio.shield(self._spawn(run_id))

    async def stream(
        self,
        message: str,
        *,
        thread_id: object,
        tokens: bool = False,
        **options: Unpack[RunOptions],
    ) -> AsyncGenerator[Event]:
        """Start a run as `start` does, drive it here, and yield what happens; the last event holds the result.

        With `tokens` the model's reply is streamed, and its text comes in pieces, as `TEXT`. Pieces of an attempt that
        failed are followed by `FAILED_ATTEMPT`, and then count for nothing.
        """
        row = await self._driver.start(message, thread_id, options)
        async with aclosing(self.follow(row.id, tokens=tokens)) as events:
            async for event in events:
                yield event

    async def follow(self, run_id: str, *, tokens: bool = False) -> AsyncGenerator[Event]:
        """Drive a run that nobody drives, and yield what happens; of one that is driven elsewhere, only its end."""
        async with aclosing(self._driver.follow(run_id, tokens=tokens)) as events:
            async for event in events:
                yield event

    async def get(self, run_id: str) -> RunResult:
        """Return how a run stands, without driving it.

        Raises:
            RunNotFound: If there is no such run.
        """
        return await self._driver.result(run_id)

    async def list(
        self,
        *,
        status: RunStatus | None = None,
        thread_id: str = "",
        since: float = 0.0,
        before: float = math.inf,
        limit: int = 50,
    ) -> Sequence[Run]:
        """Return runs, newest first.

        Args:
            status: Only those that stand so.
            thread_id: Only those of this thread.
            since: Only those started then or later; in seconds since the epoch.
            before: Only those started earlier: with `created_at` of the last one, the next page.
            limit: How many at most.

        Raises:
            ConfigurationError: If a status, a time or a limit is none.
        """
        table = self._driver.ledger.runs
        rows = await asyncio.to_thread(
            table.list, status=status or "", thread_id=thread_id, since=since, before=before, limit=limit
        )
        return [run_of(row) for row in rows]

    async def approvals(self, run_id: str = "", *, limit: int = 50) -> Sequence[Approval]:
        """Return what waits for a person, oldest first: of one run, or of all."""
        return await asyncio.to_thread(self._driver.ledger.approvals.list_open, run_id, limit)

    async def decide(
        self, approval_id: str, decision: PersonDecision | Mapping[str, Any], *, by: str | Person
    ) -> Receipt:
        """Decide about a call; the first decision counts, and is stored before this returns.

        Where several people must approve, an approval counts as a vote until their number is reached. May be called any
        number of times: a late one gets a receipt that is not accepted, and tells which one counts.

        Args:
            approval_id: Of the question.
            decision: From `approve()`, `edit(…)`, `reject(…)` or `respond(…)`, or their JSON form.
            by: Who decides. A text is a name without roles.

        Raises:
            ApprovalNotFound: If nothing was ever asked under that id.
            InvalidDecision: If it is no decision, cannot be taken here, or not by this person; the question stays open.
        """
        receipt = await decide(self._driver, approval_id, decision, by)
        self._spawn(receipt.run_id)
        return receipt

    async def resolve(self, effect_id: str, outcome: Happened | NotHappened, *, by: str | Person) -> Receipt:
        """Say whether an effect happened whose outcome is unknown.

        After `not_happened()` its call is screened and asked anew, under a new claim.

        Raises:
            EffectNotFound: If there is no such effect.
            InvalidDecision: If it is no outcome, or the effect is being run right now.
        """
        receipt = await resolve(self._driver, effect_id, outcome, by)
        self._spawn(receipt.run_id)
        return receipt

    async def cancel(self, run_id: str, *, by: str | Person) -> Receipt:
        """End a run: its questions are withdrawn; no further model call, and no call with an effect, is begun.

        A tool call that has begun is not interrupted; its result is kept.

        Raises:
            RunNotFound: If there is no such run.
        """
        receipt = await cancel(self._driver, run_id, by)
        self._spawn(run_id)
        return receipt

    async def extend(
        self,
        run_id: str,
        *,
        by: str,
        **more: Unpack[ExtendOptions],
    ) -> Receipt:
        """Let a run that stopped at a limit go on with more; stored before this returns, and never reset.

        What is added holds for the run and for what its thread leaves to it; a shared budget is not moved by it. A
        second click while the run goes on adds nothing, and gets a receipt that is not accepted.

        Args:
            run_id: Of a run that is `stopped` at `max_steps`, `max_tool_calls`, `max_tokens`, `max_cost` or `deadline`.
            by: Who says so; kept in the log.
            **more: See `ExtendOptions`: `steps`, `tool_calls`, `tokens`, `cost` and `seconds`, and `key`.

        Raises:
            RunNotFound: If there is no such run.
            RunError: If it did not stop at a limit, its thread has gone on, or it would stop at once again.
            ConfigurationError: If an amount has the wrong form, nothing is added, or an option is unknown.
        """
        receipt = await extend(self._driver, run_id, more, by)
        self._spawn(run_id)
        return receipt

    async def recover(self) -> Sequence[RunResult]:
        """Carry on what crashed workers have left, and what was decided, has expired, or was parked until now.

        One look, which returns when all of it has come to rest; a service uses `recovering`. Safe in many processes at
        once. A run that cannot be carried on is logged, and does not keep the others from it.
        """
        results = await recover(self._driver, self.wait)
        await self._set_timers()
        return results

    async def _set_timers(self) -> None:
        """Wake here what is parked, whoever drove it until then."""
        for run_id, until in (await parked_until(self._driver)).items():
            self._wake_at(run_id, until)

    @asynccontextmanager
    async def recovering(self, *, every: float = EVERY) -> AsyncGenerator[None]:
        """Within the block, look at once and then every so many seconds for what is to be carried on.

        What crashed workers have left, what was decided, has expired or was parked until now is driven in the
        background, and reminders are sent. Looks do not overlap, and not all processes look at the same moment; safe in
        many at once. One that fails is logged (`action` is `recovery_failed`), and the next one tries again. Leaving
        the block waits for a look that is under way, not for the runs: the block of `Runs` does that.

        Args:
            every: Seconds between two looks, a fifth more or less. A process that has just died is missed when its
                lease has run out: `lease_seconds` of `open_checkpoints`.

        Raises:
            ConfigurationError: If that is no time.
        """
        check_every(every)
        over = asyncio.Event()

        async def look() -> None:
            await recover(self._driver, lambda run_id: self._carry_on(run_id, over))
            await self._set_timers()

        async def rest(seconds: float) -> bool:
            with suppress(TimeoutError):
                await asyncio.wait_for(over.wait(), seconds)
            return over.is_set()

        keeping = asyncio.create_task(keep_recovering(look, rest, every), name="loopwright-recovering")
        try:
            yield
        finally:
            over.set()
            await keeping

    async def _carry_on(self, run_id: str, over: asyncio.Event) -> None:
        """Drive a run that was left in the background, unless it is driven here, or there is no more to be begun."""
        while len(self._recovered) >= AT_ONCE:
            await asyncio.wait(self._recovered, return_when=asyncio.FIRST_COMPLETED)
        if over.is_set() or run_id in self._tasks:
            return
        task = self._drive(run_id, self._driver.carry_on)
        self._recovered.add(task)
        task.add_done_callback(self._recovered.discard)

    async def expire(self) -> Sequence[RunResult]:
        """Reject what was not answered in time, carry on those runs and what was parked until now, and send reminders.

        A question whose time is up cannot be approved any more, with or without this; it is what makes the run go on.
        Call it now and then; safe in many processes at once. Returns the runs that were carried on; one that cannot be
        is logged, and does not keep the others from it.
        """
        return await expire(self._driver, self.wait)

    async def drain(self) -> None:
        """Wait until nothing is driven here any more: every run has ended, or waits."""
        while self._tasks:
            await asyncio.wait(self._tasks.values())

    def _rested(self, result: RunResult) -> None:
        """Set the timer of a run that is parked, and take back that of one that is not."""
        self._wake_at(result.run_id, None if result.parked is None else result.parked.until)

    def _wake_at(self, run_id: str, until: float | None) -> None:
        if before := self._timers.pop(run_id, None):
            before.cancel()
        if until is not None:
            self._wake_in(run_id, max(0.0, until - self._driver.ledger.clock()), AGAIN)

    def _wake_in(self, run_id: str, seconds: float, again: Sequence[float]) -> None:
        if not self._is_closed:
            self._timers[run_id] = asyncio.get_running_loop().call_later(seconds, self._wake, run_id, again)

    def _wake(self, run_id: str, again: Sequence[float]) -> None:
        """Drive a run whose time has come; where that fails, as when the database is away, try again later."""
        self._timers.pop(run_id, None)
        self._spawn(run_id).add_done_callback(lambda done: self._woken(run_id, done, again))

    def _woken(self, run_id: str, task: asyncio.Task[RunResult], again: Sequence[float]) -> None:
        """Look whether it was driven; that it was not is logged already."""
        if task.cancelled() or task.exception() is None or run_id in self._timers:
            return
        if again:
            self._wake_in(run_id, again[0], again[1:])
            return
        extra = {"action": "run_not_woken", "run_id": run_id}
        logger.warning("run %s is not woken here any more; `recover` carries it on", run_id, extra=extra)

    def _spawn(self, run_id: str) -> asyncio.Task[RunResult]:
        """Drive a run in the background; one task a run at a time, and one more behind it if something came up."""
        return self._drive(run_id, self._driver.wait)

    def _drive(self, run_id: str, drive: Callable[[str], Coroutine[Any, Any, T]]) -> asyncio.Task[T]:
        before = self._tasks.get(run_id)

        async def after() -> T:
            if before is not None:
                await asyncio.wait([before])
            return await drive(run_id)

        task = asyncio.get_running_loop().create_task(after(), name=f"loopwright-run-{run_id}")
        self._tasks[run_id] = task
        task.add_done_callback(lambda done: self._done(run_id, done))
        return task

    def _done(self, run_id: str, task: asyncio.Task[Any]) -> None:
        if self._tasks.get(run_id) is task:
            del self._tasks[run_id]
        if not task.cancelled() and (error := task.exception()) is not None:
            extra = {"action": "run_not_driven", "run_id": run_id}
            logger.warning("run %s could not be driven on: %s", run_id, error, extra=extra)

    async def __aenter__(self) -> Self:
        """Use it in a block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drain; what is parked by then is carried on by `expire` or `recover`, in whichever process."""
        self._is_closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        await self.drain()
