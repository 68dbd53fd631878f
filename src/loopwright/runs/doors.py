"""The two doors of `Runs`: one implementation, driven in the caller's thread or awaited."""

from __future__ import annotations

import asyncio
import inspect
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from loopwright.errors import ConfigurationError
from loopwright.graphs import Agent
from loopwright.nodes import HEARD_KEY, PROGRESS

P = ParamSpec("P")
T = TypeVar("T")

_BOTH = ["updates", "custom"]


class Door(ABC):
    """What driving a run needs of the world."""

    @abstractmethod
    async def blocking(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what may block."""

    @abstractmethod
    async def call(self, hook: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> object:
        """Call a hook of the user's, which may be async where runs are."""

    @abstractmethod
    async def snapshot(self, agent: Agent, config: RunnableConfig) -> StateSnapshot:
        """Read a thread's newest state."""

    @abstractmethod
    def updates(self, agent: Agent, given: Any, config: RunnableConfig, context: Any) -> AsyncGenerator[dict[str, Any]]:
        """Drive the graph until it pauses or ends; yields what each node wrote.

        Where a tool can tell how far it is, also that, under `PROGRESS`: awaited, as it is said; blocking, when the
        next call of its turn is over. Listening costs LangGraph half as much again a super-step, so it is done for such
        agents only.
        """

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait."""


class BlockingDoor(Door):
    """Nothing ever suspends."""

    async def blocking(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it here."""
        return function(*args, **kwargs)

    async def call(self, hook: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> object:
        """Call it here.

        Raises:
            ConfigurationError: If it is async: nobody would await it.
        """
        came = hook(*args, **kwargs)
        if inspect.isawaitable(came):
            if inspect.iscoroutine(came):
                came.close()
            raise ConfigurationError("the hook is async, and SyncRuns awaits nothing; give a plain function")
        return came

    async def snapshot(self, agent: Agent, config: RunnableConfig) -> StateSnapshot:
        """Read it here."""
        return agent.get_state(config)

    async def updates(
        self, agent: Agent, given: Any, config: RunnableConfig, context: Any
    ) -> AsyncGenerator[dict[str, Any]]:
        """Drive it here."""
        # LangGraph's `custom` stream would wait in a thread of the tools' own pool: with `max_parallel=1`, for ever.
        said: deque[dict[str, str]] = deque()
        listening: RunnableConfig = {
            **config,
            "configurable": {**config.get("configurable", {}), HEARD_KEY: said.append},
        }
        for update in agent.stream(given, listening, stream_mode="updates", context=context):
            while said:
                yield {PROGRESS: said.popleft()}
            yield update

    async def sleep(self, seconds: float) -> None:
        """Block."""
        time.sleep(seconds)  # noqa: ASYNC251 -- this door is driven in the caller's own thread


class AsyncDoor(Door):
    """Never blocks the event loop."""

    async def blocking(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in a thread."""
        return await asyncio.to_thread(function, *args, **kwargs)

    async def call(self, hook: Callable[P, object], /, *args: P.args, **kwargs: P.kwargs) -> object:
        """Await an async one; call a plain one in a thread."""
        if inspect.iscoroutinefunction(hook):
            came: object = await hook(*args, **kwargs)
            return came
        return await asyncio.to_thread(hook, *args, **kwargs)

    async def snapshot(self, agent: Agent, config: RunnableConfig) -> StateSnapshot:
        """Await it."""
        return await agent.aget_state(config)

    async def updates(
        self, agent: Agent, given: Any, config: RunnableConfig, context: Any
    ) -> AsyncGenerator[dict[str, Any]]:
        """Await it."""
        if not agent.spec.reports:
            async for update in agent.astream(given, config, stream_mode="updates", context=context):
                yield update
            return
        async for mode, part in agent.astream(given, config, stream_mode=_BOTH, context=context):
            yield part if mode == "updates" else {PROGRESS: part}

    async def sleep(self, seconds: float) -> None:
        """Give the loop to others."""
        await asyncio.sleep(seconds)
