"""Cases from public bug reports: thread ids that are not plain strings (C62), in memory and in SQLite."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from tests.world.doors import Desk
from tests.world.plans import planned

from loopwright import Agent, Checkpoints, create_agent
from loopwright.errors import ConfigurationError

ID = uuid.UUID("5ef2a57a-059f-4aae-846b-4ba22214479a")
REFUSED: list[Any] = [None, "", " a ", "x" * 3000, "a\0b", 1.5, True]


def build(checkpoints: Checkpoints | None = None) -> Agent:
    """Build an agent that answers."""
    return create_agent(planned(["Done."]), [], checkpoints=checkpoints)


@pytest.mark.parametrize(("given", "text"), [(1, "1"), ("1", "1"), (ID, str(ID)), ("😀", "😀"), ("x" * 255, "x" * 255)])
def test_c62_ids_that_are_taken(checkpoints: Checkpoints, given: Any, text: str) -> None:
    """By the documented text of each; a second run finds the same thread under it."""
    desk = Desk(build(), checkpoints)
    assert desk.run(thread_id=given).thread_id == text
    assert len(desk.run("More.", thread_id=text).messages) == 4


@pytest.mark.parametrize("given", REFUSED)
def test_c62_ids_that_are_refused(checkpoints: Checkpoints, given: Any) -> None:
    """Up front, with what is right; nothing is noted."""
    with pytest.raises(ConfigurationError, match="thread_id"):
        Desk(build(), checkpoints).run(thread_id=given)
    assert checkpoints.ledger.runs.list() == []


@pytest.mark.parametrize("given", REFUSED)
def test_c62_the_same_for_plain_invoke(checkpoints: Checkpoints, given: Any) -> None:
    """No checkpoint is written either."""
    agent: Any = build(checkpoints)
    with pytest.raises(ConfigurationError, match="thread_id"):
        agent.invoke({"messages": [("user", "Do it.")]}, {"configurable": {"thread_id": given}})
    assert [] == [*checkpoints.saver.list(None)]


def test_c62_distinct_ids_share_nothing(checkpoints: Checkpoints) -> None:
    """Letters' case, accents in two forms, blanks inside: each is a thread of its own."""
    desk = Desk(build(), checkpoints)
    ids = ["a", "A", "é", "e\u0301", "a b", "a  b", "01", "1"]
    assert [2] * len(ids) == [len(desk.run(thread_id=name).messages) for name in ids]
