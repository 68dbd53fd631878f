"""What stores cost: PostgreSQL, long threads, the inbox, a resume, a crowd; beside LangGraph's savers.

Run it from the repository's root, `python -m tests.benchmarks.stores [--quick]`; README.md says what is measured.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from langchain.agents import create_agent as create_peer  # pyright: ignore[reportUnknownVariableType]  # open types
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, ToolCall
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command
from tests.benchmarks.steps import BARE, FULL, OURS, TASK, Durability, Subject, Walker, look_up_of
from tests.world.postgres import Postgres

import loopwright
from loopwright.testing import call

PAGE = 50
"""Rows of an inbox page."""


class Planner(Walker):
    """Asks for look-ups, one a step, then perhaps to pay; plans from the transcript, so that many may share it."""

    pays: bool = False

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:  # noqa: ARG002 -- LangChain's signature
        spoken = sum(isinstance(message, AIMessage) for message in messages)
        if spoken < self.steps - 1:
            said: Any = ToolCall(name="look_up", args={"number": spoken}, id=f"call-{spoken}", type="tool_call")
        else:
            said = call("pay", call_id="pay-1", amount=5) if self.pays and spoken == self.steps - 1 else None
        message = AIMessage("", tool_calls=[said]) if said else AIMessage("Done.")
        return ChatResult(generations=[ChatGeneration(message=message)])


def look_up(number: int) -> str:
    """Look a number up. Use it for one number at a time."""
    return f"{number}: ".ljust(1000, "x")


def pay(amount: int) -> str:
    """Pay an amount. Use it once."""
    return f"paid {amount}"


def build_ours(model: Any, steps: int, kept: Any) -> Any:
    """Build loopwright's agent with both tools; paying asks."""
    tools = [loopwright.tool(effect="read")(look_up), loopwright.tool(effect="write")(pay)]
    bounds = loopwright.Limits(max_steps=steps + 3, max_tool_calls=steps + 3, max_tokens=10**9)
    return loopwright.create_agent(model, tools, limits=bounds, checkpoints=kept)


def build_peer(model: Any, kept: Any) -> Any:
    """Build LangChain's agent with both tools; paying asks."""
    tools = [langchain_tool(look_up), langchain_tool(pay)]
    return create_peer(model, tools, middleware=[HumanInTheLoopMiddleware({"pay": True})], checkpointer=kept)


class Long(Subject):
    """One with a transcript that is sent whole, however long: nothing is summed up in steps of their own."""

    def _build(self, model: Any, steps: int, size: int, kept: Any) -> Any:
        bounds = loopwright.Limits(max_steps=steps + 1, max_tool_calls=steps + 1, max_tokens=10**9)
        body = loopwright.tool(effect="read", name="look_up")(look_up_of(size, awaited=self.awaited))
        return loopwright.create_agent(model, [body], limits=bounds, checkpoints=kept, compaction=None)


class InSqlite(Subject):
    """One of what is compared, over SQLite, with steps that read."""


class InPostgres(Subject):
    """One of what is compared, over PostgreSQL; the path is the server's URL."""

    def _open(self, path: Path) -> AbstractContextManager[Any]:
        url = _url(path)
        if self.name == OURS:
            return loopwright.open_checkpoints(url)
        stack = ExitStack()
        saver = stack.enter_context(PostgresSaver.from_conn_string(url))
        saver.setup()
        return _Held(stack, saver)

    def _aopen(self, path: Path) -> AbstractAsyncContextManager[Any]:
        return _AsyncPostgres(self.name, _url(path))


class _Held(AbstractContextManager[Any]):
    def __init__(self, stack: ExitStack, saver: Any) -> None:
        self._stack, self._saver = stack, saver

    def __enter__(self) -> Any:
        return self._saver

    def __exit__(self, *_: object) -> None:
        self._stack.close()


class _AsyncPostgres(AbstractAsyncContextManager[Any]):
    def __init__(self, name: str, url: str) -> None:
        self._name, self._url = name, url

    async def __aenter__(self) -> Any:
        if self._name == OURS:
            self._inner: Any = await loopwright.aopen_checkpoints(self._url)
            return self._inner
        self._inner = AsyncPostgresSaver.from_conn_string(self._url)
        saver = await self._inner.__aenter__()
        await saver.setup()
        return saver

    async def __aexit__(self, *_: object) -> None:
        await self._inner.__aexit__(None, None, None)


