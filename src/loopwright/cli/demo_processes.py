"""The demo's processes: each a real one, watched while it runs, and gone when the demo is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SECONDS = 60.0
"""A process that takes longer is killed, and the demo fails."""

_OTHERS = ("LOOPWRIGHT_", "OPENAI_", "LANGCHAIN_", "LANGGRAPH_", "LANGSMITH_")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended."""

    code: int
    """Its exit code; below 0, the signal that killed it."""
    lines: list[str]
    """What it wrote, stderr included."""

    @property
    def was_killed(self) -> bool:
        """Whether it was killed by SIGKILL."""
        return self.code == -signal.SIGKILL


def clean_environment(**settings: str) -> dict[str, str]:
    """Return this process's environment without the user's settings of models and tracing, and with these."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_OTHERS)}
    return {**kept, "LANGSMITH_TRACING": "false", "PYTHONIOENCODING": "utf-8", **settings}


def run_watched(
    module: str, args: Sequence[str], *, folder: Path, environment: Mapping[str, str], watch: Callable[[str], None]
) -> Ended:
    """Run a module as a process of its own, and hand on each line as it is written."""
    process = _begin(module, args, folder, environment, subprocess.DEVNULL)
    lines: list[str] = []
    with _bounded(process):
        for line in process.stdout or ():
            lines.append(line.rstrip("\n"))
            watch(lines[-1])
    return Ended(process.returncode, lines)


def run_together(
    module: str, each: Sequence[Sequence[str]], *, folder: Path, environment: Mapping[str, str]
) -> list[Ended]:
    """Run a module in several processes, let go at the same moment: all wait for the end of one pipe."""
    waiting, letting_go = os.pipe()
    processes: list[subprocess.Popen[str]] = []
    try:
        processes += [_begin(module, args, folder, environment, waiting) for args in each]
        for process in processes:
            if process.stdout is None or process.stdout.readline().strip() != "ready":
                raise RuntimeError("a process of the demo did not get ready")
        os.close(letting_go)
        letting_go = -1
        return [_ended(process) for process in processes]
    finally:
        os.close(waiting)
        if letting_go >= 0:
            os.close(letting_go)
        for process in processes:
            process.kill()
            process.wait()


def _ended(process: subprocess.Popen[str]) -> Ended:
    output, _ = process.communicate(timeout=SECONDS)
    return Ended(process.returncode, output.splitlines())


def _begin(
    module: str, args: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: int
) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 -- our own modules, by our own interpreter
        [sys.executable, "-m", module, *args],
        cwd=folder,
        env=dict(environment),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        errors="replace",
    )


@contextmanager
def _bounded(process: subprocess.Popen[str]) -> Generator[None]:
    """Wait for a process's end; kill it when its time is up, or when the block is left early."""
    timer = threading.Timer(SECONDS, process.kill)
    timer.start()
    try:
        yield
        process.wait()
    finally:
        timer.cancel()
        process.kill()
        process.communicate()
