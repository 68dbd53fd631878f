"""Calls that stop halfway: a tool asks by LangGraph's `interrupt`, or fails and a person decides how it goes on."""

from __future__ import annotations

from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command, interrupt
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.stores import STORES, Store, open_store

from loopwright import (
    Checkpoints,
    Limits,
    NotDone,
    Person,
    Price,
    Retry,
    allow,
    approve,
    ask,
    create_agent,
    deny,
    edit,
    not_happened,
    open_checkpoints,
    reject,
    respond,
    tool,
)
from loopwright.errors import InvalidDecision
from loopwright.testing import call, check_transcript

SEND = call("send", to="ana")
ALLOWED = [allow("send")]
THREAD: Any = {"configurable": {"thread_id": "t"}}


@pytest.fixture(name="store", params=STORES)
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store, empty."""
    return open_store(request, tmp_path)


class Post:
    """Sends letters; asks for a colour and a size first, and can fail."""

    def __init__(self, *failures: Exception) -> None:
        """Fail so, in this order, before anything is sent."""
        self.began = 0
        self.sent: list[Any] = []
        self.failures = [*failures]

    def asking(self, effect: Any = "write") -> Any:
        """Build the tool that asks twice in its body."""

        @tool(effect=effect)
        def send(to: str) -> str:
            """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
            self.began += 1
            colour = interrupt({"ask": "colour", "to": to})
            size = interrupt("size")
            self.sent.append((colour, size))
            return f"sent {colour} {size}"

        return send

    def failing(self, effect: Any = "write", **options: Any) -> Any:
        """Build the tool that fails as it was told to."""

        @tool(effect=effect, on_error="ask", **options)
        def send(to: str) -> str:
            """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
            self.began += 1
            if self.failures:
                raise self.failures.pop(0)
            self.sent.append(to)
            return "sent"

        return send


def agent_of(*tools: Any, turn: Any = SEND, rules: Any = ALLOWED, **options: Any) -> Any:
    """Build an agent that makes its calls once, and then is done."""
    return create_agent(planned([turn, "Done."]), [*tools], permissions=rules, **options)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_what_a_tool_asks_is_a_question(store: Store, door: DoorName, effect: Any) -> None:
    """Its answers reach the tool in order, in another process too; it is called again from its first line."""
    post = Post()
    with open_checkpoints(store.url) as checkpoints:
        waiting = Desk(agent_of(post.asking(effect)), checkpoints, door).run()
        asked = waiting.approvals[0]
        assert ("tool_interrupt", ("respond", "reject")) == (asked.question, asked.allowed)
        assert {"ask": "colour", "to": "ana"} == asked.payload["value"]
        with nullcontext(checkpoints) if store.kind == "memory" else open_checkpoints(store.url) as elsewhere:
            desk = Desk(agent_of(post.asking(effect)), elsewhere, door)
            waiting = desk.answer(waiting, respond("red"))
            assert ("size", "send asks: size") == (
                waiting.approvals[0].payload["value"],
                waiting.approvals[0].description,
            )
            result = desk.answer(waiting, {"type": "respond", "message": {"cm": 20}})
    assert ([("red", {"cm": 20})], 3) == (post.sent, post.began)
    assert ("succeeded", "sent red {'cm': 20}") == (result.status, result.trail[-1]["observation"])
    assert 1 == result.usage.tool_calls
    check_transcript(result.messages)


def test_a_tool_gets_only_words(checkpoints: Checkpoints) -> None:
    """An approval is no answer; a rejection ends the call, and the tool never goes on."""
    post = Post()
    desk = Desk(agent_of(post.asking()), checkpoints)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="take one of: respond, reject"):
        desk.decide(waiting.approvals[0].id, approve())
    result = desk.answer(waiting, reject("too dear"))
    assert ("rejected", "ERROR: rejected by ana: too dear") == (
        result.trail[0]["outcome"],
        result.trail[0]["observation"],
    )
    assert ([], 1, 1) == (post.sent, post.began, result.usage.tool_calls)


def test_several_tools_ask_one_at_a_time(checkpoints: Checkpoints) -> None:
    """Each call keeps its own answers, whoever is answered first; what was done beside them is done once."""
    post = Post()
    looked: list[str] = []

    @tool(effect="read")
    def look(code: str) -> str:
        """Look up a code. Use it for codes only, never for names."""
        looked.append(code)
        return code

    turn = [call("send", to="ana"), call("look", code="A"), call("send", to="bo")]
    desk = Desk(agent_of(post.asking(), look, turn=turn), checkpoints)
    result = desk.run()
    while result.approvals:
        assert 2 >= len(result.approvals)
        asked = result.approvals[-1]
        to = asked.args["to"]
        desk.decide(asked.id, respond(f"{to}-{'size' if asked.payload['value'] == 'size' else 'colour'}"))
        result = desk.wait(result.run_id)
    assert [("ana-colour", "ana-size"), ("bo-colour", "bo-size")] == sorted(post.sent)
    assert (["A"], "succeeded", 3) == (looked, result.status, result.usage.tool_calls)
    check_transcript(result.messages)


@pytest.mark.parametrize("value", ["red", {"r": 255}, ["a"], 5, False, ""])
def test_a_plain_invoke_is_answered_with_any_value(checkpoints: Checkpoints, value: Any) -> None:
    """As LangGraph has it: `Command(resume=…)` brings what `interrupt` returns."""
    post = Post()
    agent = agent_of(post.asking("read"), checkpoints=checkpoints)
    state = agent.invoke({"messages": [("user", "Go.")]}, THREAD)
    assert {"ask": "colour", "to": "ana"} == state["__interrupt__"][0].value["value"]
    agent.invoke(Command(resume=value), THREAD)
    agent.invoke(Command(resume="big"), THREAD)
    assert [(value, "big")] == post.sent


def test_answers_outlive_another_try(checkpoints: Checkpoints) -> None:
    """A tool that asked, failed for a while and is tried again gets the same answers again."""
    tries: list[str] = []

    @tool(effect="read")
    def send(to: str) -> str:
        """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
        tries.append(interrupt(to))
        if len(tries) == 1:
            raise ConnectionError("away")
        return tries[-1]

    desk = Desk(agent_of(send), checkpoints)
    result = desk.answer(desk.run(), respond("red"))
    assert (["red", "red"], "red") == (tries, result.trail[0]["observation"])


