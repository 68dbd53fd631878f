"""The rules of final answers, as tables."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from loopwright import ProposedAnswer, Reflect
from loopwright.errors import ConfigurationError
from loopwright.policy import build_answer_rules, objection_of, reflection_of

RETURNED: list[tuple[object, str]] = [
    (None, ""),
    (True, ""),
    (False, "it says no"),
    ("  too short ", "too short"),
    ("", "it returned an empty text, which"),
    (0, "it returned a int, which"),
    (1, "it returned a int, which"),
    ([], "it returned a list, which"),
    (object(), "it returned a object, which"),
]


@pytest.mark.parametrize(("returned", "objection"), RETURNED)
def test_what_a_check_returned(returned: object, objection: str) -> None:
    """None and True let an answer pass, and nothing else does."""
    said = objection_of(returned)
    assert said.startswith(objection)
    assert bool(said) == bool(objection)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("DONE", ""),
        (" **Done.**\n", ""),
        ("`done`", ""),
        ("Done? The date is missing.", "Done? The date is missing."),
        ("DONE\nBut the date is missing.", "DONE\nBut the date is missing."),
        (" The date is missing. ", "The date is missing."),
        ("", ""),
    ],
)
def test_what_a_reflection_found(said: str, found: str) -> None:
    """Only a reply that is the one word lets the answer stand at once."""
    assert found == reflection_of(said)


def fits(_answer: ProposedAnswer) -> None:
    """A check."""


async def fits_later(_answer: ProposedAnswer) -> bool:
    """An async one."""
    return True


class Checker:
    """A check with a state of its own."""

    async def __call__(self, _answer: ProposedAnswer) -> str | None:
        """Check."""
        return None


def against(_limit: int, _answer: ProposedAnswer) -> bool:
    """A check that is to be bound to its limit first."""
    return True


def yields(_answer: ProposedAnswer) -> Any:
    """What looks like a check, and is a generator."""
    yield "never said"


def test_checks_have_names_and_know_whether_they_are_awaited() -> None:
    """One alone is a list of one; objects and bound functions are checks too."""
    several = build_answer_rules([fits, fits_later, Checker(), partial(against, 3)], 2, 30.0, None)
    names = [("fits", False), ("fits_later", True), ("Checker", True), ("against", False)]
    assert names == [(check.name, check.is_async) for check in several.checks]
    assert ["fits"] == [check.name for check in build_answer_rules(fits, 2, 30.0, None).checks]
    assert () == build_answer_rules((), 0, 0.5, None).checks


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a text": ({"verify": "fits"}, "verify is 'fits'; give a function"),
    "a mapping": ({"verify": {"fits": fits}}, "give a function such as"),
    "no function in it": ({"verify": [fits, 3]}, "verify holds 3"),
    "a class": ({"verify": Checker}, "verify holds <class"),
    "too few parameters": ({"verify": lambda: None}, "cannot be called as <lambda>"),
    "too many": ({"verify": against}, r"against cannot be called as against\(answer\)"),
    "a generator": ({"verify": yields}, "yields is a generator"),
    "retries without end": ({"retries": 11}, "answer_retries is 11; give a whole number from 0 to 10"),
    "retries that are none": ({"retries": True}, "answer_retries is True"),
    "less than none": ({"retries": -1}, "answer_retries is -1"),
    "no time": ({"seconds": 0}, "verify_seconds is 0"),
    "time without end": ({"seconds": float("inf")}, "verify_seconds is inf"),
    "reflect by yes": ({"reflect": True}, r"reflect is True; give Reflect\(times=1\)"),
}


@pytest.mark.parametrize(("given", "match"), WRONG.values(), ids=WRONG.keys())
def test_wrong(given: dict[str, Any], match: str) -> None:
    """Each fails by the name of its option."""
    options: dict[str, Any] = {"verify": (), "retries": 2, "seconds": 30.0, "reflect": None, **given}
    with pytest.raises(ConfigurationError, match=match):
        build_answer_rules(**options)


@pytest.mark.parametrize("options", [{"times": 0}, {"times": 11}, {"times": True}, {"instruction": None}])
def test_a_reflection_that_is_none(options: dict[str, Any]) -> None:
    """It must end, and be put in words."""
    with pytest.raises(ConfigurationError, match="Reflect: "):
        Reflect(**options)