def _url(path: Path) -> str:
    return path.read_text(encoding="utf-8")


class Writing(Subject):
    """The same over SQLite, with steps that change something: ours are allowed by a rule, claimed and settled."""

    def _build(self, model: Any, steps: int, size: int, kept: Any) -> Any:
        return _build_writing(self, model, steps, size, kept) or super()._build(model, steps, size, kept)


class WritingInPostgres(InPostgres):
    """The same over PostgreSQL."""

    def _build(self, model: Any, steps: int, size: int, kept: Any) -> Any:
        return _build_writing(self, model, steps, size, kept) or super()._build(model, steps, size, kept)


def _build_writing(subject: Subject, model: Any, steps: int, size: int, kept: Any) -> Any:
    """Build ours with a tool that writes; None for the peer, which knows no difference."""
    if subject.name != OURS:
        return None
    bounds = loopwright.Limits(max_steps=steps + 1, max_tool_calls=steps + 1, max_tokens=10**9)
    body = loopwright.tool(effect="write", name="look_up")(look_up_of(size, awaited=subject.awaited))
    allowed = [loopwright.allow("look_up")]
    return loopwright.create_agent(model, [body], limits=bounds, permissions=allowed, checkpoints=kept)


SET_UPS: Sequence[tuple[str, Durability]] = ((OURS, "sync"), (BARE, "async"), (BARE, "sync"), (FULL, "sync"))


def measure_steps(kind: type[Subject], steps: int, rounds: int, folder: Path) -> None:
    """Print microseconds of CPU a step; of PostgreSQL the client's, the server's own is not in it."""
    print(f"{kind.__name__}, {steps} steps: microseconds of CPU a step (our part of the peer's), medians and least")
    subjects = [kind(name, awaited, durability) for awaited in (False, True) for name, durability in SET_UPS]
    with ExitStack() as stack:
        server = stack.enter_context(Postgres()) if issubclass(kind, InPostgres) else None
        for _ in range(rounds):
            for subject in subjects:
                _run_once(subject, steps, server, folder)
    for subject in subjects:
        ours = next(other for other in subjects if other.name == OURS and other.awaited == subject.awaited)
        median, least = statistics.median(subject.micros[steps]), subject.least(steps)
        parts = f" ({statistics.median(ours.micros[steps]) / median:.3f}, {ours.least(steps) / least:.3f})"
        door = "async" if subject.awaited else "sync"
        print(f"  {door:5} {subject.name:14} {subject.durability:6} {median:8,.0f} {least:8,.0f}", end="")
        print("" if subject is ours else parts)


def _run_once(subject: Subject, steps: int, server: Postgres | None, folder: Path) -> None:
    if server is None:
        subject.run(steps, folder / f"{uuid.uuid4().hex}.db")
        return
    with server.database("template0") as database:
        place = folder / "url"
        place.write_text(database.url, encoding="utf-8")
        subject.run(steps, place)


def measure_length(counts: Sequence[int], folder: Path) -> None:
    """Print what a step adds to the file in short and long threads."""
    empty = folder / "empty.db"
    loopwright.open_checkpoints(f"sqlite:///{empty}").close()
    print(f"a step's bytes in the file, observations of 1 KB; an empty file has {empty.stat().st_size:,}")
    for steps in counts:
        path = folder / f"{uuid.uuid4().hex}.db"
        Long(OURS, awaited=False, durability="sync").run(steps, path, size=1000, warm=False)
        size = path.stat().st_size
        beyond = (size - empty.stat().st_size) / steps
        print(f"  {steps:5} steps: {size / steps:8,.0f}, beyond the empty file {beyond:8,.0f}")


