"""Programs that serve HTTP on this machine, as processes of their own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import httpx
import pytest

POLL_SECONDS = 0.05
PATIENCE_SECONDS = 30


class Server:
    """One server in a folder of its own; started again, it has the same port."""

    def __init__(self, folder: Path, command: Sequence[str], *, probe: str, env: Mapping[str, str]) -> None:
        """Say how it is started.

        Args:
            folder: Where it runs; its output goes to a file there.
            command: What follows `python -m`; `{port}` stands for the port.
            probe: A path that it answers with success once it is up.
            env: Beside the test's own environment.
        """
        self._port = _free_port()
        self.folder = folder
        self._command = [sys.executable, "-m", *(part.format(port=self._port) for part in command)]
        self._probe = probe
        self._env = {**os.environ, **env}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def output(self) -> str:
        """All that it has printed so far, over all its starts."""
        return (self.folder / "output").read_text(encoding="utf-8")

    def start(self) -> None:
        """Start it, and return when it answers."""
        with (self.folder / "output").open("ab") as output:
            self._process = subprocess.Popen(
                self._command, cwd=self.folder, env=self._env, stdout=output, stderr=subprocess.STDOUT
            )
        try:
            wait_until(self._is_up)
        except BaseException:
            self._process.kill()
            self._process.wait()
            raise

    def _is_up(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            pytest.fail(f"the server did not start:\n{self.output}")
        try:
            return httpx.get(f"{self.url}{self._probe}").is_success
        except httpx.TransportError:
            return False

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """End it, and wait until it has ended."""
        if self._process is None:
            return
        self._process.send_signal(by)
        try:
            self._process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            pytest.fail(f"the server would not end:\n{self.output}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def wait_until(holds: Callable[[], bool]) -> None:
    """Ask again and again until it holds; the test's own time limit ends it otherwise."""
    never = threading.Event()
    while not holds():
        never.wait(POLL_SECONDS)
