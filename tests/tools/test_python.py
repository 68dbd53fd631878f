"""The ready-made tool that runs Python in a sandbox."""

from __future__ import annotations

from typing import Any

import pytest

from loopwright.tools import CodeFailed, run_code, run_python

pytest.importorskip("pydantic_monty", reason="run_python needs the extra 'tools'")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("1 + 1", {"value": "2"}),
        ("print('a')\nsorted([3, 1, 2])", {"value": "[1, 2, 3]", "printed": "a\n"}),
        ("x = 1", {"printed": ""}),
        ("import datetime\n(datetime.date(2026, 3, 1) - datetime.date(2026, 2, 1)).days", {"value": "28"}),
    ],
)
def test_what_comes_back(code: str, told: dict[str, Any]) -> None:
    """The value of the last expression, and what was printed."""
    assert told == run_code(code)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("open('/etc/passwd').read()", "Permission denied"),
        ("import os\nos.environ['PATH']", "not supported"),
        ("import socket", "No module named 'socket'"),
        ("import subprocess", "No module named 'subprocess'"),
        ("__import__('os').system('id')", "not defined"),
        ("().__class__.__base__.__subclasses__()", "has no attribute"),
        ("'a' * 10**10", "memory limit exceeded"),
        ("def f(): return f()\nf()", "recursion"),
        ("1 / 0", "ZeroDivisionError"),
        ("x =", "Expected an expression"),
    ],
)
def test_nothing_outside_is_reached(code: str, why: str) -> None:
    """Files, network, processes and memory are out of reach, and the model reads why."""
    with pytest.raises(CodeFailed, match=why):
        run_code(code)


def test_time_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that never ends is stopped, and sleeping does not hold the process."""
    monkeypatch.setattr("loopwright.tools.python.MAX_SECONDS", 0.2)
    with pytest.raises(CodeFailed, match="time limit exceeded"):
        run_code("while True: pass")
    assert {"printed": ""} == run_code("import time\ntime.sleep(1000)")


def test_nothing_is_remembered() -> None:
    """Each call has a process of its own."""
    run_code("x = 1")
    with pytest.raises(CodeFailed, match="not defined"):
        run_python.invoke({"code": "x"})
