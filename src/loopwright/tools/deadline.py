"""Calls that must be over in time."""

from __future__ import annotations

import asyncio
import contextvars
import os
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")

Late = Callable[[Future[Any]], None]
"""Gets the future of a call at the moment from which on nobody waits for it; it is done once the call is over."""

MAX_IDLE = 16
"""So many threads are kept for the next call: starting one costs about as much as a super-step."""

GRACE_SECONDS = 1.0
"""So long is waited for what was cancelled, so that it can tidy up."""

_left: set[asyncio.Future[Any]] = set()
"""What would not end; asyncio itself keeps no task alive."""

_idle: deque[SimpleQueue[Callable[[], None]]] = deque()
"""The inboxes of the threads that wait."""
if hasattr(os, "register_at_fork"):  # not on Windows, which has no fork
    os.register_at_fork(after_in_child=_idle.clear)  # a child has none of these threads


class OutOfTime(Exception):
    """Raised when a call was not over in time; unlike `TimeoutError`, never by the call itself."""

    def __init__(self, seconds: float) -> None:
        """Keep how long was waited."""
        super().__init__(f"timed out after {seconds:g} s")
        self.seconds = seconds


class Aborted(RuntimeError):
    """Raised in place of what would end more than the call: `SystemExit`, or a cancellation from within."""


def call_within(seconds: float, function: Callable[[], T], late: Late | None = None) -> T:
    """Call a blocking function, and give up waiting after `seconds`.

    Python cannot end a thread: one that is late goes on, and `late` is told. It is a daemon, so that it cannot hold up
    the end of the process.

    Raises:
        OutOfTime: If it was not over in time.
    """
    future = _begin(function)
    try:
        return future.result(seconds)
    except TimeoutError:
        if future.done():  # the function's own TimeoutError
            raise
        _leave(future, late)
        raise OutOfTime(seconds) from None
    except BaseException:
        _leave(future, late)
        raise


async def acall_within(seconds: float, function: Callable[[], T], late: Late | None = None) -> T:
    """Do the same without blocking the event loop."""
    return await await_within(seconds, lambda: call_aside(function, late), late)


async def call_aside(function: Callable[[], T], late: Late | None = None) -> T:
    """Do the same for as long as it takes: the bound is the caller's."""
    future = _begin(function)
    try:
        # A shield: cancelling the wait must not mark as cancelled what goes on in its thread.
        return await asyncio.shield(asyncio.wrap_future(future))
    except asyncio.CancelledError:
        _leave(future, late)
        raise


def _leave(future: Future[Any], late: Late | None) -> None:
    """Wait no longer."""
    if late is not None and not future.cancelled():
        late(future)


async def await_within(seconds: float, start: Callable[[], Awaitable[T]], late: Late | None = None) -> T:
    """Await something in a task of its own, and cancel it after `seconds`.

    What does not end then, or with whoever waits, is left behind after `GRACE_SECONDS`, and `late` is told.

    Raises:
        OutOfTime: If it was not over in time.
        Aborted: If it raised what would end more than itself.
    """
    task = asyncio.ensure_future(_contained(start))
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:
        await _end(task, late)
        raise
    if task.done():
        return task.result()
    await _end(task, late)
    if task.done() and not task.cancelled():  # it had something to say after all
        return task.result()
    raise OutOfTime(seconds)


async def _end(task: asyncio.Future[Any], late: Late | None) -> None:
    """Cancel a task, and wait until it has ended, but not for ever."""
    task.cancel()
    try:
        await asyncio.wait({task}, timeout=GRACE_SECONDS)
    finally:  # whoever waits may be cancelled once more
        if not task.done():
            _left.add(task)
            _leave(_followed(task), late)
        task.add_done_callback(_forget)


def _followed(task: asyncio.Future[Any]) -> Future[Any]:
    """Return a future that is done, in a thread, once the task is: what follows may block, and no event loop must."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()

    def end() -> None:
        if task.cancelled():
            future.set_exception(Aborted("it was cancelled"))
        elif error := task.exception():
            future.set_exception(error)
        else:
            future.set_result(task.result())

    task.add_done_callback(lambda _: _hand_over(end))
    return future


def _forget(task: asyncio.Future[Any]) -> None:
    _left.discard(task)
    if not task.cancelled():
        task.exception()  # looked at, so that asyncio does not report it as lost


async def _contained(start: Callable[[], Awaitable[T]]) -> T:
    """Await it; a task that raises `SystemExit` would end the loop, and the process."""
    try:
        return await start()
    except (Exception, asyncio.CancelledError, KeyboardInterrupt):
        raise
    except BaseException as error:  # noqa: BLE001 -- whatever it is, it belongs to whoever waits
        raise Aborted(f"{type(error).__name__}: {error}") from None


def _begin(function: Callable[[], T]) -> Future[T]:
    """Run a function in a thread that does nothing else meanwhile, within the caller's context variables."""
    future: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        try:
            result = context.run(function)
        except (StopIteration, StopAsyncIteration) as error:  # which no future can carry to a coroutine
            future.set_exception(Aborted(f"{type(error).__name__}: {error}"))
        except Exception as error:  # noqa: BLE001 -- whatever it is, it belongs to whoever waits
            future.set_exception(error)
        except BaseException as error:  # noqa: BLE001 -- `sys.exit` ends the thread that calls it, not the one that waits
            future.set_exception(Aborted(f"{type(error).__name__}: {error}"))
        else:
            future.set_result(result)

    future.set_running_or_notify_cancel()
    _hand_over(work)
    return future


def _hand_over(work: Callable[[], None]) -> None:
    """Give work to a thread that waits for some, or to a new one: a late call never holds up another."""
    inbox: SimpleQueue[Callable[[], None]]
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), name="loopwright-call", daemon=True).start()
    inbox.put(work)


def _serve(inbox: SimpleQueue[Callable[[], None]]) -> None:
    """Do what comes in, one call after the other; end when enough other threads wait already."""
    while True:
        inbox.get()()
        if len(_idle) >= MAX_IDLE:
            return
        _idle.append(inbox)
