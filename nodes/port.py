"""The two doors of a node: one `async def`, driven by a blocking port or awaited over an async one."""

from __future__ import annotations

import asyncio
import copy
import inspect
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from decimal import Decimal
from typing import Any, ParamSpec, Self, TypeVar, cast

from langchain_core.messages import AnyMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig
from langgraph._internal._constants import CONFIG_KEY_READ
from langgraph.constants import TAG_NOSTREAM
from langgraph.types import StreamWriter

from loopwright.checkpoints import Ledger
from loopwright.policy import AnswerCheck, Judgement, ProposedAnswer
from loopwright.state import excerpt, storable
from loopwright.tools import Aborted, Contract, Effect, Late, Surroundings, acall_within, await_within, call_within

from .ledgers import Ledgers
from .left import LeftBehind
from .place import place_of
from .spec import AgentSpec
from .voice import Voice

P = ParamSpec("P")
T = TypeVar("T")

FOREVER = threading.TIMEOUT_MAX
TOKENS_KEY = "__loopwright_tokens"
"""In `configurable`: whether the model's text is told piece by piece."""
HEARD_KEY = "__loopwright_heard"
"""In `configurable`: called with what tools say while they run."""
PROGRESS = "tool_progress"
"""The `type` of what a tool says of itself while it runs, on LangGraph's `custom` stream."""


def progress_of(call_id: str, tool: str, text: str) -> dict[str, str]:
    """Return how far a call has come, as it is streamed."""
    return {"type": PROGRESS, "call_id": call_id, "tool": tool, "text": excerpt(storable(str(text)))}


def _report(
    said: Mapping[str, object], write: StreamWriter, heard: Callable[[Mapping[str, object]], object] | None
) -> None:
    """Tell LangGraph's stream, and whoever gave an ear of their own."""
    write(said)
    if heard is not None:
        heard(said)


def _unheard(_said: Any) -> None:
    """Nobody listens."""


