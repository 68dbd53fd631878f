"""`ask_human`: the model asks a person, who answers in their own words; nothing runs."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.stores import STORES, Store, open_store
from tests.world.till import Till

from loopwright import (
    Checkpoints,
    Limits,
    Person,
    allow,
    approve,
    ask,
    create_agent,
    deny,
    edit,
    open_checkpoints,
    reject,
    respond,
)
from loopwright.errors import InvalidDecision
from loopwright.testing import ManualClock, call, check_transcript
from loopwright.tools import ask_human

WHICH = call("ask_human", question="Which colour?", choices=["red", "blue"])
OPEN = call("ask_human", question="What is the name?")
THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(name="store", params=STORES)
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store, empty."""
    return open_store(request, tmp_path)


def agent_of(*turns: Any, rules: Any = (), till: Till | None = None, limits: Limits | None = None) -> Any:
    """Build an agent that can ask, pay and look."""
    till = till or Till()
    tools = [ask_human, till.pay(), till.look()]
    return create_agent(planned([*turns, "Done."]), tools, permissions=rules, limits=limits)


@pytest.mark.parametrize("door", DOORS)
def test_an_answer_is_the_calls_result(store: Store, door: DoorName) -> None:
    """It is asked as a question of its own kind, in another process too, and counts as a call of the tool."""
    agent = agent_of(OPEN)
    with open_checkpoints(store.url) as checkpoints:
        waiting = Desk(agent, checkpoints, door).run()
        asked = waiting.approvals[0]
        assert ("question", "question", ("respond", "reject")) == (asked.question, asked.payload["type"], asked.allowed)
        assert "What is the name?" == asked.description
        with nullcontext(checkpoints) if store.kind == "memory" else open_checkpoints(store.url) as elsewhere:
            result = Desk(agent_of(OPEN), elsewhere, door).answer(waiting, respond("Ana's cat"))
    assert ("succeeded", "answered", "Ana's cat") == (result.status, *_last(result, "outcome", "observation"))
    assert (1, {"ask_human": 1}) == (result.usage.tool_calls, result.usage.by_tool)
    check_transcript(result.messages)


def _last(result: Any, *fields: str) -> tuple[Any, ...]:
    return tuple(result.trail[-1][field] for field in fields)


@pytest.mark.parametrize("decision", [approve(), edit(question="Who?"), {"type": "accept", "args": None}])
def test_only_words_answer_it(checkpoints: Checkpoints, decision: Any) -> None:
    """Whatever would let it run, or change it, is refused, and the question stays open."""
    desk = Desk(agent_of(OPEN), checkpoints)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="take one of: respond, reject"):
        desk.decide(waiting.approvals[0].id, decision)
    assert waiting.approvals == desk.wait(waiting.run_id).approvals


def test_a_choice_outside_the_list_is_told(checkpoints: Checkpoints) -> None:
    """Through `decide` it is refused; the question stays open, and one of the choices answers it."""
    desk = Desk(agent_of(WHICH), checkpoints)
    waiting = desk.run()
    assert "Which colour? Answer with one of: red, blue." == waiting.approvals[0].description
    with pytest.raises(InvalidDecision, match="'green' is none of the choices; answer with one of: red, blue"):
        desk.decide(waiting.approvals[0].id, respond("green"))
    assert "blue" == _last(desk.answer(waiting, respond("blue")), "observation")[0]


def test_a_raw_answer_is_asked_again_until_it_is_one(checkpoints: Checkpoints) -> None:
    """A chat UI resumes with bare text: what is no choice, or would run it, comes back with the error."""
    agent: Any = create_agent(planned([WHICH, "Done."]), [ask_human], checkpoints=checkpoints)
    task = {"messages": [("user", "Go.")]}
    agent.invoke(task, THREAD)
    for wrong, told in (("green", "none of the choices"), ({"type": "approve"}, "cannot be taken"), (5, "no decision")):
        state = agent.invoke(Command(resume=wrong), THREAD)
        assert told in state["__interrupt__"][0].value["error"]
    state = agent.invoke(Command(resume="red"), THREAD)
    assert ("red", "Done.") == (state["messages"][-2].text, state["messages"][-1].text)


