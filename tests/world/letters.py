"""A tool that fails once, asks once, and then sends a letter: for processes that are killed in between."""

from __future__ import annotations

from pathlib import Path

from langgraph.types import interrupt
from tests.world.plans import planned

from loopwright import Agent, NotDone, RunResult, SyncRuns, allow, approve, create_agent, reject, respond, tool
from loopwright.testing import call

RUN = "run-1"


def letters(folder: Path) -> Agent:
    """Build the agent; what was sent, and whether it has failed, stands in the folder."""

    @tool(effect="write", on_error="ask")
    def send(to: str) -> str:
        """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
        stamps = folder / "stamps"
        if not stamps.exists():
            stamps.touch()
            raise NotDone("no stamps")
        colour = interrupt("Which colour?")
        with (folder / "sent").open("a") as book:
            book.write(f"{to} {colour}\n")
        return f"sent {colour}"

    return create_agent(planned([call("send", to="ana"), "Done."]), [send], permissions=[allow("send")])


def finish_letter(runs: SyncRuns) -> str:
    """Drive the run to its end, letting it try again and answering what is asked."""
    result: RunResult = runs.run("Send it.", thread_id="t", run_id=RUN)
    while result.approvals:
        asked = result.approvals[0]
        answers = {"tool_failed": approve(), "tool_interrupt": respond("red")}
        runs.decide(asked.id, answers.get(asked.question, reject("not asked for")), by="ana")
        result = runs.wait(RUN)
    return f"{result.status}: {[entry['observation'] for entry in result.trail]}, {result.usage.tool_calls}"
