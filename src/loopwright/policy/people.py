"""Who may decide about a call. Pure functions."""

from __future__ import annotations

from loopwright.state import Person, Requirement, name_key


def refuse_person(needs: Requirement, person: Person | None, kind: str) -> str:
    """Say why a person may not take a decision of this kind; empty when they may.

    Args:
        needs: What the rules require.
        person: Who decides; None: nobody knows.
        kind: `approve`, `edit`, `reject` or `respond`.
    """
    if person is None:
        return _refuse_nobody(needs)
    if missing := [role for role in needs["roles"] if role not in person.roles]:
        return f"{person.name} has not the role {' and '.join(map(repr, missing))} that the rules ask for"
    if needs["not_by"] is None or kind == "reject":
        return ""
    if not needs["not_by"]:
        return "nobody knows who requested this run, so it can only be rejected; start runs with requester='…'"
    if name_key(needs["not_by"]) == name_key(person.name):
        return f"{person.name} requested this run, and the rules want somebody else to decide"
    return ""


def _refuse_nobody(needs: Requirement) -> str:
    if not needs["roles"] and needs["number"] == 1 and needs["not_by"] is None:
        return ""
    return "the rules ask who decides, and this answer came without a name: answer with Runs.decide(…, by=Person(…))"


def describe_requirement(needs: Requirement) -> str:
    """Say who may decide, in a few words; empty when it is anybody."""
    role = " and ".join(needs["roles"])
    people = f"{needs['number']} different people" if needs["number"] > 1 else "somebody" if role else ""
    parts = [f"{people} with the role {role}" if role else people]
    if needs["not_by"] is not None:
        parts.append(f"not {needs['not_by'] or 'the requester'}")
    return ", ".join(part for part in parts if part)