def test_rejected_it_has_no_answer(checkpoints: Checkpoints) -> None:
    """The model reads who gave none, and why; the same question is not put again."""
    desk = Desk(agent_of(OPEN, OPEN), checkpoints)
    result = desk.answer(desk.run(), reject("ask the shop"))
    assert ["rejected", "denied"] == [entry["outcome"] for entry in result.trail]
    assert "ERROR: no answer from ana: ask the shop" == result.trail[0]["observation"]
    assert {"ask_human": 1} == result.usage.by_tool


@pytest.mark.parametrize("rules", [[allow("ask_human")], [allow("effect:read")], []])
def test_no_rule_makes_it_run(checkpoints: Checkpoints, rules: Any) -> None:
    """Allowed, it asks all the same."""
    assert "waiting" == Desk(agent_of(OPEN, rules=rules), checkpoints).run().status


def test_a_rule_can_forbid_it_or_say_who_answers(checkpoints: Checkpoints, clock: ManualClock) -> None:
    """A role is asked for, the time runs out, and a denied question is never put."""
    denied = Desk(agent_of(OPEN, rules=[deny("ask_human")]), checkpoints).run(thread_id="denied")
    assert ("succeeded", "denied") == (denied.status, *_last(denied, "outcome"))
    desk = Desk(agent_of(OPEN, rules=[ask("ask_human", role="lead", expires_in=60)]), checkpoints)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="'lead'"):
        desk.decide(waiting.approvals[0].id, respond("Bo"))
    assert "Bo" == _last(desk.answer(waiting, respond("Bo"), Person("lea", ["lead"])), "observation")[0]
    late = desk.run(thread_id="late")
    clock.advance(61)
    assert "not run: nobody answered it in time" == _last(desk.wait(late.run_id), "observation")[0]


def test_an_edit_cannot_make_a_question_of_a_call(checkpoints: Checkpoints) -> None:
    """Else it would run as a tool."""
    desk = Desk(agent_of(call("pay", order_id="A1", amount=5)), checkpoints)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="cannot make a question"):
        desk.decide(waiting.approvals[0].id, edit({"question": "Why?"}, tool="ask_human"))


@pytest.mark.parametrize("door", DOORS)
def test_beside_other_calls_of_the_turn(checkpoints: Checkpoints, door: DoorName) -> None:
    """The turn waits for all its questions; then what may run, runs, and results are told in call order."""
    till = Till()
    turn = [call("look", order_id="A1"), OPEN, call("pay", order_id="A1", amount=5)]
    desk = Desk(agent_of(turn, till=till), checkpoints, door)
    waiting = desk.run()
    asked = {approval.question: approval.id for approval in waiting.approvals}
    assert {"question", "tool_approval"} == set(asked)
    desk.decide(asked["question"], respond("Bo"))
    waiting = desk.wait(waiting.run_id)
    assert ([], ["tool_approval"]) == (till.looked, [approval.question for approval in waiting.approvals])
    result = desk.answer(waiting, approve())
    assert ["DELIVERED", "Bo", "paid 5 for A1"] == [entry["observation"] for entry in result.trail]
    check_transcript(result.messages)


def test_questions_are_within_the_limits(checkpoints: Checkpoints) -> None:
    """An answered one stays counted: a model cannot ask for ever."""
    desk = Desk(agent_of(OPEN, WHICH, limits=Limits(max_tool_calls=1)), checkpoints)
    result = desk.answer(desk.run(), respond("Bo"))
    assert ("max_tool_calls", ["answered", "not_run"]) == (
        result.stop_reason,
        [entry["outcome"] for entry in result.trail],
    )


def test_with_nobody_to_ask_the_run_ends() -> None:
    """Without a saver there is no pause."""
    state = agent_of(OPEN).invoke({"messages": [("user", "Go.")]})
    assert ("stopped", "denied") == (state["run"]["status"], state["run"]["reason"])
