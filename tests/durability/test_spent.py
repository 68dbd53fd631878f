"""What a dead process has spent counts."""

from __future__ import annotations

from pathlib import Path

from tests.world.nursery import KILLED, Nursery
from tests.world.refund import Refund, later

from loopwright import StopReason, SyncRuns, open_checkpoints
from loopwright.models import UNKNOWN_OUTPUT
from loopwright.policy import SMALLEST_REPLY


def test_an_attempt_that_died_counts_as_spent(nursery: Nursery, tmp_path: Path) -> None:
    """A model call that never came back is one attempt more, by its worst case, and no step more."""
    assert nursery.start("drive", folder=str(tmp_path), die_in="model:1").wait() == KILLED
    refund = Refund(tmp_path)
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        (result,) = runs.recover()
        assert (result.usage.steps, result.usage.model_calls, result.usage.estimated) == (2, 3, True)
        rows = checkpoints.ledger.spend.of_run(result.run_id)
        assert [(1, 1, True), (2, 1, False), (2, 2, True)] == [(a.step, a.number, a.settled) for a in rows]
        lost = rows[1].tokens
        known = [row.tokens for row in rows if row.settled]
        assert result.usage.tokens == sum(tokens.input + tokens.output for tokens in [*known, lost])


def test_a_call_that_kills_each_time_meets_the_limit(nursery: Nursery, tmp_path: Path) -> None:
    """Crashes do not lift a limit: once the lost attempts have used it up, no further one is made."""
    limits = {"max_tokens": 2 * UNKNOWN_OUTPUT + SMALLEST_REPLY}
    for late in (False, True):
        child = nursery.start("drive", folder=str(tmp_path), die_in="model:0", limits=limits, late=late)
        assert child.wait() == KILLED
    refund = Refund(tmp_path, limits=limits)
    with open_checkpoints(refund.url, clock=lambda: later() + 3600) as checkpoints:
        (result,) = SyncRuns(refund.agent, checkpoints).recover()
    assert refund.model.seen == []
    assert (StopReason.MAX_TOKENS, 2, 0) == (result.stop_reason, result.usage.model_calls, result.usage.steps)
