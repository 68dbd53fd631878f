"""Ids as people type them."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from loopwright.checkpoints import Ledger, open_checkpoints
from loopwright.cli.finding import find_approval, find_effect, find_run, short
from loopwright.errors import ApprovalNotFound, EffectNotFound, InvalidDecision, RunNotFound

RUNS = ["abcdefgh1", "abcdefgh2", "abcdefgh", "xyz%abcdef"]


@pytest.fixture(name="ledger")
def open_ledger() -> Generator[Ledger]:
    """A ledger with a few runs."""
    with open_checkpoints("memory:") as checkpoints:
        for run_id in RUNS:
            checkpoints.ledger.runs.start(run_id, thread_id=run_id, agent="", message="task", task="task")
        yield checkpoints.ledger


@pytest.mark.parametrize(
    ("typed", "found"), [("abcdefgh1", "abcdefgh1"), ("abcdefgh", "abcdefgh"), ("x", "xyz%abcdef")]
)
def test_the_beginning_of_an_id_is_enough(ledger: Ledger, typed: str, found: str) -> None:
    """As long as it names one run; a whole id is that run, although others begin so."""
    assert found == find_run(ledger, typed).id


def test_an_ambiguous_beginning_lists_what_it_could_mean(ledger: Ledger) -> None:
    """The error names the ids, so that more of one can be typed."""
    with pytest.raises(InvalidDecision, match="more than one run begins with 'abc': abcdefgh, abcdefgh1, abcdefgh2"):
        find_run(ledger, "abc")


@pytest.mark.parametrize("typed", ["", "%", "_", "ABCDEFGH1", "nope"])
def test_what_names_nothing_is_not_found(ledger: Ledger, typed: str) -> None:
    """Nothing, wildcards and other letters match no id."""
    with pytest.raises(RunNotFound, match="no run"):
        find_run(ledger, typed)
    with pytest.raises(ApprovalNotFound, match="no approval"):
        find_approval(ledger, typed)
    with pytest.raises(EffectNotFound, match="no effect"):
        find_effect(ledger, typed)


def test_ids_are_shown_as_short_as_they_can_be_typed(ledger: Ledger) -> None:
    """Six characters, or as many as tell one from the others."""
    matching = ledger.runs.matching
    assert ["abcdefgh1", "xyz%ab"] == [short("abcdefgh1", matching), short("xyz%abcdef", matching)]
