"""What another process does after a kill, and what must hold then."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright import RunResult, SyncRuns, approve, open_checkpoints, reject, respond
from loopwright.state import Question
from loopwright.testing import check_transcript

from .refund import ANSWER, PAID, Refund, later

KINDS: list[dict[str, Any]] = [
    {"effect": "write", "verify": True},
    {"effect": "write", "verify": False},
    {"effect": "idempotent", "verify": False},
]
"""The kinds of tool that a kill is different for."""


def finish(refund: Refund) -> RunResult:
    """Recover in this process, and answer as an honest person would; returns how the run ended."""
    with open_checkpoints(refund.url, clock=later) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        for _ in range(5):
            runs.recover()
            (run,) = runs.list()
            result = runs.get(run.id)
            if result.status.is_final:
                return result
            for approval in result.approvals:
                runs.decide(approval.id, honest(approval.question, refund), by="ben")
    pytest.fail("recovered again and again, the run is still not at its end")


def honest(question: str, refund: Refund) -> Any:
    """Look into the bank, and say what is true."""
    if question == Question.APPROVAL:
        return approve()
    return respond(PAID) if refund.bank.payments() else reject("the bank knows nothing of it")


def check(refund: Refund, result: RunResult) -> None:
    """What must hold wherever it was killed: it ended well, it told the truth, and it paid at most once."""
    assert result.status == "succeeded"
    assert result.answer == ANSWER
    check_transcript(result.messages)
    paid = refund.bank.payments()
    told = [entry["outcome"] for entry in result.trail if entry["tool"] == "pay"]
    assert (paid, told) in [([("A100", 250)], ["done"]), ([], ["rejected"])]
