"""Status and stop reason: which goes with which, and that the page about results says the same."""

from __future__ import annotations

from loopwright import RunStatus, StopReason


def test_every_reason_has_one_status() -> None:
    """Success and giving up cannot be confused: only an answer is a success."""
    expected = {
        StopReason.ANSWERED: RunStatus.SUCCEEDED,
        StopReason.ERROR: RunStatus.FAILED,
        StopReason.CANCELLED: RunStatus.CANCELLED,
    }
    assert {reason: expected.get(reason, RunStatus.STOPPED) for reason in StopReason} == {
        reason: reason.status for reason in StopReason
    }


def test_only_running_and_waiting_go_on() -> None:
    """All other statuses are final."""
    assert {RunStatus.RUNNING, RunStatus.WAITING} == {status for status in RunStatus if not status.is_final}
