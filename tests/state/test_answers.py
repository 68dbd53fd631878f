"""What a person says: refused where it is written if it cannot be carried out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from loopwright import edit, reject, respond
from loopwright.errors import InvalidDecision
from loopwright.state import PersonDecision

SHAPES: list[tuple[Callable[[Any], PersonDecision], Any, str]] = [
    (edit, [1], r"edit: the arguments are \[1\]"),
    (edit, "amount=5", "the arguments are"),
    (edit, {1: 2}, "the arguments are"),
    (lambda tool: edit({}, tool=tool), None, "the tool is None"),
    (reject, 3, "reject: its message is 3"),
    (respond, None, "respond: its message is None"),
    (respond, "", "respond: the text is empty"),
    (edit, None, r"edit: nothing is changed; give what is, as edit\(amount=5\), or approve\(\)"),
    (lambda given: edit({"x": given}, x=2), 1, "edit: x is given twice"),
]


@pytest.mark.parametrize(("say", "given", "match"), SHAPES)
def test_an_answer_of_the_wrong_shape(say: Callable[[Any], PersonDecision], given: Any, match: str) -> None:
    """At once, and not as a TypeError when the run goes on."""
    with pytest.raises(InvalidDecision, match=match):
        say(given)


def test_an_edit_keeps_what_it_was_given() -> None:
    """Arguments whole, changes, or both."""
    assert PersonDecision("edit", tool="pay", args={"a": 1}, changes={"b": 2}) == edit({"a": 1}, tool="pay", b=2)
    assert PersonDecision("edit", changes={"b": 2}) == edit(b=2)
