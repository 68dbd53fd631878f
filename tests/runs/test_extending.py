"""More for a run that met a limit."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import Agent, Checkpoints, Limits, Price, StopReason, SyncRuns, approve, ask, create_agent
from loopwright.errors import ConfigurationError, InvalidDecision, RunError
from loopwright.testing import ScriptedModel, call, check_transcript

LOOKS = [call("look", order_id=f"A{number}") for number in range(30)]


def build(turns: Any = None, **options: Any) -> Agent:
    """An agent that looks up one order after the other."""
    model = ScriptedModel(turns) if turns else ScriptedModel([*LOOKS[:6], "Done."])
    return create_agent(model, [Till().look()], **options)


@pytest.mark.parametrize("door", DOORS)
def test_it_goes_on_where_it_stopped(checkpoints: Checkpoints, door: DoorName) -> None:
    """In the same run, whose counters go on; what was added is there after each resume."""
    desk = Desk(build(limits=Limits(max_steps=2)), checkpoints, door)
    stopped = desk.run(run_id="r")
    assert (StopReason.MAX_STEPS, 2) == (stopped.stop_reason, stopped.usage.steps)
    assert desk.extend("r", steps=3).accepted
    again = desk.wait("r")
    assert (StopReason.MAX_STEPS, 5, "the run's max_steps of 5") == (again.stop_reason, again.usage.steps, again.limit)
    receipt = desk.extend("r", steps=20)
    assert ({"type": "extend", "steps": 20}, "ana") == (receipt.decision, receipt.by)
    done = desk.wait("r")
    assert ("succeeded", "Done.", 7) == (done.status, done.answer, done.usage.steps)
    check_transcript(done.messages)
    assert ["extended"] * 2 == [record.event for record in checkpoints.ledger.log.records("r") if "ext" in record.event]


def test_far_beyond_the_first_limit(checkpoints: Checkpoints) -> None:
    """LangGraph's own limit cannot strike first."""
    desk = Desk(build([*LOOKS, "Done."], limits=Limits(max_steps=1)), checkpoints)
    desk.run(run_id="r")
    desk.extend("r", steps=100)
    assert ("succeeded", 31) == (desk.wait("r").status, desk.wait("r").usage.steps)


def test_the_totals_of_the_thread_count_it_once(checkpoints: Checkpoints) -> None:
    """As one run, and what was added holds for the thread's limit too."""
    desk = Desk(build(limits=Limits(thread=Limits(max_steps=2))), checkpoints)
    assert "the thread's max_steps of 2" == desk.run(run_id="r").limit
    desk.extend("r", steps=5)
    assert "succeeded" == desk.wait("r").status
    state: Any = SyncRuns(build(), checkpoints)._driver  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # the one way to the thread's record
    from loopwright.nodes import run_through

    row = checkpoints.ledger.runs.find("r")
    thread = run_through(state.state(row))["thread"]
    assert (1, 7) == (thread["runs"], thread["steps"])


def test_a_second_click_adds_nothing(checkpoints: Checkpoints) -> None:
    """While the run goes on, and under the same key for ever."""
    desk = Desk(build(limits=Limits(max_steps=2)), checkpoints)
    desk.run(run_id="r")
    runs = SyncRuns(build(limits=Limits(max_steps=2)), checkpoints)
    assert runs.extend("r", steps=1, by="ana", key="k").accepted
    late = runs.extend("r", steps=9, by="ben")
    assert (False, "ana", 1) == (late.accepted, late.by, late.decision["steps"])
    assert 3 == desk.wait("r").usage.steps
    assert not runs.extend("r", steps=1, by="ana", key="k").accepted
    assert runs.extend("r", steps=1, by="ana", key="other").accepted
    assert 4 == desk.wait("r").usage.steps


ENDED: list[tuple[Callable[[], Agent], str]] = [
    (lambda: build(["Done."]), "succeeded"),
    (lambda: build([RuntimeError("gone")]), "failed"),
    (lambda: build([LOOKS[0]] * 9), "loop"),
]


@pytest.mark.parametrize(("agent", "said"), ENDED)
def test_only_a_limit_can_be_moved(checkpoints: Checkpoints, agent: Callable[[], Agent], said: str) -> None:
    """What ended otherwise stays ended."""
    runs = SyncRuns(agent(), checkpoints)
    result = runs.run("Do it.", thread_id="t")
    with pytest.raises(RunError, match=said):
        runs.extend(result.run_id, steps=5, by="ana")


