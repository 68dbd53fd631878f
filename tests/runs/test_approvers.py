"""Who may decide, and how many must: by every way in, and not to be got round by an edit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import (
    Checkpoints,
    Person,
    SyncRuns,
    approve,
    ask,
    create_agent,
    deny,
    edit,
    open_checkpoints,
    reject,
    respond,
    tool,
)
from loopwright.errors import ConfigurationError, InvalidDecision
from loopwright.testing import ManualClock, call, check_transcript

PAY = call("pay", order_id="A1", amount=5)
LEA, LEO = Person("lea", roles=["lead"]), Person("leo", roles=["lead", "law"])
THREAD: Any = {"configurable": {"thread_id": "t"}}


def desk(till: Till, checkpoints: Checkpoints, *rules: Any, turns: Any = PAY, door: DoorName = "sync") -> Desk:
    """Open a desk for an agent that pays by these rules."""
    agent = create_agent(planned([turns, "Done."]), [till.look(), till.pay()], permissions=rules)
    return Desk(agent, checkpoints, door)


@pytest.mark.parametrize("door", DOORS)
def test_a_role_is_asked_for(tmp_path: Path, door: DoorName) -> None:
    """Whoever has it not is refused, whatever they say, and the question stays as it was."""
    till = Till()
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
        opened = desk(till, checkpoints, ask("pay", role="lead"), door=door)
        waiting = opened.run()
        assert "somebody with the role lead" in waiting.approvals[0].description
        for by in ("ana", Person("ana", roles=["Lead", "boss"])):
            for decision in (approve(), edit(amount=1), reject(), respond("done")):
                with pytest.raises(InvalidDecision, match="ana has not the role 'lead'"):
                    opened.decide(waiting.approvals[0].id, decision, by)
        assert opened.wait(waiting.run_id).approvals == waiting.approvals
        assert ("succeeded", [("A1", 5)]) == (opened.answer(waiting, approve(), LEA).status, till.paid)
        decided = [record.data for record in checkpoints.ledger.log.records() if record.event == "decided"]
        assert [("lea", ["lead"])] == [(data["by"], data["roles"]) for data in decided]


@pytest.mark.parametrize("door", DOORS)
def test_two_people_approve(tmp_path: Path, clock: ManualClock, door: DoorName) -> None:
    """The first is told that one is missing, again if they click twice; the second decides, in the name of both."""
    till = Till()
    with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}", clock=clock) as checkpoints:
        opened = desk(till, checkpoints, ask("pay", number=2), door=door)
        waiting = opened.run()
        id_ = waiting.approvals[0].id
        first = opened.decide(id_, approve(), "ana")
        assert (True, 1, ("ana",)) == (first.accepted, first.missing, first.votes)
        assert f"approval {id_}: 1 of 2 have approved: ana" == first.told
        for spelling in ("ana", "Ana", " ANA"):
            again = opened.decide(id_, approve(), spelling)
            assert (False, 1) == (again.accepted, again.missing)
            assert f"approval {id_}: you have approved it before; 1 of 2 have approved: ana" == again.told
        (asked,) = opened.wait(waiting.run_id).approvals
        assert (("ana",), 1, []) == (asked.votes, asked.missing, till.paid)
        second = opened.decide(id_, approve(), "ben")
        assert (True, 0, "ana, ben") == (second.accepted, second.missing, second.by)
        result = opened.wait(waiting.run_id)
        assert ("succeeded", [("A1", 5)], "approved by ana, ben") == (result.status, till.paid, result.trail[0]["why"])
        late = opened.decide(id_, approve(), "eve")
        assert re.search("was already approved by ana, ben on 20.* nothing was changed", late.told)
        log = [record.event for record in checkpoints.ledger.log.records() if record.event in ("voted", "decided")]
        assert ["voted", "voted", "decided"] == log


@pytest.mark.parametrize("decision", [reject("no"), respond("paid by hand")])
def test_one_is_enough_to_keep_it_from_running(checkpoints: Checkpoints, decision: Any) -> None:
    """Also somebody who has approved before."""
    till = Till()
    opened = desk(till, checkpoints, ask("pay", number=2))
    waiting = opened.run()
    opened.decide(waiting.approvals[0].id, approve(), "ana")
    assert "succeeded" == opened.answer(waiting, decision, "ana").status
    late = opened.decide(waiting.approvals[0].id, approve(), "ben")
    assert (False, []) == (late.accepted, till.paid)


def test_an_edit_voids_what_was_approved(checkpoints: Checkpoints) -> None:
    """What two people must see is what runs: the edited call is a question of its own, approved by its editor."""
    till = Till()
    opened = desk(till, checkpoints, ask("pay", number=2))
    waiting = opened.run()
    old = waiting.approvals[0].id
    opened.decide(old, approve(), "ana")
    edited = opened.answer(waiting, edit(amount=4), "ben")
    (asked,) = edited.approvals
    assert ({"order_id": "A1", "amount": 4}, ("ben",), 1) == (asked.args, asked.votes, asked.missing)
    late = opened.decide(old, approve(), "eve")
    assert (False, "edit") == (late.accepted, late.decision["type"])
    assert not opened.decide(asked.id, approve(), "ben").accepted
    back = opened.answer(edited, edit(amount=5), "cara")
    assert ({"order_id": "A1", "amount": 5}, ("cara",)) == (back.approvals[0].args, back.approvals[0].votes)
    assert back.approvals[0].id not in (old, asked.id)
    result = opened.answer(back, approve(), "ana")
    assert ("succeeded", [("A1", 5)]) == (result.status, till.paid)
    assert ("approved by cara, ana", 1) == (result.trail[0]["why"], result.usage.tool_calls)
    check_transcript(result.messages)


def test_an_edit_that_stays_as_it_is_is_a_new_question(checkpoints: Checkpoints) -> None:
    """It ends the old one: nothing can be asked and decided for ever."""
    till = Till()
    opened = desk(till, checkpoints, ask("pay", number=2))
    waiting = opened.run()
    again = opened.answer(waiting, edit(amount=5), "ana")
    assert [("ana",)] == [approval.votes for approval in again.approvals]
    assert ("succeeded", [("A1", 5)]) == (opened.answer(again, approve(), "ben").status, till.paid)


def other_till(till: Till) -> Any:
    """A second tool, for bigger payments."""

    @tool(effect="write")
    def wire(order_id: str, amount: int) -> str:
        """Wire money for an order, by its code. Use it for more than the till holds, never for less."""
        till.paid.append((order_id, amount))
        return f"wired {amount}"

    return wire


STRICTER: dict[str, tuple[list[Any], Any, Any, str]] = {
    "another tool's role": ([ask("wire", role="lead")], edit(tool="wire"), "ana", "has not the role 'lead'"),
    "another tool's requester": ([ask("wire", not_requester=True)], edit(tool="wire"), "customer-7", "requested"),
    "another tool's denial": ([deny("wire", reason="closed")], edit(tool="wire"), "ana", "closed"),
    "another tool's decisions": (
        [ask("wire", decisions=["approve"])],
        edit(tool="wire"),
        "ana",
        "do not allow an edit",
    ),
    "a higher amount's role": (
        [ask("pay", when=lambda proposed: proposed.args["amount"] > 100, role="lead")],
        edit(amount=101),
        "ana",
        "has not the role 'lead'",
    ),
}


@pytest.mark.parametrize(("rules", "decision", "by", "match"), STRICTER.values(), ids=STRICTER.keys())
def test_an_edit_gets_round_no_rule(
    checkpoints: Checkpoints, *, rules: list[Any], decision: Any, by: str, match: str
) -> None:
    """What the edited call would ask of whoever approves it, it asks of whoever edits."""
    till = Till()
    agent = create_agent(planned([PAY, "Done."]), [till.pay(), other_till(till)], permissions=rules)
    runs = SyncRuns(agent, checkpoints)
    waiting = runs.run("Pay.", thread_id="t", requester="customer-7")
    with pytest.raises(InvalidDecision, match=match):
        runs.decide(waiting.approvals[0].id, decision, by=by)
    assert ([], 1) == (till.paid, len(runs.wait(waiting.run_id).approvals))


def test_an_edit_brings_the_other_tools_number(checkpoints: Checkpoints) -> None:
    """Counted under the tool that will run, too."""
    till = Till()
    agent = create_agent(planned([PAY, "Done."]), [till.pay(), other_till(till)], permissions=[ask("wire", number=2)])
    opened = Desk(agent, checkpoints)
    asked = opened.answer(opened.run(), edit(tool="wire"), "ana")
    assert ("wire", ("ana",), {"wire": 1}) == (asked.approvals[0].tool, asked.approvals[0].votes, asked.usage.by_tool)
    result = opened.answer(asked, approve(), "ben")
    assert ([("A1", 5)], {"wire": 1}) == (till.paid, result.usage.by_tool)


def test_the_requester_does_not_decide(checkpoints: Checkpoints) -> None:
    """They can take it back; somebody else can approve it; a run for nobody is not started under such a rule."""
    till = Till()
    agent = create_agent(planned([PAY, "Done."]), [till.pay()], permissions=[ask("pay", not_requester=True)])
    runs = SyncRuns(agent, checkpoints)
    with pytest.raises(ConfigurationError, match=r"ask\('pay'\) wants somebody else .* requester="):
        runs.run("Pay.", thread_id="t")
    first, second = (runs.run("Pay.", thread_id=name, requester="customer-7") for name in "ab")
    assert "not customer-7" in first.approvals[0].description
    with pytest.raises(InvalidDecision, match="Customer-7 requested this run"):
        runs.decide(first.approvals[0].id, approve(), by="Customer-7")
    assert runs.decide(first.approvals[0].id, reject("no more"), by="customer-7").accepted
    assert runs.decide(second.approvals[0].id, approve(), by="ana").accepted
    assert {first.run_id, second.run_id} == {run.id for run in runs.list() if run.requester == "customer-7"}
    assert ["succeeded"] * 2 == [runs.wait(run.run_id).status for run in (first, second)]
    assert [("A1", 5)] == till.paid


def resume(agent: Any, answer: Any, **user: Any) -> Any:
    """Resume as LangGraph's server does, for whom it has authenticated."""
    config = {"configurable": {"thread_id": "t", **user}}
    return agent.invoke(Command(resume=answer), config)


