"""Driving in another thread, so that what is said in the middle of a step reaches the caller at once."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from queue import SimpleQueue
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

Say = Callable[[Any], None]


class _Work(Generic[T]):
    """The other thread; it stays one item ahead of nobody: each waits until the one before was taken."""

    def __init__(self, start: Callable[[Say], Iterator[T]]) -> None:
        self.came: SimpleQueue[tuple[str, Any]] = SimpleQueue()
        self.is_wanted = True
        self._start = start
        self._taken = threading.Semaphore(0)

    def run(self) -> None:
        try:
            with closing(cast("Any", self._start(lambda said: self.came.put(("said", said))))) as items:
                for item in items:
                    self.came.put(("item", item))
                    self._taken.acquire()
                    if not self.is_wanted:
                        break
        except BaseException as error:  # noqa: BLE001 -- it belongs to whoever waits
            self.came.put(("raised", error))
        else:
            self.came.put(("done", None))

    def go_on(self, *, is_wanted: bool = True) -> None:
        """Let the next step begin, or none any more."""
        self.is_wanted = is_wanted
        self._taken.release()


def alongside(start: Callable[[Say], Iterator[T]]) -> Generator[tuple[bool, T]]:
    """Iterate over items that another thread makes, and over what is said meanwhile; the flag tells items.

    The next item is not begun before this one was taken. Whoever stops in the middle of one waits for its end, unless
    it is by an interrupt of the keyboard: then the process ends, and what was stored is carried on by the next one.
    """
    work = _Work(start)
    thread = threading.Thread(
        target=contextvars.copy_context().run, args=(work.run,), name="loopwright-drive", daemon=True
    )
    thread.start()
    is_waited_for = True
    try:
        while True:
            kind, came = work.came.get()
            if kind == "done":
                return
            if kind == "raised":
                raise came
            yield kind == "item", came
            if kind == "item":
                work.go_on()
    except KeyboardInterrupt:
        is_waited_for = False
        raise
    finally:
        work.go_on(is_wanted=False)
        if is_waited_for:
            thread.join()
