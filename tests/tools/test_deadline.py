"""Calls that must be over in time."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import os
import sys
import threading
from typing import NoReturn

import pytest
from tests.world.gates import Gate
from tests.world.nursery import Nursery

from loopwright.tools import OutOfTime, acall_within, await_within, call_within, deadline

NAME: contextvars.ContextVar[str] = contextvars.ContextVar("NAME", default="")


def fail() -> NoReturn:
    """Raise the very error that a time limit of another kind would."""
    raise TimeoutError("mine")


def test_a_result_in_time() -> None:
    """The caller gets it, from a thread with the caller's context."""
    NAME.set("here")
    assert call_within(20, lambda: (NAME.get(), threading.current_thread() is threading.main_thread())) == (
        "here",
        False,
    )
    assert asyncio.run(acall_within(20, NAME.get)) == "here"


def test_late_is_late() -> None:
    """The caller is told; whoever is late goes on, unheard, and holds up nobody."""
    gate = Gate()
    with pytest.raises(OutOfTime, match=r"timed out after 0\.05 s"):
        call_within(0.05, gate.pass_through)
    assert call_within(20, lambda: "next") == "next"
    with pytest.raises(OutOfTime):
        asyncio.run(acall_within(0.05, gate.pass_through))
    gate.open()


def test_its_own_timeout_is_its_own() -> None:
    """A `TimeoutError` of the function itself is an error like any other."""
    with pytest.raises(TimeoutError, match="mine"):
        call_within(20, fail)
    with pytest.raises(TimeoutError, match="mine"):
        asyncio.run(acall_within(20, fail))


def test_exit_ends_no_process() -> None:
    """A tool that calls `sys.exit` has failed; whoever waits goes on."""
    with pytest.raises(RuntimeError, match="SystemExit: 3"):
        call_within(20, lambda: sys.exit(3))
    assert call_within(20, lambda: "still here") == "still here"


def test_what_is_awaited_is_cancelled() -> None:
    """A coroutine that is late is ended, unlike a thread."""
    ended: list[str] = []

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    with pytest.raises(OutOfTime):
        asyncio.run(await_within(0.05, forever))
    assert ended == ["ended"]


def test_what_does_not_end_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coroutine that swallows its cancellation holds up nobody, whether it is late or its caller has had enough."""
    monkeypatch.setattr(deadline, "GRACE_SECONDS", 0.01)

    async def main() -> list[str]:
        told: list[str] = []
        begun, released = asyncio.Event(), asyncio.Event()

        async def stubborn() -> None:
            begun.set()
            while not released.is_set():
                with contextlib.suppress(asyncio.CancelledError):
                    await released.wait()

        with pytest.raises(OutOfTime):
            await await_within(0.01, stubborn)
        told.append("late")
        begun.clear()
        waiting = asyncio.ensure_future(await_within(20, stubborn))
        await begun.wait()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        told.append("cancelled")
        released.set()
        return told

    assert ["late", "cancelled"] == asyncio.run(asyncio.wait_for(main(), 20))


def test_what_it_says_when_it_is_ended_counts() -> None:
    """Whoever is late, and has an answer when told so, has answered."""

    async def last_minute() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "half of it"
        return ""

    assert "half of it" == asyncio.run(await_within(0.01, last_minute))


def test_threads_are_used_again() -> None:
    """Starting one costs more than most calls do."""
    threads = {call_within(20, threading.current_thread) for _ in range(50)}
    assert len(threads) < 5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_starts_its_own_threads(nursery: Nursery) -> None:
    """Those of its parent do not exist there."""
    assert 0 == nursery.start("fork_again").result()
