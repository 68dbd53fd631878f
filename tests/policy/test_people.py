"""Who may decide: a table, and how the rules that ask are combined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from loopwright.errors import InvalidDecision
from loopwright.policy import ProposedCall, ask, describe_requirement, refuse_person, screen
from loopwright.state import DECISIONS, Person, Requirement, name_key, person_of

ANA, LEAD = Person("ana"), Person("lea", roles=["lead", "finance"])


def needs(
    *, roles: Sequence[str] = (), number: int = 1, not_by: str | None = None, decisions: Sequence[str] = DECISIONS
) -> Requirement:
    """Require something."""
    return Requirement(roles=[*roles], number=number, not_by=not_by, decisions=[*decisions])


TABLE: dict[str, tuple[Requirement, Person | None, str, str]] = {
    "anybody": (needs(), ANA, "approve", ""),
    "nobody known": (needs(), None, "approve", ""),
    "the role": (needs(roles=["lead"]), LEAD, "approve", ""),
    "every role": (needs(roles=["finance", "lead"]), LEAD, "approve", ""),
    "one role is missing": (needs(roles=["law", "lead"]), LEAD, "approve", "has not the role 'law'"),
    "another spelling of a role": (needs(roles=["Lead"]), LEAD, "approve", "has not the role 'Lead'"),
    "no role, no rejection": (needs(roles=["lead"]), ANA, "reject", "has not the role"),
    "nobody known, a role": (needs(roles=["lead"]), None, "approve", "without a name"),
    "nobody known, two people": (needs(number=2), None, "approve", "without a name"),
    "nobody known, not the requester": (needs(not_by="ana"), None, "reject", "without a name"),
    "the requester": (needs(not_by="ana"), ANA, "approve", "requested this run"),
    "the requester edits": (needs(not_by="ana"), ANA, "edit", "requested this run"),
    "the requester, spelt otherwise": (needs(not_by=" ANA "), ANA, "respond", "requested this run"),
    "the requester takes it back": (needs(not_by="ana"), ANA, "reject", ""),
    "somebody else": (needs(not_by="customer-7"), ANA, "approve", ""),
    "requested by nobody knows whom": (needs(not_by=""), ANA, "approve", "only be rejected"),
}


@pytest.mark.parametrize(("required", "person", "kind", "refused"), TABLE.values(), ids=TABLE.keys())
def test_who_may_decide(required: Requirement, person: Person | None, kind: str, refused: str) -> None:
    """Each refusal says why."""
    said = refuse_person(required, person, kind)
    assert refused in said
    assert bool(refused) == bool(said)


def test_rules_that_ask_are_combined_strictly() -> None:
    """Every role, the highest number, the shortest times, what each lets decide; and all their reasons."""
    rules = [
        ask("pay", reason="money", role="lead", number=1, expires_in=600, decisions=["approve", "reject"]),
        ask("effect:write", role="finance", number=2, expires_in=60, remind_after=30),
        ask("pay", not_requester=True, remind_after=300, decisions=["approve", "edit"]),
        ask("pay", when=lambda _call: False, role="nobody", number=9, expires_in=1),
    ]
    run: Any = {"requester": "customer-7"}
    thread: Any = {}
    said = screen(rules, ProposedCall("pay", "write", {}, run, thread, ()))
    assert said.needs is not None
    assert said.needs == Requirement(
        roles=["finance", "lead"], number=2, not_by="customer-7", decisions=["approve", "reject"]
    )
    assert (60, 30) == (said.expires_in, said.remind_after)
    assert said.why.startswith("money; by the rule ask('effect:write')")
    assert describe_requirement(said.needs) == "2 different people with the role finance and lead, not customer-7"


def test_a_person_is_somebody() -> None:
    """Roles are several texts; a text alone is a name; another spelling is no other person."""
    assert Person("ana", roles=["b", "a"]) == Person("ana", roles={"a", "b"})
    assert Person("ana") == person_of("ana")
    assert LEAD is person_of(LEAD)
    assert name_key("Ana  Maria ") == name_key("ana maria")
    wrong: list[Any] = ["lead", 3, [""], [3], None]
    for roles in wrong:
        with pytest.raises(InvalidDecision, match="roles of 'ana'"):
            Person("ana", roles=roles)