def test_a_newer_message_or_the_end_leaves_a_pause_behind(checkpoints: Checkpoints) -> None:
    """Its question is withdrawn, and the tool never goes on."""
    post = Post()
    desk = Desk(agent_of(post.asking()), checkpoints)
    desk.run()
    newer = desk.run("Something else.")
    assert "not run to its end: superseded by a newer message" in [message.text for message in newer.messages]
    desk.cancel(newer.run_id)
    assert ("cancelled", [], 2) == (desk.wait(newer.run_id).status, post.sent, post.began)


def test_without_a_saver_there_is_nobody_to_ask() -> None:
    """The run ends `denied`, whether a tool asks or fails."""
    for tool_ in (Post().asking(), Post(NotDone("no")).failing()):
        state = agent_of(tool_).invoke({"messages": [("user", "Go.")]})
        assert ("stopped", "denied") == (state["run"]["status"], state["run"]["reason"])


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("effect", ["read", "write"])
def test_a_failure_is_tried_once_more(store: Store, door: DoorName, effect: Any) -> None:
    """An approval lets the call run again, under a new claim; it is counted once."""
    post = Post(NotDone("no stamps"), NotDone("no paper"))
    with open_checkpoints(store.url) as checkpoints:
        desk = Desk(agent_of(post.failing(effect)), checkpoints, door)
        waiting = desk.run()
        asked = waiting.approvals[0]
        assert ("tool_failed", ("approve", "respond", "reject")) == (asked.question, asked.allowed)
        assert "send failed (ERROR: no stamps)" in asked.description
        waiting = desk.answer(waiting, approve())
        assert "no paper" in waiting.approvals[0].description
        assert asked.id != waiting.approvals[0].id
        result = desk.answer(waiting, approve())
        claims = len(checkpoints.ledger.effects.of_run(result.run_id))
    assert ("succeeded", "sent", ["ana"], 3) == (
        result.status,
        result.trail[0]["observation"],
        post.sent,
        post.began,
    )
    assert (1, 3 if effect == "write" else 0) == (result.usage.tool_calls, claims)
    check_transcript(result.messages)


def test_a_failure_stands_or_is_answered(checkpoints: Checkpoints) -> None:
    """Rejected, the model reads the failure and what was said of it; a response takes its place."""
    desk = Desk(agent_of(Post(NotDone("no stamps"), NotDone("no stamps")).failing()), checkpoints)
    failed = desk.answer(desk.run(), reject("leave it"))
    assert ("error", "ERROR: no stamps (ana: leave it)") == (
        failed.trail[0]["outcome"],
        failed.trail[0]["observation"],
    )
    answered = desk.answer(desk.run(thread_id="u"), respond("I sent it"))
    assert ("answered", "I sent it") == (answered.trail[0]["outcome"], answered.trail[0]["observation"])
    assert (1, 1) == (failed.usage.tool_calls, answered.usage.tool_calls)


