"""Both faces of the runs behind one: so that one test holds for `SyncRuns` and for `Runs`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, Unpack

from loopwright import Agent, Checkpoints, Person, Receipt, RunResult, Runs, SyncRuns
from loopwright.runs import ExtendOptions, RunOptions
from loopwright.state import Happened, NotHappened, PersonDecision

DoorName = Literal["sync", "async"]
DOORS: tuple[DoorName, DoorName] = ("sync", "async")


class Desk:
    """Starts, decides and waits, by one door."""

    def __init__(self, agent: Agent, checkpoints: Checkpoints, door: DoorName = "sync") -> None:
        """Take the agent and where its runs are kept."""
        self._agent = agent
        self._checkpoints = checkpoints
        self._door = door

    def call(self, name: str, *args: Any, **options: Any) -> Any:
        """Call a method of either, whatever it is given."""
        if self._door == "sync":
            return getattr(SyncRuns(self._agent, self._checkpoints), name)(*args, **options)

        async def main() -> Any:
            async with Runs(self._agent, self._checkpoints) as runs:
                return await getattr(runs, name)(*args, **options)

        return asyncio.run(main())

    def run(self, message: str = "Do it.", *, thread_id: object = "t", **options: Unpack[RunOptions]) -> RunResult:
        """Start a run, and wait until it rests."""
        result: RunResult = self.call("run", message, thread_id=thread_id, **options)
        return result

    def wait(self, run_id: str) -> RunResult:
        """Wait until a run rests."""
        result: RunResult = self.call("wait", run_id)
        return result

    def decide(
        self, approval_id: str, decision: PersonDecision | Mapping[str, Any], by: str | Person = "ana"
    ) -> Receipt:
        """Decide about a call."""
        receipt: Receipt = self.call("decide", approval_id, decision, by=by)
        return receipt

    def answer(
        self, result: RunResult, decision: PersonDecision | Mapping[str, Any], by: str | Person = "ana"
    ) -> RunResult:
        """Decide about the first question of a run that waits, and wait until it rests again."""
        receipt = self.decide(result.approvals[0].id, decision, by)
        assert receipt.accepted
        return self.wait(result.run_id)

    def resolve(self, effect_id: str, outcome: Happened | NotHappened, by: str = "ana") -> Receipt:
        """Say what became of an effect."""
        receipt: Receipt = self.call("resolve", effect_id, outcome, by=by)
        return receipt

    def cancel(self, run_id: str, by: str = "ana") -> Receipt:
        """End a run."""
        receipt: Receipt = self.call("cancel", run_id, by=by)
        return receipt

    def extend(self, run_id: str, *, by: str = "ana", **more: Unpack[ExtendOptions]) -> Receipt:
        """Let a run that stopped at a limit go on with more."""
        receipt: Receipt = self.call("extend", run_id, by=by, **more)
        return receipt

    def look(self, way: Literal["expire", "recover"]) -> list[RunResult]:
        """Look after what is due, by this method."""
        return [*self.call(way)]

    def recover(self) -> list[RunResult]:
        """Carry on what is left."""
        return [*self.call("recover")]