class Port(ABC):
    """What a node may do to the world outside the state."""

    def __init__(self, spec: AgentSpec, ledgers: Ledgers, config: RunnableConfig) -> None:
        """Bind the port to one execution of one node."""
        self.spec = spec
        self.place = place_of(config)
        self._config = config
        self._ledgers = ledgers
        self._started = time.monotonic()
        self.costs: list[Decimal] = []
        """What the tool that runs here has reported so far."""
        self.has_begun = False
        """Whether a tool's body was called."""
        self.left = LeftBehind()
        """The calls of tools that were given up here, and go on."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        return self._ledgers.now()

    def around(self, call_id: str, tool: str) -> Surroundings:
        """Return what a tool can reach besides its arguments, for one call."""
        given: dict[str, Any] = self._config.get("configurable") or {}
        runtime = given.get("__pregel_runtime")
        read: Callable[[list[str]], dict[str, Any]] | None = given.get(CONFIG_KEY_READ)
        write: StreamWriter = getattr(runtime, "stream_writer", None) or _unheard
        channels = [*self.spec.readable]
        return Surroundings(
            call_id=call_id,
            read=(lambda: read(channels)) if read else dict,
            config=self._config,
            context=self.context,
            store=getattr(runtime, "store", None),
            write=write,
            report=lambda text: _report(progress_of(call_id, tool, text), write, given.get(HEARD_KEY)),
            tools=self.spec.offered,
        )

    @property
    def context(self) -> Any:
        """What the caller gave the run besides its message; None for nothing."""
        given: dict[str, Any] = self._config.get("configurable") or {}
        return getattr(given.get("__pregel_runtime"), "context", None)

    def speaking(self, spec: AgentSpec) -> Self:
        """Return the same port for the agent with another model."""
        port = copy.copy(self)
        port.spec = spec
        return port

    def tell(self, said: Mapping[str, object]) -> None:
        """Tell whoever follows LangGraph's `custom` stream, or gave an ear of their own."""
        given: dict[str, Any] = self._config.get("configurable") or {}
        runtime = given.get("__pregel_runtime")
        _report(said, getattr(runtime, "stream_writer", None) or _unheard, given.get(HEARD_KEY))

    @property
    def has_listener(self) -> bool:
        """Whether somebody wants to read the model's text while it arrives."""
        given: dict[str, Any] = self._config.get("configurable") or {}
        return bool(given.get(TOKENS_KEY))

    def chance(self) -> float:
        """Return a number from 0 to 1, by chance."""
        return random.random()  # noqa: S311 -- spreads tries in time; no secret

    def elapsed(self) -> float:
        """Return the active seconds of this execution so far."""
        return time.monotonic() - self._started

    async def ledger(self) -> Ledger:
        """Return the ledger, opened when it is first needed."""
        known = self._ledgers.opened(has_saver=self.place.has_saver)
        if known is not None:
            return known
        return await self.blocking(self._ledgers.open, has_saver=self.place.has_saver)

    async def ask(self, ledger: Ledger, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the ledger; without a thread of its own where it cannot block."""
        if ledger.is_memory:
            return function(*args, **kwargs)
        return await self.blocking(function, *args, **kwargs)

    def _model(self, messages: Sequence[AnyMessage], *, tools: bool, is_heard: bool) -> Runnable[Any, BaseMessage]:
        model = self.spec.bound_for(messages) if tools else self.spec.model
        return model if is_heard else model.with_config(tags=[TAG_NOSTREAM])

    @abstractmethod
    async def blocking(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call what may block."""

    @abstractmethod
    async def model(
        self,
        messages: Sequence[AnyMessage],
        seconds: float | None,
        options: Mapping[str, Any],
        *,
        tools: bool = True,
        is_heard: bool = True,
        voice: Voice | None = None,
    ) -> BaseMessage:
        """Call the model, with or without its tools, with options that hold for this call only.

        What is not to be heard does not reach who follows LangGraph's messages. With a voice its reply is streamed, and
        each piece of text handed on as it comes.

        Raises:
            OutOfTime: If the reply did not come in time.
        """

    @abstractmethod
    async def tool(
        self, contract: Contract, args: dict[str, Any], effect: Effect, seconds: float, late: Late | None = None
    ) -> Any:
        """Call a tool; a call that is given up, and may go on, goes to `late`.

        Raises:
            OutOfTime: If it was not over in time; one that cannot be ended then goes on.
        """

    def leaving(self, late: Late | None) -> Late:
        """Return what remembers a call that is given up: first `late` hears of its end, then who waits for that."""

        def leave(call: Future[Any]) -> None:
            if late is not None:
                call.add_done_callback(late)
            self.left.add(call)

        return leave

    @abstractmethod
    async def check(self, check: AnswerCheck, answer: ProposedAnswer, seconds: float) -> Judgement:
        """Let a check look at a final answer.

        Raises:
            OutOfTime: If it was not over in time; a blocking one then goes on, unheard.
        """

    @abstractmethod
    async def within(self, seconds: float, function: Callable[[], object], *, is_async: bool) -> object:
        """Call a hook, sync or async, and give up waiting for it after `seconds`.

        Raises:
            OutOfTime: If it was not over in time.
        """

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Wait."""


class BlockingPort(Port):
    """For `invoke`: nothing ever suspends, so that one `send` runs a node through."""

    async def blocking(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it here."""
        return function(*args, **kwargs)

    async def model(
        self,
        messages: Sequence[AnyMessage],
        seconds: float | None,
        options: Mapping[str, Any],
        *,
        tools: bool = True,
        is_heard: bool = True,
        voice: Voice | None = None,
    ) -> BaseMessage:
        """Call the model, in a thread where time is bounded."""
        model, sent = self._model(messages, tools=tools, is_heard=is_heard), list(messages)

        def call() -> BaseMessage:
            return model.invoke(sent, **options) if voice is None else voice.hear(model.stream(sent, **options))

        return call() if seconds is None else call_within(min(seconds, FOREVER), call)

    async def tool(
        self, contract: Contract, args: dict[str, Any], effect: Effect, seconds: float, late: Late | None = None
    ) -> Any:
        """Call the tool in a thread."""
        self.has_begun = True
        return call_within(min(seconds, FOREVER), lambda: contract.run(args, effect), late)

    async def check(self, check: AnswerCheck, answer: ProposedAnswer, seconds: float) -> Judgement:
        """Call the check in a thread; an async one in a loop of its own."""
        return call_within(min(seconds, FOREVER), lambda: _checked(check, answer))

    async def within(self, seconds: float, function: Callable[[], object], *, is_async: bool) -> object:  # noqa: ARG002 -- in a thread of its own it is awaited there
        """Call it in a thread."""
        return call_within(min(seconds, FOREVER), lambda: _here(function))

    async def sleep(self, seconds: float) -> None:
        """Block."""
        time.sleep(seconds)  # noqa: ASYNC251 -- this port is driven in the caller's own thread


class AsyncPort(Port):
    """For `ainvoke`."""

    async def blocking(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Call it in a thread, to its end: a cancellation must not part a claim from its record."""
        task = asyncio.ensure_future(asyncio.to_thread(function, *args, **kwargs))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    async def model(
        self,
        messages: Sequence[AnyMessage],
        seconds: float | None,
        options: Mapping[str, Any],
        *,
        tools: bool = True,
        is_heard: bool = True,
        voice: Voice | None = None,
    ) -> BaseMessage:
        """Await the model."""
        model, sent = self._model(messages, tools=tools, is_heard=is_heard), list(messages)

        async def call() -> BaseMessage:
            if voice is None:
                return await model.ainvoke(sent, **options)
            return await voice.ahear(model.astream(sent, **options))

        return await call() if seconds is None else await await_within(seconds, call)

    async def tool(
        self, contract: Contract, args: dict[str, Any], effect: Effect, seconds: float, late: Late | None = None
    ) -> Any:
        """Await the tool, or call a blocking one in a thread."""
        self.has_begun = True
        arun = contract.arun
        if arun is None:
            return await acall_within(seconds, lambda: contract.run(args, effect), late)
        return await _foreign(seconds, lambda: arun(args, effect), late)

    async def check(self, check: AnswerCheck, answer: ProposedAnswer, seconds: float) -> Judgement:
        """Await the check, or call a blocking one in a thread."""
        if check.is_async:
            return await _foreign(seconds, lambda: cast("Awaitable[Judgement]", check.function(answer)))
        return await acall_within(seconds, lambda: _checked(check, answer))

    async def within(self, seconds: float, function: Callable[[], object], *, is_async: bool) -> object:
        """Await it here, where its connections belong; call a blocking one in a thread."""
        if not is_async:
            return await acall_within(seconds, lambda: _here(function))
        return await _foreign(seconds, cast("Callable[[], Awaitable[object]]", function))

    async def sleep(self, seconds: float) -> None:
        """Give the loop to others."""
        await asyncio.sleep(seconds)


async def _foreign(seconds: float, start: Callable[[], Awaitable[T]], late: Late | None = None) -> T:
    """Await what a user wrote: whatever ends it early ends nothing else.

    Raises:
        OutOfTime: If it was not over in time.
        Aborted: If it wanted to end the process, or was cancelled by something within itself.
    """
    try:
        return await await_within(seconds, start, late)
    except SystemExit as error:  # it would end the loop, and the process
        raise Aborted(f"SystemExit: {error}") from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise Aborted("something within it was cancelled") from None


def _checked(check: AnswerCheck, answer: ProposedAnswer) -> Judgement:
    """Call a check in this thread; what it leaves to be awaited is awaited here."""
    return cast("Judgement", _here(lambda: check.function(answer)))


def _here(function: Callable[[], object]) -> object:
    """Call a hook in this thread; what it leaves to be awaited is awaited here."""
    returned = function()
    return asyncio.run(_awaited(returned)) if inspect.isawaitable(returned) else returned


async def _awaited(returned: Awaitable[object]) -> object:
    return await returned
