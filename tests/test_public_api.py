"""The public names: frozen here, so that none comes or goes unnoticed."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import loopwright

NAMES = [
    *("Agent", "AgentState", "Approval", "Budget", "Checkpoints", "Compaction", "Effect", "Event", "EventKind"),
    *("Limits", "Loops"),
    *("LoopwrightError", "Native", "NotDone", "Person", "Price", "ProposedAnswer", "ProposedCall", "Rate"),
    *("Receipt", "Reflect", "Retry", "Run", "RunResult", "RunStatus", "Runs", "Secret", "StopReason"),
    *("SyncRuns", "Usage", "allow", "annotate", "aopen_checkpoints", "approve", "ask", "check", "confirmed"),
    *("create_agent", "deny", "edit", "from_user", "happened", "known", "not_happened", "open_checkpoints"),
    *("open_model", "plain", "reject", "respond", "tool"),
]
TESTING = ["ManualClock", "ScriptExhausted", "ScriptedModel", "call", "check_transcript"]
ROOMS = ["checkpoints", "graphs", "models", "nodes", "policy", "runs", "state", "testing", "tools"]


def test_the_face_is_what_it_was() -> None:
    """A new name is a promise, a missing one a break: both belong in the changelog, and here."""
    assert NAMES == loopwright.__all__


def test_the_tools_for_tests_are_there() -> None:
    """Users' tests import them."""
    room = import_module("loopwright.testing")
    assert set(TESTING) <= set(room.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_can_be_imported(name: str) -> None:
    """And has a docstring."""
    assert getattr(loopwright, name).__doc__


@pytest.mark.parametrize("room", ["loopwright", *(f"loopwright.{room}" for room in ROOMS)])
def test_all_is_sorted_and_true(room: str) -> None:
    """Constants, classes, functions; each of them there, and none twice."""
    module = import_module(room)
    names: list[str] = module.__all__
    order = sorted(names, key=lambda name: (0 if name.isupper() else 1 if name[0].isupper() else 2, name))
    assert order == names
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(module, name)] == []


def test_what_is_not_there_says_so() -> None:
    """As a module without a lazy face would."""
    with pytest.raises(AttributeError, match="no attribute 'create_agnet'"):
        _ = loopwright.create_agnet
    assert sorted(NAMES) == dir(loopwright)


def test_importing_is_cheap(tmp_path: Path) -> None:
    """`import loopwright` loads neither LangGraph nor pydantic: each name brings its room when it is used."""
    program = "import sys, loopwright; print({'langgraph', 'langchain_core', 'pydantic'} & {*sys.modules})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "set()\n"