def test_a_raw_answer_needs_an_identity(checkpoints: Checkpoints) -> None:
    """Without a name, or without the role, it is asked again with the reason; the permissions of a server are roles."""
    till = Till()
    rules = [ask("pay", role="lead", number=2, not_requester=True)]
    agent: Any = create_agent(planned([PAY, "Done."]), [till.pay()], permissions=rules, checkpoints=checkpoints)
    agent.invoke(
        {"messages": [("user", "Pay.")]}, {"configurable": {"thread_id": "t", "langgraph_auth_user_id": "lea"}}
    )

    def refused(answer: Any, **user: Any) -> str:
        asked = resume(agent, answer, **user)["__interrupt__"][0].value
        assert [] == till.paid
        return str(asked.get("error", asked["votes"]))

    lead = {"langgraph_auth_permissions": ["lead"]}
    assert "without a name" in refused({"type": "approve"})
    assert "without a name" in refused({"type": "approve"}, **lead)
    assert "has not the role" in refused({"type": "approve"}, langgraph_auth_user_id="ben")
    assert "requested this run" in refused({"type": "approve"}, langgraph_auth_user_id="lea", **lead)
    assert "['ana']" in refused({"type": "approve"}, langgraph_auth_user_id="ana", **lead)
    assert "ana has approved this already" in refused({"type": "approve"}, langgraph_auth_user_id="ana", **lead)
    state = resume(agent, {"type": "approve"}, langgraph_auth_user_id="leo", **lead)
    assert ("answered", [("A1", 5)]) == (state["run"]["reason"], till.paid)


