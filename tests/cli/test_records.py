"""The log's records in words: who decided what, and about which call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from loopwright.checkpoints import LogRecord
from loopwright.cli.records import show_records, told
from loopwright.cli.screen import Screen

ASKED = {"tool": "pay", "args": {"amount": 250, "to": "ana"}}


def record(event: str, data: Mapping[str, Any]) -> LogRecord:
    """A record of a log."""
    return LogRecord(7, 0.0, "thread", "abcdef123456", event, dict(data), "", "")


@pytest.mark.parametrize(
    ("event", "data", "words"),
    [
        ("began", {"task": "Pay.", "binding": "4654"}, "Pay."),
        ("asked", {**ASKED, "question": "tool_approval"}, "pay: may this call run? amount=250, to='ana'"),
        ("asked", {**ASKED, "question": "outcome_unknown"}, "pay: did this call happen? amount=250, to='ana'"),
        ("voted", {**ASKED, "by": "ana", "roles": ["lead"]}, "pay: approved by ana (lead); amount=250, to='ana'"),
        (
            "decided",
            {**ASKED, "by": "ana", "decision": {"type": "approve"}, "roles": ["cfo", "lead"]},
            "pay: approve by ana (cfo, lead); amount=250, to='ana'",
        ),
        (
            "decided",
            {**ASKED, "by": "ana", "decision": {"type": "reject", "message": "the box was empty"}},
            "pay: reject by ana: “the box was empty”; amount=250, to='ana'",
        ),
        (
            "decided",
            {**ASKED, "by": "ana", "decision": {"type": "edit", "args": {"amount": 40}, "tool": "send"}},
            "pay: edit by ana; now send with amount=40; asked was amount=250, to='ana'",
        ),
        ("decided", {**ASKED, "by": "expiry", "decision": {"type": "expire"}}, "pay: expire by nobody in time; amount"),
        ("decided", {"tool": "pay", "args": {}, "by": "ana", "decision": {"type": "approve"}}, "pay: approve by ana"),
        ("decided", {**ASKED, "args": {"text": "x" * 999}, "by": "a", "decision": {"type": "approve"}}, "x…"),
        ("settled", {"tool": "pay", "effect": "f0a4173bf77e", "status": "done", "key": "k"}, "pay: done f0a417"),
        ("extended", {"by": "ana", "steps": 4, "cost_nano": 5 * 10**8}, "by ana: 4 steps, $0.5 more"),
        ("reopened", {}, ""),
    ],
)
def test_a_record_says_who_and_what(event: str, data: Mapping[str, Any], words: str) -> None:
    """Name, roles and reason of whoever decided, and the arguments that were decided about; no hashes."""
    said = told(record(event, data))
    assert words in said
    assert words != "" or not said


def test_a_record_is_never_cut(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe gets it on one line, to be searched; a terminal has it broken, to the right of its head or below."""
    decided = record("decided", {**ASKED, "by": "ana", "decision": {"type": "approve"}})
    monkeypatch.delenv("COLUMNS", raising=False)
    show_records([decided], Screen(), has_runs=True)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith("  decided    run abcdef  pay: approve by ana; amount=250, to='ana'")
    for width in (40, 70):
        monkeypatch.setenv("COLUMNS", str(width))
        show_records([decided], Screen(), has_runs=True)
        lines = capsys.readouterr().out.splitlines()
        assert all(len(each) <= width for each in lines)
        assert line.split() == " ".join(lines).split()