def test_what_is_unknown_is_asked_as_before(checkpoints: Checkpoints) -> None:
    """A write that broke off may have happened: no approval runs it again."""
    desk = Desk(agent_of(Post(RuntimeError("broken")).failing()), checkpoints)
    waiting = desk.run()
    assert "outcome_unknown" == waiting.approvals[0].question
    with pytest.raises(InvalidDecision, match="cannot be taken"):
        desk.decide(waiting.approvals[0].id, approve())


def test_who_approves_may_let_it_run_again(checkpoints: Checkpoints) -> None:
    """The role that a rule wants for the call is wanted for another try, and for the failure to stand."""
    rules = [ask("send", role="lead", number=2)]
    desk = Desk(agent_of(Post(NotDone("no stamps")).failing(), rules=rules), checkpoints)
    waiting = desk.run()
    for name in ("lea", "leo"):
        desk.decide(waiting.approvals[0].id, approve(), Person(name, ["lead"]))
    waiting = desk.wait(waiting.run_id)
    assert "tool_failed" == waiting.approvals[0].question
    with pytest.raises(InvalidDecision, match="'lead'"):
        desk.decide(waiting.approvals[0].id, approve())
    assert "succeeded" == desk.answer(waiting, approve(), Person("lea", ["lead"])).status


def test_a_failure_that_is_left_stands(checkpoints: Checkpoints) -> None:
    """By a newer message, or a cancellation: the model, and the trail, keep what went wrong."""
    desk = Desk(agent_of(Post(*[NotDone("no stamps")] * 2).failing("read")), checkpoints)
    desk.run()
    newer = desk.run("Something else.")
    assert "ERROR: no stamps" in [message.text for message in newer.messages]
    desk.cancel(newer.run_id)
    ended = desk.wait(newer.run_id)
    assert ("cancelled", "error") == (ended.status, ended.trail[0]["outcome"])


@pytest.mark.parametrize(("dollars", "sent"), [("1.50", []), ("2", ["ana"])])
def test_once_more_is_within_the_limits(checkpoints: Checkpoints, dollars: str, sent: list[str]) -> None:
    """A call that has cost its price once runs again only where its price fits once more."""
    post = Post(ValueError("jam"))
    tools = [post.failing("idempotent", price=Decimal(1), retry=Retry(tries=1))]
    limits, price = Limits(max_cost=Decimal(dollars)), Price(Decimal(0), Decimal(0))
    desk = Desk(agent_of(*tools, limits=limits, price=price), checkpoints)
    result = desk.answer(desk.run(), approve())
    assert sent == post.sent
    assert result.usage.cost == len(sent) + 1
    assert sent or "its price is more than the limit on cost leaves" in result.trail[0]["observation"]


def test_once_more_is_not_for_what_the_rules_deny_by_now(checkpoints: Checkpoints) -> None:
    """Whoever lets a call be tried again does not lift a rule."""
    post, closed = Post(NotDone("jam")), [False]
    rules = [allow("send"), deny("send", when=lambda _call: closed[0], reason="the post is closed")]
    desk = Desk(agent_of(post.failing(), rules=rules), checkpoints)
    waiting = desk.run()
    closed[0] = True
    result = desk.answer(waiting, approve())
    assert ([], "ERROR: the post is closed") == (post.sent, result.trail[0]["observation"])
    check_transcript(result.messages)


@pytest.mark.parametrize("say", [approve(), edit(to="ben")])
def test_an_answer_is_for_one_beginning(checkpoints: Checkpoints, say: Any) -> None:
    """A call that is begun anew after an unknown outcome asks its own questions anew: an edit made it another call."""
    asked: list[str] = []

    @tool(effect="write")
    def send(to: str) -> str:
        """Send a letter to somebody, by name. Use it for letters only, never for parcels."""
        colour = interrupt(f"a letter to {to}?")
        asked.append(f"{to} {colour}")
        raise ConnectionResetError("gone")

    desk = Desk(agent_of(send, rules=[ask("send")]), checkpoints)
    waiting = desk.answer(desk.answer(desk.run(), approve()), respond("yes"))
    desk.resolve(waiting.approvals[0].effect_id, not_happened())
    again = desk.answer(desk.wait(waiting.run_id), say)
    assert "tool_interrupt" == again.approvals[0].question
    assert ["ana yes"] == asked
