"""Processes that can be killed: forked from one that has imported everything, so that each costs milliseconds.

`Nursery` starts `python -m tests.world.nursery` once; that process forks a child for each task and does nothing else,
so that it never has a thread or an open database to be forked with.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import signal
import socket
import subprocess
import sys
from importlib import import_module, reload
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

ROOT = Path(__file__).parents[2]
KILLED = -signal.SIGKILL
ROOMS = ("loopwright.checkpoints", "loopwright.cli", "loopwright.models.demo")
MODULES = ("genai_prices.data", "genai_prices.update_prices", "loopwright.graphs.shop")
"""These, and what the rooms hold, are imported where they are first used: that would be in each child again."""


class Channel:
    """Two pipes, a JSON line a message."""

    def __init__(self, reading: int, writing: int) -> None:
        """Take over two file descriptors."""
        self._reading: IO[str] = os.fdopen(reading)
        self._writing: IO[str] = os.fdopen(writing, "w")

    def send(self, message: Any) -> None:
        """Send one message."""
        self._writing.write(json.dumps(message) + "\n")
        self._writing.flush()

    def receive(self) -> Any:
        """Wait for the next message; None when the other side is gone."""
        line = self._reading.readline()
        return json.loads(line) if line else None

    def fileno(self) -> int:
        """Return the descriptor that is read from, for who wants to look whether something has come."""
        return self._reading.fileno()

    def hang_up(self) -> None:
        """Close the pipe that is written to: the other side receives None."""
        self._writing.close()

    def close(self) -> None:
        """Close both pipes."""
        self._reading.close()
        self._writing.close()


class Child(Channel):
    """A running task; its `receive` brings what the task sent."""

    def __init__(self, nursery: Nursery, pid: int, reading: int, writing: int) -> None:
        """Keep the pid, for whoever wants to kill it."""
        super().__init__(reading, writing)
        self.pid = pid
        self._nursery = nursery

    def wait(self) -> int:
        """Wait for its end; returns its exit code, or minus the signal that killed it."""
        code = self._nursery.wait(self.pid)
        self.close()
        return code

    def end(self) -> None:
        """Kill it, if it still lives."""
        os.kill(self.pid, signal.SIGKILL)
        self.wait()

    def result(self) -> Any:
        """Return the one message of a task that must end well."""
        message, code = self.receive(), self.wait()
        assert code == 0, f"the task ended with {code}, after it had sent {message!r}"
        return message


def _search_path() -> list[str]:
    """Return where this process was told to find modules, so that its children find the same."""
    return [place for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]


class Nursery:
    """The process that forks."""

    def __init__(self) -> None:
        """Start it; it imports while the caller goes on."""
        ours, theirs = socket.socketpair()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *_search_path()])}
        command = [sys.executable, "-m", "tests.world.nursery", str(theirs.fileno())]
        self._process = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=[theirs.fileno()])
        theirs.close()
        self._socket = ours
        self._children: dict[int, Child] = {}

    def ask(self, request: dict[str, Any], fds: list[int] | None = None) -> Any:
        """Send a request and wait for its answer."""
        socket.send_fds(self._socket, [json.dumps(request).encode()], fds or [])
        return json.loads(self._socket.recv(65536))

    def start(self, task: str, *, crash_at: str = "", **options: Any) -> Child:
        """Run `task(channel, **options)` in a new process; `crash_at` kills it there.

        A task is a function of `tests.world.tasks`, or of another module as `module:name`.
        """
        from_parent, to_child = os.pipe()
        from_child, to_parent = os.pipe()
        request = {"task": task, "options": options, "crash_at": crash_at}
        pid = self.ask(request, [from_parent, to_parent])
        os.close(from_parent)
        os.close(to_parent)
        self._children[pid] = Child(self, pid, from_child, to_child)
        return self._children[pid]

    def wait(self, pid: int) -> int:
        """Wait for the end of a child."""
        code: int = self.ask({"wait": pid})
        del self._children[pid]
        return code

    def sweep(self) -> None:
        """End what a test has left behind."""
        for child in [*self._children.values()]:
            child.end()

    def __enter__(self) -> Self:
        """Use it in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it; its children end with their pipes."""
        self._socket.close()
        self._process.wait(timeout=30)


def _serve(inbox: socket.socket) -> None:
    import_module("tests.world.tasks")
    for name in MODULES:
        import_module(name)
    for room in ROOMS:
        _import_all(room)
    gc.freeze()  # a child's collector would touch, and so copy, all of it
    while True:
        data, fds, _, _ = socket.recv_fds(inbox, 65536, 2)
        if not data:
            return
        request = json.loads(data)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = _fork(request, fds, inbox)
            for fd in fds:
                os.close(fd)
        inbox.send(json.dumps(answer).encode())


def _import_all(room: str) -> None:
    for found in pkgutil.walk_packages(import_module(room).__path__, f"{room}."):
        name = found.name.rpartition(".")[2]
        if not name.startswith(("__main__", "demo_")):  # programs, and agents that are built by a child's own settings
            import_module(found.name)


def _fork(request: dict[str, Any], fds: list[int], inbox: socket.socket) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        inbox.close()
        _work(request, Channel(*fds))
        code = 0
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _work(request: dict[str, Any], channel: Channel) -> None:
    os.environ["LOOPWRIGHT_CRASH_AT"] = request["crash_at"]
    reload(import_module("loopwright.crash"))  # it reads the environment when it is imported
    module, _, name = request["task"].rpartition(":")
    task = getattr(import_module(module or "tests.world.tasks"), name)
    task(channel, **request["options"])


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
