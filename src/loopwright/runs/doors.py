"""The two doors of `Runs`: one implementation, driven in the caller's thread or awaited."""

from __future__ import annotations

import asyncio
import inspect
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import closing
from typing import Any, ParamSpec, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from loopwright.errors import ConfigurationError
from loopwright.graphs import Agent, alone
from loopwright.nodes import HEARD_KEY

from .alongside import alongside
from .results import SAID

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
    def updates(
        self, agent: Agent, given: Any, config: RunnableConfig, context: Any, *, tokens: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """Drive the graph until it pauses or ends; yields what each node wrote.

        What is said meanwhile comes under `SAID`. With `tokens` that is the model's text too, and all of it comes as it
        is said. Without, it does so where a tool can tell how far it is, awaited; blocking, when a node is done.
        Listening costs LangGraph half as much again a super-step, so it is not done for nothing.
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
        with alone():
            return agent.get_state(config)

    async def updates(
        self, agent: Agent, given: Any, config: RunnableConfig, context: Any, *, tokens: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """Drive it here."""

        def start(say: Callable[[Any], object]) -> Iterator[dict[str, Any]]:
            # LangGraph's `custom` stream would wait in a thread of the tools' pool: with `max_parallel=1`, for ever.
            return agent.stream(given, _heard_by(say, config), stream_mode="updates", context=context)

        if tokens:
            with closing(alongside(start)) as parts:
                for is_update, part in parts:
                    yield part if is_update else {SAID: part}
            return
        said: deque[dict[str, Any]] = deque()
        for update in start(said.append):
            while said:
                yield {SAID: said.popleft()}
            yield update

    async def sleep(self, seconds: float) -> None:
        """Block."""
        time.sleep(seconds)  # noqa: ASYNC251 -- this door is driven in the caller's own thread


def _heard_by(say: Callable[[Any], object], config: RunnableConfig) -> RunnableConfig:
    return {**config, "configurable": {**config.get("configurable", {}), HEARD_KEY: say}}


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
        with alone():
            return await agent.aget_state(config)

    async def updates(
        self, agent: Agent, given: Any, config: RunnableConfig, context: Any, *, tokens: bool = False
    ) -> AsyncGenerator[dict[str, Any]]:
        """Await it."""
        if not (tokens or agent.spec.reports):
            async for update in agent.astream(given, config, stream_mode="updates", context=context):
                yield update
            return
        async for mode, part in agent.astream(given, config, stream_mode=_BOTH, context=context):
            yield part if mode == "updates" else {SAID: part}

    async def sleep(self, seconds: float) -> None:
        """Give the loop to others."""
        await asyncio.sleep(seconds)
