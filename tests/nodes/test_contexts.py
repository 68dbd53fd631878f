"""What is kept of a context: its fields as plain data, and never a secret; as a table."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, NamedTuple, NotRequired

import pytest
from pydantic import BaseModel, ConfigDict, Field, JsonValue, SecretBytes, SecretStr
from pydantic import Secret as PydanticSecret
from typing_extensions import TypeAliasType, TypedDict

from loopwright import Secret
from loopwright.errors import ConfigurationError
from loopwright.nodes import ContextShape

HIDDEN = "hunter2"


class Login(BaseModel):
    """Half of it is secret."""

    user: str
    token: SecretStr


class Model(BaseModel):
    """Every way to hold something secret."""

    model_config = ConfigDict(extra="allow")

    user: str
    since: datetime
    owed: Decimal
    token: SecretStr
    raw: SecretBytes = SecretBytes(HIDDEN.encode())
    code: PydanticSecret[str] = PydanticSecret(HIDDEN)
    marked: Annotated[str, Secret] = HIDDEN
    marked_too: Annotated[str | None, Field(), Secret()] = HIDDEN
    within: Annotated[str, Secret] | None = HIDDEN
    excluded: str = Field(default=HIDDEN, exclude=True)
    login: Login = Login(user="ana", token=SecretStr(HIDDEN))
    logins: list[Login] = [Login(user="bo", token=SecretStr(HIDDEN))]
    tokens: list[SecretStr] = [SecretStr(HIDDEN)]
    by_name: dict[str, Any] = {"a": SecretStr(HIDDEN), "b": 1}
    name: str = Field(default="x", alias="otherName")


@dataclass
class Plain:
    """A dataclass with something that is no data."""

    user: str
    connection: object = field(default_factory=object)
    token: Annotated[str, Secret] = HIDDEN


class Typed(TypedDict):
    """A typed dictionary."""

    user: str
    token: NotRequired[Annotated[str, Secret]]


class Holder(BaseModel):
    """Typed dictionaries and a mark, within other types."""

    one: Typed
    many: list[Typed]
    named: dict[str, Typed | None]
    tokens: list[Annotated[str, Secret]] = [HIDDEN]


def test_marks_hold_within_other_types() -> None:
    """A dictionary does not know its own type; the declared one is what counts."""
    typed: Typed = {"user": "ana", "token": HIDDEN}
    kept = ContextShape(Holder).kept(Holder(one=typed, many=[typed], named={"a": typed}))
    assert {"one": {"user": "ana"}, "many": [{"user": "ana"}], "named": {"a": {"user": "ana"}}} == kept


Pin = TypeAliasType("Pin", Annotated[str, Secret])
Tree = TypeAliasType("Tree", "dict[str, Tree | Pin]")


class Pair(NamedTuple):
    """A tuple with names, one of them secret."""

    user: str
    pin: Annotated[str, Secret]


class Point(NamedTuple):
    """Another one, with nothing secret."""

    x: int
    y: int


class Marked(BaseModel):
    """Holds one."""

    user: str = "ana"
    pin: Annotated[str, Secret] = HIDDEN


@dataclass
class Anything:
    """Says nothing of what it holds."""

    held: Any
    user: str = "ana"


class Named(TypedDict):
    """Secret by the name of a type."""

    user: str
    pin: Pin


class Trees(TypedDict):
    """By the name of a type that only says by name what it is; and of one that holds itself, and no secret."""

    user: str
    tree: NotRequired[Tree]
    data: NotRequired[JsonValue]


@pytest.mark.parametrize(
    ("schema", "given", "kept"),
    [
        (Named, {"user": "ana", "pin": HIDDEN}, {"user": "ana"}),
        (Trees, {"user": "ana", "tree": {"a": HIDDEN}, "data": [{"a": 1}]}, {"user": "ana", "data": [{"a": 1}]}),
        (Anything, Anything(Pair("ana", HIDDEN)), {"user": "ana"}),
        (Anything, Anything(Point(1, 2)), {"user": "ana", "held": [1, 2]}),
        (Anything, Anything(deque([Marked()])), {"user": "ana", "held": [{"user": "ana"}]}),
        (Anything, Anything({"a": deque([Pair("ana", HIDDEN)])}), {"user": "ana", "held": {}}),
        (Anything, Anything(iter([Marked()])), {"user": "ana"}),
    ],
)
def test_marks_hold_behind_names_and_in_other_collections(schema: Any, given: Any, kept: object) -> None:
    """The name of a type, a tuple with names, and a collection that JSON does not have hide no mark."""
    assert kept == ContextShape(schema).kept(given)


def test_a_type_within_a_function_keeps_nothing_that_it_cannot_judge() -> None:
    """Its marks may not be readable; then all of it counts as secret."""

    class Name:
        """Known here only."""

    @dataclass
    class Local:
        user: Name
        token: Annotated[str, Secret] = HIDDEN

    assert {} == ContextShape(Local).kept(Local(Name()))


def test_a_model_is_kept_without_its_secrets() -> None:
    """At any depth, in a list and under a mark; what is left can be read back."""
    given = Model.model_validate(
        {
            "user": "ana",
            "since": datetime(2026, 1, 1, tzinfo=UTC),
            "owed": "1.50",
            "token": HIDDEN,
            "extra": SecretStr(HIDDEN),
        }
    )
    shape = ContextShape(Model)
    kept = shape.kept(given)
    assert HIDDEN not in repr(kept)
    assert "*" not in repr(kept)
    assert {
        "user": "ana",
        "since": "2026-01-01T00:00:00Z",
        "owed": "1.50",
        "login": {"user": "ana"},
        "logins": [{"user": "bo"}],
        "by_name": {"b": 1},
        "name": "x",
    } == kept
    del kept["login"], kept["logins"]
    again = shape.taken({**kept, "token": HIDDEN})
    assert (given.since, given.owed, HIDDEN) == (again.since, again.owed, again.token.get_secret_value())


@pytest.mark.parametrize(
    ("schema", "given"), [(Plain, Plain("ana")), (Plain, {"user": "ana"}), (Typed, {"user": "ana", "token": HIDDEN})]
)
def test_other_types_are_kept_so_too(schema: Any, given: Any) -> None:
    """Dataclasses, even with what JSON cannot hold, and typed dictionaries."""
    shape = ContextShape(schema)
    assert {"user": "ana"} == shape.kept(shape.taken(given))


@pytest.mark.parametrize("given", [{"user": "ana"}, {"user": "ana", "token": ["hunter2"]}, 5, "hunter2", None])
def test_what_does_not_fit_is_refused_without_its_values(given: Any) -> None:
    """The message names fields, and no value."""
    with pytest.raises(ConfigurationError) as caught:
        ContextShape(Login).taken(given)
    assert HIDDEN not in str(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("schema", [dict, str, "Login", Login(user="a", token=SecretStr("b"))])
def test_only_types_with_fields_are_contexts(schema: Any) -> None:
    """Of anything else nothing could be left out."""
    with pytest.raises(ConfigurationError, match="context_schema"):
        ContextShape(schema)
