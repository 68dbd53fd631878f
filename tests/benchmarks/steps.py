"""What a step costs: CPU, bytes in the database and import time, beside LangChain's `create_agent`.

Run it as a script, `python tests/benchmarks/steps.py [--quick]`; README.md says what is measured and how.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
    nullcontext,
)
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from langchain.agents import create_agent as create_peer  # pyright: ignore[reportUnknownVariableType]  # open types
from langchain.agents.middleware import (
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    SummarizationMiddleware,
    ToolCallLimitMiddleware,
    ToolRetryMiddleware,
)
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

import loopwright

os.environ["LANGSMITH_TRACING"] = "false"

TASK = "Look the numbers up, one after the other."
OURS, BARE, FULL = "loopwright", "create_agent", "create_agent + middleware"
Durability = Literal["async", "sync"] | None
"""None: without a saver. Ours is always `sync` where there is one."""
SET_UPS: tuple[tuple[str, Durability], ...] = (
    (OURS, None),
    (BARE, None),
    (FULL, None),
    (OURS, "sync"),
    (BARE, "async"),
    (BARE, "sync"),
    (FULL, "async"),
    (FULL, "sync"),
)


class Walker(BaseChatModel):
    """Asks for one tool call a step, and answers when `steps` calls of the model are used up; reports its usage."""

    steps: int = 2
    used: int = 0

    @property
    def _llm_type(self) -> str:
        return "walker"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:  # noqa: ARG002 -- LangChain's signature
        """Accept any tools, at no cost for either side."""
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002 -- LangChain's signature
        self.used += 1
        usage = UsageMetadata(input_tokens=100 + len(messages), output_tokens=20, total_tokens=120 + len(messages))
        if self.used < self.steps:
            call = ToolCall(name="look_up", args={"number": self.used}, id=f"call-{self.used}", type="tool_call")
            message = AIMessage("", tool_calls=[call], usage_metadata=usage)
        else:
            message = AIMessage("Done.", usage_metadata=usage)
            self.used = 0
        return ChatResult(generations=[ChatGeneration(message=message)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002 -- LangChain's signature
        return self._generate(messages)


def _functions(size: int) -> tuple[Callable[[int], Any], Callable[[int], Any]]:
    """Return the one tool's body, blocking and awaited; its results differ, as the loop guard wants."""

    def look_up(number: int) -> str:
        """Look a number up. Use it for one number at a time."""
        return f"{number}: ".ljust(size, "x")

    async def alook_up(number: int) -> str:
        """Look a number up. Use it for one number at a time."""
        return f"{number}: ".ljust(size, "x")

    return look_up, alook_up


def look_up_of(size: int, *, awaited: bool) -> Callable[[int], Any]:
    """Return the tool's body, blocking or awaited."""
    return _functions(size)[awaited]


def build_ours(model: Walker, steps: int, size: int, kept: Any, *, awaited: bool) -> Any:
    """Build loopwright's agent: guard and ledger are always on."""
    bounds = loopwright.Limits(max_steps=steps + 1, max_tool_calls=steps + 1, max_tokens=10**9)
    body = loopwright.tool(effect="read", name="look_up")(look_up_of(size, awaited=awaited))
    return loopwright.create_agent(model, [body], limits=bounds, checkpoints=kept)


def build_peer(model: Walker, steps: int, size: int, kept: Any, *, awaited: bool, full: bool) -> Any:
    """Build LangChain's agent, bare or with what a service would add to it; nothing of that ever triggers."""
    middleware: list[Any] = [
        HumanInTheLoopMiddleware(interrupt_on={"issue_refund": True}),
        ModelCallLimitMiddleware(run_limit=steps + 1),
        ToolCallLimitMiddleware(run_limit=steps + 1),
        ToolRetryMiddleware(max_retries=2),
        SummarizationMiddleware(model=model, trigger=("tokens", 10**9)),
    ]
    body = langchain_tool("look_up")(look_up_of(size, awaited=awaited))
    return create_peer(model, [body], middleware=middleware if full else (), checkpointer=kept)


