"""Any model, any people, any restarts: what must hold of every run."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage
from tests.world.plans import planned

from loopwright import (
    Agent,
    Effect,
    Limits,
    RunResult,
    SyncRuns,
    approve,
    create_agent,
    deny,
    edit,
    open_checkpoints,
    reject,
    respond,
    tool,
)
from loopwright.testing import call, check_transcript

STEPS, CALLS = 6, 7
PAYS = st.sampled_from([call("pay", amount=amount) for amount in (1, 2, 3)])
CALL = st.one_of(
    PAYS,
    PAYS,
    st.sampled_from([call("look", code=code) for code in "ab"]),
    st.just(call("forbidden", code="x")),
    st.just(call("unknown", code="x")),
    st.just(call("pay", amount="much")),
    st.just(call("pay")),
)


def odd(content: Any = "", **extra: Any) -> AIMessage:
    """A reply that is neither an answer nor a sound call."""
    return AIMessage(content, **extra)


TURN: Any = st.one_of(
    st.lists(CALL, min_size=1, max_size=3),
    CALL,
    CALL,
    st.sampled_from(["Done.", odd(), odd("It is", response_metadata={"finish_reason": "length"})]),
    st.just(odd(additional_kwargs={"refusal": "I cannot."})),
    st.just(
        odd(invalid_tool_calls=[{"name": "pay", "args": "{", "id": None, "error": None, "type": "invalid_tool_call"}])
    ),
    st.just(odd("Both.", tool_calls=[{**call("look", code="a"), "id": ""}, {**call("pay", amount=1), "id": ""}])),
)
SAYS: Any = st.sampled_from(["approve", "approve", "approve", "edit", "reject", "respond", "cancel", "message"])


class World:
    """What a run did, seen from outside."""

    def __init__(self, folder: str, turns: Sequence[Any]) -> None:
        """Build the agent over a database file."""
        self.url = f"sqlite:///{Path(folder) / 'runs.db'}"
        self.paid: list[tuple[str, int]] = []
        self.agent = self._build(turns)
        self.approved: Counter[int] = Counter()

    def _build(self, turns: Sequence[Any]) -> Agent:
        @tool(effect="write")
        def pay(amount: int, handle: Effect) -> str:
            """Pay an amount to the customer, after a person has approved it."""
            self.paid.append((handle.key, amount))
            return f"paid {amount}"

        @tool(effect="read")
        def look(code: str) -> str:
            """Look up an order by its code."""
            return f"{code} is there"

        @tool(effect="write")
        def forbidden(code: str) -> str:
            """Do what no rule permits, for an order."""
            raise AssertionError(code)

        limits = Limits(max_steps=STEPS, max_tool_calls=CALLS)
        return create_agent(
            planned([*turns, "The end."]), [pay, look, forbidden], limits=limits, permissions=[deny("forbidden")]
        )


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TURN, min_size=1, max_size=6), st.lists(SAYS, max_size=14), st.booleans())
def test_any_turns_decisions_and_restarts(turns: list[Any], says: list[str], restart: bool) -> None:  # noqa: FBT001 -- drawn
    """A valid transcript, one payment at most for each that was approved, none that was not, and no limit overrun."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(folder, turns)
        if restart:
            with open_checkpoints(world.url) as checkpoints:
                run_id = SyncRuns(world.agent, checkpoints).run("Do it.", thread_id="t").run_id
            for say in says:
                with open_checkpoints(world.url) as checkpoints:
                    run_id = answer(SyncRuns(world.agent, checkpoints), world, run_id, say)
        else:
            with open_checkpoints(world.url) as checkpoints:
                runs = SyncRuns(world.agent, checkpoints)
                run_id = runs.run("Do it.", thread_id="t").run_id
                for say in says:
                    run_id = answer(runs, world, run_id, say)


def answer(runs: SyncRuns, world: World, run_id: str, say: str) -> str:
    """Let a person do one thing, check what must hold, and return the run that is on now."""
    result = runs.get(run_id)
    if say == "message":
        run_id = runs.run("And now?", thread_id="t").run_id
    elif say == "cancel":
        runs.cancel(run_id, by="ana")
    elif result.approvals:
        decide(runs, world, result, say)
    result = runs.wait(run_id)
    hold(world, result)
    return run_id


def decide(runs: SyncRuns, world: World, result: RunResult, say: str) -> None:
    """Decide about the first question; what is approved may be paid once."""
    asked = result.approvals[0]
    said = {"approve": approve(), "edit": edit(amount=9), "reject": reject("no"), "respond": respond("by hand")}[say]
    assert runs.decide(asked.id, said, by="ana").accepted
    if say in ("approve", "edit"):
        world.approved[9 if say == "edit" else asked.args["amount"]] += 1


def hold(world: World, result: RunResult) -> None:
    """What must hold whenever a run rests."""
    messages = [*result.messages]
    if result.status == "waiting":
        assert isinstance(messages.pop(), AIMessage)
    check_transcript(messages)
    assert Counter(amount for _, amount in world.paid) <= world.approved
    assert len({key for key, _ in world.paid}) == len(world.paid)
    assert result.usage.steps <= STEPS
    assert result.usage.tool_calls <= CALLS
    done = sum(entry["outcome"] == "done" for entry in result.trail)
    assert done <= result.usage.tool_calls <= done + len(result.approvals) + pending(result)


def pending(result: RunResult) -> int:
    """Calls of a waiting turn that were admitted and will run with it."""
    return 0 if result.status.is_final else CALLS
