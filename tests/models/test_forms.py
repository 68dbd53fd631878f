"""The form of a final answer: what is read as one, and what never is."""

from __future__ import annotations

import dataclasses
import typing
from datetime import date
from typing import Any

import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field, RootModel, SecretStr, field_validator
from typing_extensions import TypedDict

from loopwright import Native
from loopwright.errors import ConfigurationError
from loopwright.models import AnswerForm, UnfitAnswer, build_form
from loopwright.models.protocol import speak_json
from loopwright.testing import ScriptedModel

MODEL = ScriptedModel([])


class Trip(BaseModel):
    """A pydantic model."""

    place: str
    days: int = Field(gt=0, alias="numberOfDays")
    begins: date = date(2026, 1, 2)

    @field_validator("place")
    @classmethod
    def _known(cls, place: str) -> str:
        return {"Rome": "Roma", "Roma": "Roma"}[place] if place != "Nowhere" else str(1 / 0)


class Part(TypedDict):
    """A TypedDict."""

    place: str


@dataclasses.dataclass
class Plan:
    """A dataclass that holds itself."""

    place: str
    then: Plan | None = None


class Standard(typing.TypedDict):
    """The standard library's: pydantic cannot read it before Python 3.12."""

    place: str


SCHEMA = {"type": "object", "properties": {"place": {"type": "string", "minLength": 2}}, "required": ["place"]}


def form(response_format: Any = Trip) -> AnswerForm:
    """Build a form."""
    built = build_form(response_format, MODEL)
    assert built is not None
    return built


FITS = '{"place": "Rome", "numberOfDays": 3}'


@pytest.mark.parametrize(
    "text",
    [
        FITS,
        f"```json\n{FITS}\n```",
        f"Here it is:\n{FITS}\nHave a good time!",
        f"<think>Not {{1}} or {FITS.replace('3', '4')}.</think>{FITS}",
        f"{FITS} and again {FITS}",
    ],
)
def test_read(text: str) -> None:
    """Fences, thoughts and prose around it do not matter; what is kept has all defaults, and loads again."""
    value, plain = form().read(text)
    assert Trip(place="Roma", numberOfDays=3) == value
    assert {"place": "Roma", "numberOfDays": 3, "begins": "2026-01-02"} == plain
    assert value == form().rebuild(plain)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Rome, three days.", "no JSON objects"),
        (f"{FITS} or {FITS.replace('3', '4')}", "2 JSON objects that could be meant"),
        (f"[{FITS}]", "it holds a list"),
        (FITS[:-1], "breaks off"),
        ('{"place": "Rome", "place": "Oslo", "numberOfDays": 3}', "no JSON"),
        ('{"place": "Rome", "numberOfDays": NaN}', "no JSON"),
        ('{"place": "Rome", "numberOfDays": 0}', "numberOfDays: Input should be greater than 0"),
        ('{"numberOfDays": "many"}', "place: Field required; numberOfDays: Input should be a valid integer"),
        (f'{{"place": "Rome", "numberOfDays": {2**70}}}', "more than 64 bits"),
        ('{"place": "Rome", "numberOfDays": 1e999}', "cannot be stored"),
        ('{"place": "Oslo", "numberOfDays": 3}', "it does not fit: KeyError: 'Oslo'"),
        ('{"place": "Nowhere", "numberOfDays": 3}', "ZeroDivisionError"),
    ],
)
def test_not_read(text: str, why: str) -> None:
    """Nothing is guessed, and the model reads why: also where a validator of the user's raises what it likes."""
    with pytest.raises(UnfitAnswer, match=why):
        form().read(text)


def test_half_a_surrogate_is_replaced() -> None:
    """No store would take it."""
    _, plain = form(Part).read('{"place": "\\ud83d"}')
    assert {"place": "\ufffd"} == plain


@pytest.mark.parametrize(
    ("response_format", "value"),
    [(Part, {"place": "Rome"}), (Plan, Plan("Rome")), (SCHEMA, {"place": "Rome"})],
)
def test_the_other_kinds(response_format: Any, value: object) -> None:
    """A TypedDict and a JSON schema give plain data, a dataclass its own."""
    own = form(response_format)
    read, plain = own.read('{"place": "Rome"}')
    assert value == read == own.rebuild(plain)
    assert "object" == own.schema["type"]


def test_a_json_schema_is_kept_to() -> None:
    """With what is wrong in words, and without the value."""
    with pytest.raises(UnfitAnswer, match="place: does not fit minLength 2"):
        form(SCHEMA).read('{"place": "R"}')
    with pytest.raises(UnfitAnswer, match="'place' is a required property"):
        form(SCHEMA).read("{}")


def test_a_form_that_has_changed_since() -> None:
    """How a run ended can be looked at all the same."""
    assert {"place": "Oslo"} == form().rebuild({"place": "Oslo"})


WRONG: list[tuple[Any, str]] = [
    (str, "response_format is <class 'str'>; give a pydantic model"),
    ("Trip", "response_format is 'Trip'"),
    (Trip(place="Rome", numberOfDays=3), "give a pydantic model, a TypedDict"),
    (RootModel[list[int]], "describes no object"),
    ({"type": "array"}, "describes no object"),
    ({"type": "thing"}, "no valid JSON schema"),
    ({}, "describes no object"),
    (Native(str), "give a pydantic model"),
    (Native(Trip, strict="yes"), "strict is 'yes'"),  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # what is tested
]


@pytest.mark.parametrize(("response_format", "match"), WRONG)
def test_wrong(response_format: Any, match: str) -> None:
    """A form that no answer could have fails when the agent is built."""
    with pytest.raises(ConfigurationError, match=match):
        build_form(response_format, MODEL)


def test_native_where_it_cannot_be() -> None:
    """Under the JSON protocol it would forbid the protocol's decisions; over responses it would not be sent."""
    with pytest.raises(ConfigurationError, match="JSON protocol"):
        build_form(Native(Trip), speak_json(MODEL))
    with pytest.raises(ConfigurationError, match="responses"):
        build_form(Native(Trip), ChatOpenAI(model="m", api_key=SecretStr("k"), use_responses_api=True))


def test_nothing_is_sent_unless_it_is_asked_for() -> None:
    """With Native it is, by the client's own way; what a user sends besides stays."""
    assert {} == form().options(MODEL)
    native = form(Native(Part, strict=True))
    sent = {"type": "json_schema", "json_schema": {"name": "Part", "schema": native.schema, "strict": True}}
    assert {"response_format": sent} == native.options(MODEL)
    openai = ChatOpenAI(model="m", api_key=SecretStr("k"), extra_body={"top_k": 3})
    assert {"extra_body": {"top_k": 3, "response_format": sent}} == native.options(openai)
