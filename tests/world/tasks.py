"""What a child process can be asked to do."""

from __future__ import annotations

import asyncio
import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from langchain_core.messages import AnyMessage, BaseMessage
from langgraph.types import Command

from loopwright import Checkpoints, Runs, SyncRuns, approve, create_agent, open_checkpoints, tool
from loopwright.errors import StorageError
from loopwright.graphs import compile_agent
from loopwright.testing import ScriptedModel, call
from loopwright.tools import call_within

from .letters import finish_letter, letters
from .nursery import Channel
from .plans import spoken
from .refund import TASK, THREAD, Refund, later


def echo(channel: Channel, **options: Any) -> None:
    """Send back what was given."""
    channel.send(options)


def fork_again(channel: Channel) -> None:
    """Call in a thread, fork, and call in a thread of the child; sends how the child ended."""
    call_within(30, int)
    warnings.simplefilter("ignore", DeprecationWarning)  # Python says that a fork beside threads is risky
    pid = os.fork()
    if not pid:
        call_within(10, int)
        os._exit(0)
    channel.send(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))


def drive(
    channel: Channel, *, folder: str, run_id: str = "run-1", door: str = "sync", late: bool = False, **options: Any
) -> None:
    """Carry a refund from its start to its end, approving what is asked; sends how it ended."""
    refund = Refund(Path(folder), **options)
    clock = later if late else time.time
    with open_checkpoints(refund.url, clock=clock) as checkpoints:
        if door == "sync":
            channel.send(_drive_sync(refund, checkpoints, run_id))
        else:
            channel.send(asyncio.run(_drive_async(refund, checkpoints, run_id)))


def _drive_sync(refund: Refund, checkpoints: Checkpoints, run_id: str) -> str:
    runs = SyncRuns(refund.agent, checkpoints)
    result = runs.run(TASK, thread_id=THREAD, run_id=run_id)
    while result.approvals:
        runs.decide(result.approvals[0].id, approve(), by="ana")
        result = runs.wait(run_id)
    return result.status


async def _drive_async(refund: Refund, checkpoints: Checkpoints, run_id: str) -> str:
    async with Runs(refund.agent, checkpoints) as runs:
        result = await runs.run(TASK, thread_id=THREAD, run_id=run_id)
        while result.approvals:
            await runs.decide(result.approvals[0].id, approve(), by="ana")
            result = await runs.wait(run_id)
        return result.status


def decide_in_turn(channel: Channel, *, folder: str, name: str, door: str) -> None:
    """Approve each run that is named, and carry it on, until nothing more comes; sends what the receipt said."""
    refund = Refund(Path(folder))
    with open_checkpoints(refund.url) as checkpoints:
        if door == "sync":
            _decide_sync(channel, SyncRuns(refund.agent, checkpoints), name)
        else:
            asyncio.run(_decide_async(channel, Runs(refund.agent, checkpoints), name))


def _decide_sync(channel: Channel, runs: SyncRuns, name: str) -> None:
    channel.send("ready")
    while (approval_id := channel.receive()) is not None:
        receipt = runs.decide(approval_id, approve(), by=name)
        result = runs.wait(receipt.run_id)
        channel.send([receipt.accepted, receipt.by, receipt.decision, result.status, result.answer])


async def _decide_async(channel: Channel, runs: Runs, name: str) -> None:
    channel.send("ready")
    while (approval_id := await asyncio.to_thread(channel.receive)) is not None:
        receipt = await runs.decide(approval_id, approve(), by=name)
        result = await runs.wait(receipt.run_id)
        channel.send([receipt.accepted, receipt.by, receipt.decision, result.status, result.answer])
    await runs.drain()


def start_in_turn(channel: Channel, *, folder: str, name: str) -> None:
    """Start a run under each id that comes, and carry it to its question; sends the run and what is asked."""
    refund = Refund(Path(folder))
    with open_checkpoints(refund.url) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        channel.send(name)
        while (run_id := channel.receive()) is not None:
            result = runs.run(TASK, thread_id=f"thread-{run_id}", run_id=run_id)
            channel.send([result.run_id, result.status, [asked.id for asked in result.approvals]])


def set_up(channel: Channel, *, folder: str) -> None:
    """Open a database as soon as a message comes; sends how many runs it has."""
    channel.send("ready")
    channel.receive()
    with open_checkpoints(f"sqlite:///{folder}/runs.db") as checkpoints:
        channel.send(len(checkpoints.ledger.runs.list()))


def one_step(channel: Channel, *, folder: str, limits: dict[str, int]) -> None:
    """Start the run, or approve what it asks; sends how it stands when it pauses or ends."""
    plan = [call("pay", order_id="A100", amount=amount) for amount in range(1, 10)]
    refund = Refund(Path(folder), plan=plan, limits=limits)
    with open_checkpoints(refund.url) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        for asked in runs.approvals():
            runs.decide(asked.id, approve(), by="ana")
        result = runs.run(TASK, thread_id=THREAD, run_id="run-1")
        channel.send([result.status, result.stop_reason, result.usage.steps, result.usage.tool_calls])


