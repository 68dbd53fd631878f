"""A step of the ring as a LangGraph node with both doors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from contextlib import nullcontext
from typing import Any, TypeVar

from langchain_core.runnables import Runnable, RunnableConfig

from loopwright.errors import StorageCorrupt
from loopwright.state import count_steps, to_plain

from .ledgers import Ledgers
from .port import AsyncPort, BlockingPort, Port
from .spec import AgentSpec

T = TypeVar("T")

PLACES_KEY = "__loopwright_places"
"""In `configurable`: a semaphore of so many calls as may run at once, where the pool of threads cannot count them."""

Step = Callable[[Any, Port], Awaitable[dict[str, Any]]]
Enter = Callable[[Any, Port], Awaitable[None]]


class Node(Runnable[Any, Any]):
    """One `async def` step as a LangGraph node with both doors; as cheap as a native node of either kind."""

    def __init__(
        self, name: str, step: Step, spec: AgentSpec, ledgers: Ledgers, *, on_branch: Enter | None = None
    ) -> None:
        """Bind a step to an agent; `on_branch` comes before it where the caller has asked for a branch."""
        self.name = name
        self._step = step
        self._spec = spec
        self._ledgers = ledgers
        self._on_branch = on_branch

    def _taken(self, given: Any) -> Any:
        """Return what the step works on.

        Raises:
            StorageCorrupt: If a stored state does not say whose it is: it must not be taken for a thread that begins.
        """
        if self.name == "act":
            return given
        if self.name != "observe" and "run" not in given:
            text = "the stored state of this thread does not say which run it belongs to; restore it from a backup"
            raise StorageCorrupt(text)
        return count_steps(given)

    async def _work(self, given: Any, port: Port) -> dict[str, Any]:
        if port.place.branch_from and self._on_branch is not None:
            await self._on_branch(given, port)
        return await self._step(given, port)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ARG002 -- LangChain's signature
        """Drive the step through, blocking."""
        places = (config or {}).get("configurable", {}).get(PLACES_KEY) if self.name == "act" else None
        with places or nullcontext():
            port = BlockingPort(self._spec, self._ledgers, config or {})
            return to_plain(run_through(self._work(self._taken(input), port)))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002, ARG002 -- LangChain's signature
        """Await the step."""
        port = AsyncPort(self._spec, self._ledgers, config or {})
        return to_plain(await self._work(self._taken(input), port))


def run_through(step: Awaitable[T]) -> T:
    """Run a coroutine that never suspends."""
    coroutine: Coroutine[Any, Any, T] = step  # type: ignore[assignment] # pyright: ignore[reportAssignmentType]  # our steps are coroutines
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError("a blocking port suspended")
