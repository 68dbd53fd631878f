"""Short stories that tests of the stores tell: one thread that has ended, one that waits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from loopwright import Agent, Checkpoints, RunResult, SyncRuns, create_agent
from loopwright.testing import call

from .plans import planned
from .till import Till

LOOK = call("look", order_id="A1")
PAY = call("pay", order_id="A1", amount=5)
ANSWER = "Paid, have a nice day."


def build_shop(till: Till, *turns: Any, **options: Any) -> Agent:
    """Build an agent that looks, and pays when it is allowed to."""
    plan: Sequence[Any] = turns or (LOOK, PAY, ANSWER)
    return create_agent(planned(plan), [till.look(), till.pay()], **options)


def wait_at_question(agent: Agent, checkpoints: Checkpoints, thread_id: str = "waiting") -> RunResult:
    """Run to the question."""
    result = SyncRuns(agent, checkpoints).run("Pay A1.", thread_id=thread_id)
    assert result.status == "waiting"
    return result


def finish(agent: Agent, checkpoints: Checkpoints, thread_id: str = "done", message: str = "Pay A1.") -> RunResult:
    """Run to the end, approving what is asked."""
    runs = SyncRuns(agent, checkpoints)
    result = runs.run(message, thread_id=thread_id)
    while result.approvals:
        runs.decide(result.approvals[0].id, {"type": "approve"}, by="ana")
        result = runs.wait(result.run_id)
    assert result.status == "succeeded"
    return result


def invoke(agent: Any, text: str, config: Any) -> Any:
    """Give a message to the graph itself, as whoever embeds it without `Runs` does; returns the state."""
    return agent.invoke({"messages": [("user", text)]}, config)
