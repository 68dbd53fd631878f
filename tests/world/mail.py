"""An agent that may ask its model, and send a letter, once a minute: its runs are parked again and again."""

from __future__ import annotations

from pathlib import Path

from tests.world.plans import planned

from loopwright import Agent, Rate, RunResult, SyncRuns, allow, create_agent, open_checkpoints, tool
from loopwright.testing import ManualClock, call

from .nursery import Channel

RUN = "run-1"
MINUTE = Rate(calls=1, per_seconds=60, when_exceeded="park")
MANY = 20
"""Times more than a run has to be woken."""


def mail(folder: Path) -> Agent:
    """Build the agent; what was sent stands in the folder, and so does when."""

    @tool(effect="write", rate=MINUTE)
    def send(to: str) -> str:
        """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
        with (folder / "sent").open("a") as book:
            book.write(f"{to}\n")
        return f"sent to {to}"

    turns = [call("send", to="ana"), [call("send", to="ben"), call("send", to="cid")], "Done."]
    return create_agent(planned(turns), [send], permissions=[allow("send")], rate=MINUTE)


def deliver(folder: Path, clock: ManualClock) -> str:
    """Drive the run to its end, moving the clock on to where it is parked until; returns how it ended."""
    with open_checkpoints(f"sqlite:///{folder / 'runs.db'}", clock=clock) as checkpoints:
        runs = SyncRuns(mail(folder), checkpoints)
        result: RunResult = runs.run("Send them.", thread_id="t", run_id=RUN)
        for _ in range(MANY):
            if result.parked is None:
                break
            clock.advance(max(0.0, result.parked.until - clock()))
            runs.expire()
            result = runs.get(RUN)
        return f"{result.status}: {[entry['observation'] for entry in result.trail]}, {result.usage.tool_calls}"


def deliver_in_a_process(channel: Channel, *, folder: str) -> None:
    """Do so; sends how it ended."""
    channel.send(deliver(Path(folder), ManualClock()))
