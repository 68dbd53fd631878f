"""People: who decides, and what a rule requires of them."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass
from typing import cast

from typing_extensions import TypedDict

from loopwright.errors import InvalidDecision

from .plain import storable

DECISIONS = ("approve", "edit", "reject", "respond")
"""What can be decided about a call."""


@dataclass(frozen=True, slots=True)
class Person:
    """Who decides, as the service that took the answer knows them.

    Raises:
        InvalidDecision: If the name is empty, or a role is no text.
    """

    name: str
    """The same person has the same name everywhere; capitals and spaces around it make no difference."""
    roles: Collection[str] = frozenset()
    """What they may decide about: compared as they are written with the `role` of a rule."""

    def __post_init__(self) -> None:
        """Refuse a name that names nobody, and one text in the place of several."""
        name, roles = cast("object", self.name), cast("object", self.roles)
        if not isinstance(name, str) or not name.strip() or name != storable(name):
            raise InvalidDecision("a decision needs a name: say by whom it is, by='ana'")
        if isinstance(roles, str) or not isinstance(roles, Collection) or not all(map(_is_role, self.roles)):
            text = f"the roles of {name!r} are {roles!r}; give several texts, as Person('ana', roles=['lead'])"
            raise InvalidDecision(text)
        object.__setattr__(self, "roles", frozenset(self.roles))


def _is_role(role: object) -> bool:
    return isinstance(role, str) and bool(role.strip())


def person_of(by: object) -> Person:
    """Return who is meant; a text is a name without roles.

    Raises:
        InvalidDecision: If it names nobody.
    """
    return by if isinstance(by, Person) else Person(cast("str", by))


def name_key(name: str) -> str:
    """Return what two spellings of one name have in common: nobody votes twice by another spelling."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()


class Requirement(TypedDict):
    """What several rules together require of those who decide: an approval keeps it as it was when it was asked."""

    roles: list[str]
    """Whoever decides must have each of them."""
    number: int
    """How many different people must approve."""
    not_by: str | None
    """The requester, who may only reject; empty: not known, so that anybody may only reject; None: no matter who."""
    decisions: list[str]
    """What can be decided; `reject` always can."""


def require_nothing() -> Requirement:
    """Return the requirement that one person decides, whoever it is."""
    return Requirement(roles=[], number=1, not_by=None, decisions=[*DECISIONS])