def measure_reading(counts: Sequence[int], folder: Path) -> None:
    """Print the CPU that the newest state of a thread takes to read, beside LangGraph's own savers."""
    for steps in counts:
        path = folder / f"read-{steps}.db"
        with (
            loopwright.open_checkpoints(f"sqlite:///{path}") as kept,
            SqliteSaver.from_conn_string(f"{path}-peer") as saver,
        ):
            print(f"reading the last state of {steps} steps, SQLite: {_read(kept, saver, steps)}")
    with (
        Postgres() as server,
        server.database("template0") as ours,
        server.database("template0") as theirs,
        loopwright.open_checkpoints(ours.url) as kept,
        PostgresSaver.from_conn_string(theirs.url) as saver,
    ):
        saver.setup()
        for steps in counts:
            print(f"reading the last state of {steps} steps, PostgreSQL: {_read(kept, saver, steps)}")


def _read(kept: Any, saver: Any, steps: int) -> str:
    config: Any = {"configurable": {"thread_id": f"{steps}"}, "recursion_limit": 10 * steps + 100}
    ours, peer = build_ours(Planner(steps=steps), steps, kept), build_peer(Planner(steps=steps), saver)
    ours.invoke({"messages": [("user", TASK)]}, config)
    peer.invoke({"messages": [("user", TASK)]}, config, durability="exit")  # else it stores gigabytes
    mine: list[float] = []
    theirs: list[float] = []
    gc.collect()
    gc.freeze()  # what the script has built is not gone through again and again while either reads
    for _ in range(9):
        mine.append(_median(partial(ours.get_state, config), times=3))
        theirs.append(_median(partial(peer.get_state, config), times=3))
    gc.unfreeze()
    return _compared(mine, theirs)


def measure_resume(counts: Sequence[int], folder: Path) -> None:
    """Print the CPU from an approval to the end of the run, after so many steps."""
    for steps in counts:
        mine: list[float] = []
        theirs: list[float] = []
        for _ in range(9):
            with loopwright.open_checkpoints(f"sqlite:///{folder / f'{uuid.uuid4().hex}.db'}") as kept:
                ours = build_ours(Planner(steps=steps, pays=True), steps, kept)
                mine.append(_resumed(ours, Command(resume={"type": "approve"}), {}))
            with SqliteSaver.from_conn_string(str(folder / f"{uuid.uuid4().hex}.db")) as saver:
                peer = build_peer(Planner(steps=steps, pays=True), saver)
                yes: Any = Command(resume={"decisions": [{"type": "approve"}]})
                theirs.append(_resumed(peer, yes, {"durability": "sync"}))
        print(f"resume after {steps} steps, the peer with HITL: {_compared(mine, theirs)}")


def _compared(mine: Sequence[float], theirs: Sequence[float]) -> str:
    """Say medians in milliseconds, and how far the rounds lie apart."""
    ours, peer = statistics.median(mine), statistics.median(theirs)
    noise = max((max(rounds) - min(rounds)) / statistics.median(rounds) for rounds in (mine, theirs))
    return f"{ours:.1f} ms, the peer {peer:.1f} ms ({ours / peer:.3f}); rounds differ by {noise:.0%}"


def _resumed(agent: Any, answer: Any, options: dict[str, Any]) -> float:
    config: Any = {"configurable": {"thread_id": uuid.uuid4().hex}, "recursion_limit": 10_000}
    agent.invoke({"messages": [("user", TASK)]}, config, **options)
    began = time.process_time()
    state = agent.invoke(answer, config, **options)
    spent = time.process_time() - began
    if state["messages"][-1].text != "Done.":
        raise RuntimeError("the resumed run did not end")
    return spent * 1000


def measure_inbox(counts: Sequence[int], folder: Path) -> None:
    """Print how long a page of the inbox takes, and LangGraph's only way to find what waits."""
    for count in counts:
        with loopwright.open_checkpoints(f"sqlite:///{folder / f'inbox-{count}.db'}") as kept:
            _fill(kept, count)
            page = _median(partial(kept.ledger.approvals.list_open, limit=PAGE))
            runs = _median(partial(kept.ledger.runs.list, status="waiting", limit=PAGE))
        print(f"inbox of {count:,}: a page of {PAGE} questions {page:.2f} ms, of runs {runs:.2f} ms", end="")
        if count <= counts[0]:
            listed = _listing(count, folder)
            print(f"; saver.list {listed:,.0f} ms ({listed / page:,.0f} times)", end="")
        print()