def test_the_user_of_a_server_cannot_say_that_another_requested(checkpoints: Checkpoints) -> None:
    """Who is authenticated is who requests, whatever the request's settings say."""
    agent: Any = create_agent(planned([PAY]), [Till().pay()], checkpoints=checkpoints)
    forged = {"thread_id": "t", "langgraph_auth_user_id": "lea", "__loopwright_requester": "somebody"}
    state = agent.invoke({"messages": [("user", "Pay.")]}, {"configurable": forged})
    assert "lea" == state["run"]["requester"]


def test_what_can_be_decided_is_the_rules_to_say(checkpoints: Checkpoints) -> None:
    """And rejecting is always possible."""
    opened = desk(Till(), checkpoints, ask("pay", decisions=["approve"]))
    waiting = opened.run()
    assert ("approve", "reject") == waiting.approvals[0].allowed
    for decision in (edit(amount=1), respond("x")):
        with pytest.raises(InvalidDecision, match="take one of: approve, reject"):
            opened.decide(waiting.approvals[0].id, decision)
    assert "succeeded" == opened.answer(waiting, reject()).status


def test_a_cancelled_run_asks_nothing_more(checkpoints: Checkpoints) -> None:
    """An edit that would have to be approved by a second person is not asked about once the run is cancelled."""
    till = Till()
    opened = desk(till, checkpoints, ask("pay", number=2))
    waiting = opened.run()
    checkpoints.ledger.decide(waiting.approvals[0].id, {"type": "edit", "args": {"order_id": "A1", "amount": 4}}, "ana")
    opened.cancel(waiting.run_id, "ben")
    result = opened.wait(waiting.run_id)
    assert ("cancelled", [], []) == (result.status, till.paid, checkpoints.ledger.approvals.list_open())
    check_transcript(result.messages)


