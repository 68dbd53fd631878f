"""Cases from public bug reports: edits that skip validation, gates that a misspelling opens, answers that are nothing.

C09, C13, C15, C18.
"""

from __future__ import annotations

from itertools import permutations
from typing import Annotated, Any

import pytest
from langgraph.types import Command
from pydantic import Field
from tests.world.doors import Desk
from tests.world.plans import planned

from loopwright import Checkpoints, approve, ask, create_agent, deny, edit, open_checkpoints, reject, respond, tool
from loopwright.errors import ConfigurationError, InvalidDecision
from loopwright.testing import call, check_transcript
from loopwright.tools import Tool


def build_pay(paid: list[int]) -> Tool:
    """Build the tool of the report: an amount above 0."""

    @tool(effect="write")
    def pay(amount: Annotated[int, Field(gt=0)]) -> str:
        """Pay an amount to the customer, after it was checked. Not for refunds."""
        paid.append(amount)
        return f"paid {amount}"

    return pay


@pytest.mark.parametrize("raw", [False, True], ids=["decide", "resume"])
def test_c09_an_edit_is_validated(checkpoints: Checkpoints, raw: bool) -> None:  # noqa: FBT001 -- by which door
    """What does not fit is refused and the pause stays; '7' becomes 7 and runs; both arguments are recorded."""
    paid: list[int] = []
    agent: Any = create_agent(planned([call("pay", amount=5), "Done."]), [build_pay(paid)], checkpoints=checkpoints)
    desk = Desk(agent, checkpoints)
    waiting = desk.run()
    config: Any = {"configurable": {"thread_id": "t"}}
    for args in ({"amount": "abc"}, {"amount": -1}, {}, {"amount": 6, "to": "me"}):
        if raw:
            asked = agent.invoke(Command(resume={"type": "edit", "args": args}), config)["__interrupt__"][0].value
            assert "cannot run: invalid arguments for pay" in asked["error"]
        else:
            with pytest.raises(InvalidDecision, match="cannot run: invalid arguments for pay"):
                desk.decide(waiting.approvals[0].id, edit(args))
        assert ([waiting.approvals[0].id], []) == ([one.id for one in desk.wait(waiting.run_id).approvals], paid)
    result = desk.answer(waiting, edit(amount="7"))
    assert ([7], {"amount": 7}, {"amount": 5}) == (paid, result.trail[0]["args"], result.trail[0].get("proposed"))


WRITE: Any = ask
FORBID: Any = deny
MISSPELT: dict[str, tuple[Any, str]] = {
    "an option": (
        lambda: WRITE("pay", expire_in=60),
        r"ask\('pay'\) has no option expire_in; did you mean expires",
    ),
    "an option of another rule": (lambda: FORBID("pay", role="lead"), r"deny\('pay'\) has no option role"),
    "no decisions": (lambda: WRITE("pay", decisions=[]), r"ask\('pay'\): decisions is \[\]"),
    "a decision": (lambda: WRITE("pay", decisions=["aprove"]), r"ask\('pay'\): decisions holds 'aprove'"),
    "one decision alone": (lambda: WRITE("pay", decisions="approve"), "list some of"),
    "a tool": (lambda: WRITE("pai"), "did you mean 'pay'"),
    "an effect": (lambda: WRITE("effect:writes"), "did you mean 'effect:write'"),
    "None for a tool": (lambda: WRITE(None), "one tool's name"),
    "None for a rule": (lambda: None, "no rule"),
    "None for a predicate": (lambda: FORBID("pay", when=None), "when is None"),
    "None for a role": (lambda: WRITE("pay", role=None), "role is None"),
    "an empty role": (lambda: WRITE("pay", role=" "), "role is ' '"),
    "nobody": (lambda: WRITE("pay", number=0), "number is 0"),
    "a half": (lambda: WRITE("pay", number=1.5), "number is 1.5"),
    "no bool": (lambda: WRITE("pay", not_requester="no"), "not_requester is 'no'"),
    "another expiry": (lambda: WRITE("pay", on_expiry="approve"), "silence is no consent"),
    "a late reminder": (lambda: WRITE("pay", expires_in=60, remind_after=60), "comes too late"),
    "no time at all": (lambda: WRITE("pay", remind_after=0), "remind_after is 0"),
}


@pytest.mark.parametrize(("rule", "match"), MISSPELT.values(), ids=MISSPELT.keys())
def test_c13_a_misspelt_gate_is_refused(rule: Any, match: str) -> None:
    """When it is written or the agent is built, with the tool and the option named."""
    with pytest.raises(ConfigurationError, match=match):
        create_agent(planned([]), [build_pay([])], permissions=[rule()])


def test_c15_three_questions_of_one_turn() -> None:
    """All are seen at once; in whatever order they are answered, each answer reaches its call, and bodies run once."""
    decisions: list[Any] = [approve(), reject("no"), respond("by hand")]
    for order in permutations(range(3)):
        paid: list[int] = []
        model = planned([[call("pay", amount=amount) for amount in (1, 2, 3)], "Done."])
        with open_checkpoints("memory:") as checkpoints:
            desk = Desk(create_agent(model, [build_pay(paid)]), checkpoints)
            waiting = desk.run()
            asked = {approval.args["amount"]: approval.id for approval in waiting.approvals}
            assert ({1, 2, 3}, 3) == (set(asked), len(set(asked.values())))
            for place in order:
                assert [] == paid
                desk.decide(asked[place + 1], decisions[place])
            result = desk.wait(waiting.run_id)
        assert [(1, "done"), (2, "rejected"), (3, "answered")] == [
            (entry["args"]["amount"], entry["outcome"]) for entry in result.trail
        ]
        assert [1] == paid
        check_transcript(result.messages)


@pytest.mark.parametrize("answer", [False, 0, "", [], {"type": None}, {"decisions": {}}])
def test_c18_an_answer_that_is_nothing(checkpoints: Checkpoints, answer: Any) -> None:
    """It is no decision by either way in, and the question is still there."""
    paid: list[int] = []
    agent: Any = create_agent(planned([call("pay", amount=5), "Done."]), [build_pay(paid)], checkpoints=checkpoints)
    desk = Desk(agent, checkpoints)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="is no decision"):
        desk.decide(waiting.approvals[0].id, answer)
    state = agent.invoke(Command(resume=answer), {"configurable": {"thread_id": "t"}})
    assert "is no decision" in state["__interrupt__"][0].value["error"]
    assert "succeeded" == desk.answer(waiting, approve()).status
    assert [5] == paid
