"""An agent that may ask its model, and send a letter, once a minute: its runs are parked again and again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal

from tests.world.plans import planned

from loopwright import Agent, Rate, RunResult, SyncRuns, allow, create_agent, open_checkpoints, tool
from loopwright.testing import ManualClock, call

from .nursery import Channel

RUN = "run-1"
WhenExceeded = Literal["wait", "refuse", "park"]
Changes = Literal["write", "idempotent"]
MINUTE = Rate(calls=1, per_seconds=60, when_exceeded="park")
MANY = 20
"""Times more than a run has to be woken."""


def mail(folder: Path, when_exceeded: WhenExceeded = "park", effect: Changes = "write") -> Agent:
    """Build the agent; what was sent stands in the folder."""
    rate = replace(MINUTE, when_exceeded=when_exceeded)

    @tool(effect=effect, rate=rate)
    def send(to: str) -> str:
        """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
        with (folder / "sent").open("a") as book:
            book.write(f"{to}\n")
        return f"sent to {to}"

    turns = [call("send", to="ana"), [call("send", to="ben"), call("send", to="cid")], "Done."]
    of_model = rate if when_exceeded == "park" else None
    return create_agent(planned(turns), [send], permissions=[allow("send")], rate=of_model)


def deliver(folder: Path, clock: ManualClock, when_exceeded: WhenExceeded = "park", effect: Changes = "write") -> str:
    """Drive the run to its end, moving the clock on to where it is parked until; returns how it ended."""
    with open_checkpoints(f"sqlite:///{folder / 'runs.db'}", clock=clock) as checkpoints:
        runs = SyncRuns(mail(folder, when_exceeded, effect), checkpoints)
        result: RunResult = runs.run("Send them.", thread_id="t", run_id=RUN)
        for _ in range(MANY):
            if result.parked is None:
                break
            clock.advance(max(0.0, result.parked.until - clock()))
            runs.expire()
            result = runs.get(RUN)
        return f"{result.status}: {[entry['observation'] for entry in result.trail]}, {result.usage.tool_calls}"


def deliver_in_a_process(
    channel: Channel, *, folder: str, when_exceeded: WhenExceeded = "park", effect: Changes = "write"
) -> None:
    """Do so; sends how it ended."""
    channel.send(deliver(Path(folder), ManualClock(), when_exceeded, effect))
