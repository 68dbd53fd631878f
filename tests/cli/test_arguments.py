"""Arguments as people type them."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright.cli.arguments import parse_args, parse_changes, parse_labels
from loopwright.errors import ConfigurationError


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("amount=40000", 40000),
        ("amount=1.5", 1.5),
        ("flag=true", True),
        ("note=", ""),
        ("note=two words", "two words"),
        ('order_id="100"', "100"),
        ("formula=a=b", "a=b"),
        ('items=[1, {"a": null}]', [1, {"a": None}]),
        ("amount=NaN", "NaN"),
    ],
)
def test_a_value_is_json_where_it_can_be(typed: str, value: Any) -> None:
    """What is no JSON is text, and so are the constants that JSON does not have."""
    assert {typed.partition("=")[0]: value} == parse_changes([typed])


@pytest.mark.parametrize("typed", ["amount", "=5", ""])
def test_a_change_needs_a_name_and_a_value(typed: str) -> None:
    """Anything else is named in the error."""
    with pytest.raises(ValueError, match="has not the form name=value"):
        parse_changes([typed])


def test_whole_arguments_are_a_json_object() -> None:
    """The object is taken as it is."""
    assert {"amount": 40000, "account": ""} == parse_args('{"amount": 40000, "account": ""}')


@pytest.mark.parametrize("typed", ["[1]", "5", "{", '{"amount": NaN}'])
def test_what_is_no_json_object_is_refused(typed: str) -> None:
    """A list, a number, broken JSON and NaN are no arguments."""
    with pytest.raises(ValueError, match="is no JSON"):
        parse_args(typed)


def test_a_label_has_one_value() -> None:
    """Which of two tenants pays is nothing to guess."""
    assert {"tenant": "acme", "desk": "eu"} == parse_labels(["tenant=acme", "desk=eu"])
    with pytest.raises(ConfigurationError, match="--label tenant is given twice"):
        parse_labels(["tenant=acme", "tenant=other"])