@contextmanager
def open_ours(path: Path) -> Generator[Any]:
    """Open our saver and ledger on a file."""
    with loopwright.open_checkpoints(f"sqlite:///{path}") as kept:
        yield kept


@asynccontextmanager
async def aopen_ours(path: Path) -> AsyncGenerator[Any]:
    """Do the same, awaited."""
    async with await loopwright.aopen_checkpoints(f"sqlite:///{path}") as kept:
        yield kept


@dataclass
class Subject:
    """One of what is compared, in one set-up."""

    name: str
    awaited: bool
    durability: Durability = None
    micros: dict[int, list[float]] = field(default_factory=dict[int, list[float]])
    """By number of steps, the microseconds of CPU a step in each round."""

    @property
    def door(self) -> tuple[bool, bool]:
        """What must be alike for two of them to be compared: sync or async, with a saver or without."""
        return self.awaited, self.durability is not None

    def run(self, steps: int, path: Path, size: int = 10, *, warm: bool = True) -> None:
        """Run once, and keep what a step cost; `warm` lets a run of two steps go first, unmeasured."""
        runs = [2, steps] if warm else [steps]
        spent = asyncio.run(self._arun(runs, path, size)) if self.awaited else self._run(runs, path, size)
        self.micros.setdefault(steps, []).append(spent / steps * 1e6)

    def least(self, steps: int) -> float:
        """Return the least over the rounds: whatever else runs on the machine only adds."""
        return min(self.micros[steps])

    def _run(self, runs: list[int], path: Path, size: int) -> float:
        model = Walker()
        with nullcontext() if self.durability is None else self._open(path) as kept:
            agent = self._build(model, max(runs), size, kept)
            return [self._timed(agent, model, steps) for steps in runs][-1]

    async def _arun(self, runs: list[int], path: Path, size: int) -> float:
        model = Walker()
        async with nullcontext() if self.durability is None else self._aopen(path) as kept:
            agent = self._build(model, max(runs), size, kept)
            return [await self._atimed(agent, model, steps) for steps in runs][-1]

    def _open(self, path: Path) -> AbstractContextManager[Any]:
        return open_ours(path) if self.name == OURS else SqliteSaver.from_conn_string(str(path))

    def _aopen(self, path: Path) -> AbstractAsyncContextManager[Any]:
        return aopen_ours(path) if self.name == OURS else AsyncSqliteSaver.from_conn_string(str(path))

    def _build(self, model: Walker, steps: int, size: int, kept: Any) -> Any:
        if self.name == OURS:
            return build_ours(model, steps, size, kept, awaited=self.awaited)
        return build_peer(model, steps, size, kept, awaited=self.awaited, full=self.name == FULL)

    def _options(self, steps: int) -> dict[str, Any]:
        config: RunnableConfig = {"recursion_limit": 20 * steps + 100, "configurable": {"thread_id": uuid.uuid4().hex}}
        return {"config": config} | ({"durability": self.durability} if self.durability and self.name != OURS else {})

    def _timed(self, agent: Any, model: Walker, steps: int) -> float:
        model.steps = steps
        gc.collect()
        began = time.process_time()
        state = agent.invoke({"messages": [("user", TASK)]}, **self._options(steps))
        spent = time.process_time() - began
        _check(state, steps)
        return spent

    async def _atimed(self, agent: Any, model: Walker, steps: int) -> float:
        model.steps = steps
        gc.collect()
        began = time.process_time()
        state = await agent.ainvoke({"messages": [("user", TASK)]}, **self._options(steps))
        spent = time.process_time() - began
        _check(state, steps)
        return spent