def _fill(kept: Any, count: int) -> None:
    ledger, payload = kept.ledger, json.dumps({"description": "May it run?", "allowed": ["approve"], "x": "y" * 500})
    with ledger.database.transaction():
        for number in range(count):
            ids = {"id": f"run-{number}", "thread_id": f"thread-{number}", "now": float(number)}
            none = dict.fromkeys(("input", "requester", "labels", "context", "state"), "")
            ledger.database.write("start_run", agent="a", task="Refund it.", **none, **ids)
            ledger.database.write(
                "set_run_status", id=ids["id"], status="waiting", reason="", cost_nano=0, now=ids["now"]
            )
            ledger.database.write(
                "open_approval",
                id=f"approval-{number}",
                run_id=ids["id"],
                thread_id=ids["thread_id"],
                question="tool_approval",
                tool="pay",
                args="{}",
                payload=payload,
                effect_id="",
                now=ids["now"],
                expires_at=None,
                remind_at=None,
                needs="",
            )


def _listing(count: int, folder: Path) -> float:
    with SqliteSaver.from_conn_string(str(folder / "listed.db")) as saver:
        for number in range(count):
            place: Any = {"configurable": {"thread_id": str(number), "checkpoint_ns": ""}}
            stored = saver.put(place, empty_checkpoint(), {"source": "loop", "step": 1, "parents": {}}, {})
            saver.put_writes(stored, [("__interrupt__", ["May it run?"])], "task")
        began = time.process_time()
        waiting = [found for found in saver.list(None) if found.pending_writes][:PAGE]
        spent = time.process_time() - began
    if len(waiting) != PAGE:
        raise RuntimeError("the list is not what it should be")
    return spent * 1000


def measure_crowd(count: int, steps: int, folder: Path) -> None:
    """Print the CPU of many runs at once in one event loop, over SQLite."""

    async def crowd(agent: Any, options: dict[str, Any]) -> float:
        began = time.process_time()
        config: Callable[[], Any] = lambda: {"configurable": {"thread_id": uuid.uuid4().hex}}  # noqa: E731
        await asyncio.gather(
            *(agent.ainvoke({"messages": [("user", TASK)]}, config(), **options) for _ in range(count))
        )
        return time.process_time() - began

    async def both() -> tuple[float, float]:
        async with await loopwright.aopen_checkpoints(f"sqlite:///{folder / 'crowd.db'}") as kept:
            mine = await crowd(build_ours(Planner(steps=steps), steps, kept), {})
        async with AsyncSqliteSaver.from_conn_string(str(folder / "crowd-peer.db")) as saver:
            peer = build_peer(Planner(steps=steps), saver)
            theirs = await crowd(peer, {"durability": "async"})
        return mine, theirs

    mine, theirs = asyncio.run(both())
    print(f"{count} runs of {steps} steps at once: {mine:.1f} s of CPU, with HITL {theirs:.1f} s ({mine / theirs:.3f})")


def _median(read: Callable[[], object], times: int = 9) -> float:
    """Return the milliseconds of CPU that a call takes."""
    spent: list[float] = []
    for _ in range(times):
        began = time.process_time()
        read()
        spent.append(time.process_time() - began)
    return statistics.median(spent) * 1000


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less of everything: a look, not a result")
    quick: bool = parser.parse_args().quick
    os.environ["LANGSMITH_TRACING"] = "false"
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as name:
        folder = Path(name)
        measure_inbox((1_000,) if quick else (10_000, 100_000), folder)
        measure_reading((50,) if quick else (50, 500, 2_000), folder)
        measure_resume((10,) if quick else (50, 200), folder)
        measure_length((50,) if quick else (50, 500, 2_000), folder)
        for kind in (InSqlite, InPostgres, Writing, WritingInPostgres):
            measure_steps(kind, 10 if quick else 50, 2 if quick else 7, folder)
        measure_crowd(50 if quick else 1_000, 10, folder)


if __name__ == "__main__":
    main()