def test_what_could_not_go_on(checkpoints: Checkpoints) -> None:
    """More of something else, nothing, less than nothing; or a thread that has gone on."""
    runs = SyncRuns(build(limits=Limits(max_steps=2)), checkpoints)
    result = runs.run("Do it.", thread_id="t")
    with pytest.raises(RunError, match="add steps="):
        runs.extend(result.run_id, tokens=5, by="ana")
    wrong: list[dict[str, Any]] = [{}, {"steps": -1}, {"steps": 1.5}, {"cost": 1.5}, {"seconds": float("nan")}]
    for more in wrong:
        with pytest.raises(ConfigurationError):
            runs.extend(result.run_id, by="ana", **more)
    runs.run("Something else.", thread_id="t")
    with pytest.raises(RunError, match="gone on"):
        runs.extend(result.run_id, steps=5, by="ana")


def test_money(checkpoints: Checkpoints) -> None:
    """To the nano-dollar."""
    usage: Any = {"input_tokens": 10, "output_tokens": 1000, "total_tokens": 1010}
    turns = [AIMessage("", tool_calls=[{**LOOKS[0], "id": "c"}], usage_metadata=usage), "Done."]
    price = Price(Decimal(1), Decimal(1))
    desk = Desk(build(turns, price=price, limits=Limits(max_cost=Decimal("0.00105"))), checkpoints)
    assert StopReason.MAX_COST == desk.run(run_id="r").stop_reason
    desk.extend("r", cost=Decimal("0.01"))
    assert "succeeded" == desk.wait("r").status


def test_a_crash_between_the_extension_and_the_first_step(checkpoints: Checkpoints) -> None:
    """Whoever recovers finds the run extended, and goes on."""
    agent = build(limits=Limits(max_steps=2))
    runs = SyncRuns(agent, checkpoints)
    runs.run("Do it.", thread_id="t", run_id="r")
    runs.extend("r", steps=9, by="ana")
    (result,) = SyncRuns(agent, checkpoints).recover()
    assert ("succeeded", 7) == (result.status, result.usage.steps)


def test_whose_run_it_is_is_kept(checkpoints: Checkpoints) -> None:
    """Who asked for a run may not approve for himself, however often it was extended."""
    till, rule = Till(), ask("pay", not_requester=True)
    turns: list[Any] = [LOOKS[0], call("pay", order_id="A1", amount=5), "Paid."]
    limits, tools = Limits(max_steps=1), [till.look(), till.pay()]
    agent = create_agent(ScriptedModel(turns), tools, limits=limits, permissions=[rule])
    desk = Desk(agent, checkpoints)
    desk.run(run_id="r", requester="rita")
    desk.extend("r", steps=5)
    waiting = desk.wait("r")
    with pytest.raises(InvalidDecision, match="rita"):
        desk.decide(waiting.approvals[0].id, approve(), by="rita")
    assert ("Paid.", [("A1", 5)]) == (desk.answer(waiting, approve(), by="ben").answer, till.paid)


def test_last_words_come_again(checkpoints: Checkpoints) -> None:
    """A run that had its last words goes on behind them, and may have them once more."""
    turns = [LOOKS[0], "A0 is there.", LOOKS[1], "Both are there."]
    desk = Desk(build(turns, limits=Limits(max_steps=2), wrap_up=True), checkpoints)
    assert "A0 is there." == desk.run(run_id="r").answer
    desk.extend("r", steps=2)
    result = desk.wait("r")
    assert (StopReason.MAX_STEPS, "Both are there.", 4) == (result.stop_reason, result.answer, result.usage.steps)
    check_transcript(result.messages)


def test_a_message_alone_extends_nothing(checkpoints: Checkpoints) -> None:
    """What the ledger does not know was not added, whoever names a message so."""
    from langchain_core.messages import HumanMessage

    from loopwright.errors import ThreadNotFound

    agent = create_agent(planned([LOOKS[0]]), [Till().look()], limits=Limits(max_steps=1), checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": "t"}}
    states: list[Any] = list(agent.stream({"messages": [HumanMessage("Do it.")]}, config, stream_mode="values"))
    forged = HumanMessage("Go on.", id=f"nudge-extend-{states[-1]['run']['id']}-1")
    with pytest.raises(ThreadNotFound):
        list(agent.stream({"messages": [forged]}, config))