def _check(state: Any, steps: int) -> None:
    messages: list[BaseMessage] = state["messages"]
    if len(messages) != 2 * steps or messages[-1].text != "Done.":
        raise RuntimeError(f"{len(messages)} messages after {steps} steps: the run did not do what is measured")


def measure_cpu(counts: Sequence[int], rounds: int, folder: Path) -> list[Subject]:
    """Run every subject in turn, round after round, so that a busy machine slows all of them alike."""
    subjects = [Subject(name, awaited, durability) for awaited in (False, True) for name, durability in SET_UPS]
    for subject in subjects:
        subject.run(3, folder / f"{uuid.uuid4().hex}.db")
    for _ in range(rounds):
        for steps in counts:
            for subject in subjects:
                subject.run(steps, folder / f"{uuid.uuid4().hex}.db")
    return subjects


def print_cpu(subjects: Sequence[Subject], counts: Sequence[int]) -> None:
    """Print microseconds a step, and what part of each peer's ours is."""
    print("microseconds of CPU a step (our part of the peer's)")
    _print_head(counts)
    for subject in subjects:
        ours = next(other for other in subjects if other.name == OURS and other.door == subject.door)
        kept = f"SQLite, {subject.durability}" if subject.durability else "no saver"
        label = f"{'async' if subject.awaited else 'sync':5} {kept:13} {subject.name}"
        cells = [_cell(subject.least(steps), ours.least(steps), is_ours=subject is ours) for steps in counts]
        print(f"{label:46}{''.join(f'{cell:>18}' for cell in cells)}".rstrip())
    print()


def _print_head(counts: Sequence[int]) -> None:
    print(f"{'':46}" + "".join(f"{f'{steps} steps':>18}" for steps in counts))


def _cell(peer: float, ours: float, *, is_ours: bool) -> str:
    return f"{peer:,.0f}        " if is_ours else f"{peer:,.0f} ({ours / peer:5.3f})"


def measure_bytes(counts: Sequence[int], folder: Path) -> None:
    """Print what a step with an observation of 1 KB adds to the database file, the ledger counted."""
    print("bytes a step in the database, observations of 1 KB (the peer's are so many times ours)")
    _print_head(counts)
    ours: dict[int, float] = {}
    for name in (OURS, BARE, FULL):
        cells: list[str] = []
        for steps in counts:
            path = folder / f"{uuid.uuid4().hex}.db"
            Subject(name, awaited=False, durability="sync").run(steps, path, size=1000, warm=False)
            size = _file_size(path) / steps
            ours.setdefault(steps, size)
            cells.append(f"{size:,.0f}        " if name == OURS else f"{size:,.0f} ({size / ours[steps]:5.1f})")
            path.unlink()
        print(f"{name:46}{''.join(f'{cell:>18}' for cell in cells)}".rstrip())
    print()


def _file_size(path: Path) -> int:
    connection = sqlite3.connect(path)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    return path.stat().st_size


def measure_imports(rounds: int) -> None:
    """Print the CPU that an import takes in a fresh interpreter."""
    code = "import time; a = time.process_time(); import {}; print(time.process_time() - a)"
    names = ("loopwright", "langgraph.graph")
    spent: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds):
        for name in names:
            command = [sys.executable, "-c", code.format(name)]
            spent[name].append(float(subprocess.run(command, check=True, capture_output=True, text=True).stdout))
    ours, peer = (statistics.median(spent[name]) * 1000 for name in names)
    print(f"import in a fresh interpreter: loopwright {ours:.1f} ms, langgraph.graph {peer:.0f} ms ({ours / peer:.3f})")


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds and steps: a look, not a result")
    quick: bool = parser.parse_args().quick
    counts = (10, 50) if quick else (10, 50, 200)
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as name:
        folder = Path(name)
        print_cpu(measure_cpu(counts, 2 if quick else 5, folder), counts)
        measure_bytes((50,) if quick else (50, 200, 500), folder)
    measure_imports(3 if quick else 7)


if __name__ == "__main__":
    main()