def test_votes_of_another_branch_do_not_count(checkpoints: Checkpoints) -> None:
    """After going back to before the decision, two people are asked anew."""
    till = Till()
    turns = planned([PAY, "Done."])
    agent: Any = create_agent(turns, [till.pay()], permissions=[ask("pay", number=2)], checkpoints=checkpoints)
    agent.invoke({"messages": [("user", "Pay.")]}, THREAD)
    paused = agent.get_state(THREAD)
    runs = SyncRuns(agent, checkpoints)
    (asked,) = runs.approvals()
    checkpoints.ledger.decide(asked.id, {"type": "approve"}, "ana")
    checkpoints.ledger.decide(asked.id, {"type": "approve"}, "ben")
    agent.invoke(Command(resume={"type": "wake"}), THREAD)
    assert [("A1", 5)] == till.paid
    agent.invoke(None, paused.config)
    resumed = agent.invoke(Command(resume={"type": "approve"}), {"configurable": {**THREAD["configurable"]}})
    assert [("A1", 5)] == till.paid
    assert "without a name" in resumed["__interrupt__"][0].value["error"]


def test_an_editor_is_asked_for_their_role_when_it_counts(checkpoints: Checkpoints) -> None:
    """Between the click and the run the rules can have become stricter: then somebody else is asked about the edit."""
    till, strict = Till(), [False]
    opened = desk(till, checkpoints, ask("pay"), ask("pay", when=lambda _call: strict[0], role="lead"))
    waiting = opened.run()
    assert opened.decide(waiting.approvals[0].id, edit(amount=4)).accepted
    strict[0] = True
    again = opened.wait(waiting.run_id)
    (asked,) = again.approvals
    assert ([], {"order_id": "A1", "amount": 4}) == (till.paid, asked.args)
    assert "ana has not the role 'lead'" in asked.payload["error"]
    receipt = opened.decide(asked.id, edit(amount=3), LEA)
    assert receipt.accepted
    assert ("succeeded", [("A1", 3)]) == (opened.wait(waiting.run_id).status, till.paid)