def write_as_nobody(channel: Channel, *, path: str) -> None:
    """Open a database without the rights of root, and write; sends the error that comes of it."""
    if os.getuid() == 0:
        os.setuid(65534)
    try:
        with open_checkpoints(f"sqlite:///{path}") as checkpoints:
            checkpoints.ledger.runs.start("r1", thread_id="t", agent="a", message="hi", task="hi")
        channel.send("no error")
    except Exception as error:  # noqa: BLE001 -- whatever it is, the test looks at it
        channel.send(f"{type(error).__name__}: {error}")


def drive_to_a_stop(
    channel: Channel, *, folder: str, die_in: str, door: str = "sync", from_checkpoint: str = "", **options: Any
) -> None:
    """Carry a refund on as `drive` does, and wait for a message in `die_in`; sends how it ended, or the error."""

    def wait() -> None:
        channel.send("here")
        channel.receive()

    refund = Refund(Path(folder), die_in=die_in, by=wait, **options)
    with open_checkpoints(refund.url) as checkpoints:
        try:
            match door:
                case "sync":
                    status = _drive_sync(refund, checkpoints, "run-1")
                case "async":
                    status = asyncio.run(_drive_async(refund, checkpoints, "run-1"))
                case _:
                    status = _invoke(refund, checkpoints, from_checkpoint)
            channel.send(str(status))
        except StorageError as error:
            channel.send(type(error).__name__)


def _invoke(refund: Refund, checkpoints: Checkpoints, from_checkpoint: str) -> str:
    """Do the same with plain calls of the graph; from an older checkpoint, on a branch."""
    agent: Any = compile_agent(refund.agent.spec, checkpoints)
    config: dict[str, Any] = {"configurable": {"thread_id": THREAD}}
    if from_checkpoint:
        state = agent.invoke(None, {"configurable": {**config["configurable"], "checkpoint_id": from_checkpoint}})
    else:
        state = agent.invoke({"messages": [("user", TASK)]}, config)
    while "__interrupt__" in state:
        state = agent.invoke(Command(resume={"type": "approve"}), config)
    return str(state["run"]["status"])


def read_state(channel: Channel, *, folder: str, url: str, resume: bool) -> None:
    """Send the state of the thread as it comes from the store; or as it is in memory after it was resumed here."""
    refund = Refund(Path(folder), url=url)
    with open_checkpoints(url) as checkpoints:
        agent: Any = compile_agent(refund.agent.spec, checkpoints)
        config = {"configurable": {"thread_id": THREAD}}
        if resume:
            channel.send(shape(agent.invoke(Command(resume={"type": "approve"}), config)))
        else:
            channel.send(shape(agent.get_state(config).values))


def shape(value: Any) -> Any:
    """Return a value as JSON that also names the type of each part."""
    kind = type(value).__qualname__
    if isinstance(value, BaseMessage):
        return [kind, shape(value.__dict__)]
    if isinstance(value, Mapping):
        items: list[tuple[Any, Any]] = sorted(value.items(), key=str)  # pyright: ignore[reportUnknownArgumentType]  # of anything
        return [kind, [[shape(name), shape(part)] for name, part in items]]
    if isinstance(value, list | tuple):
        return [kind, [shape(part) for part in cast("list[Any]", value)]]
    return [kind, repr(value)]


def invoke_plainly(channel: Channel, *, folder: str, die_in: str) -> None:
    """Invoke the agent itself, and die on the way; sends its id first."""
    refund = Refund(Path(folder), die_in=die_in)
    with open_checkpoints(refund.url) as checkpoints:
        agent: Any = compile_agent(refund.agent.spec, checkpoints)
        channel.send("begun")
        agent.invoke({"messages": [("user", TASK)]}, {"configurable": {"thread_id": THREAD}})


READS = 4


def read_in_steps(channel: Channel, *, url: str, door: str) -> None:
    """Run an agent that only reads; stops in each call of the model and of the tool until a message comes."""

    def stop(where: str, number: int) -> None:
        channel.send([where, number])
        channel.receive()

    @tool(effect="read")
    def look(number: int) -> str:
        """Look at something, by its number."""
        stop("tool", number)
        return f"seen {number}"

    def say(messages: list[AnyMessage]) -> Any:
        number = spoken(messages) + 1
        stop("model", number)
        return call("look", number=number) if number <= READS else "All seen."

    agent = create_agent(ScriptedModel([say] * (READS + 1)), [look])
    with open_checkpoints(url) as checkpoints:
        compiled: Any = compile_agent(agent.spec, checkpoints)
        given, config = {"messages": [("user", TASK)]}, {"configurable": {"thread_id": THREAD}}
        state = asyncio.run(compiled.ainvoke(given, config)) if door == "async" else compiled.invoke(given, config)
        channel.send(["end", shape(state)])
        channel.receive()


def drive_held(channel: Channel, *, folder: str) -> None:
    """Carry a letter from its start to its end, answering whatever is asked; sends how it ended."""
    with open_checkpoints(f"sqlite:///{folder}/runs.db") as checkpoints:
        channel.send(finish_letter(SyncRuns(letters(Path(folder)), checkpoints)))
