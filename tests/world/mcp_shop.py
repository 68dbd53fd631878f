"""The shop's MCP server, as a test starts it and looks into its folder."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopwright import Agent, Checkpoints, SyncRuns, approve, create_agent, open_checkpoints
from loopwright.testing import call
from loopwright.tools import Effect, Tool, to_output
from loopwright.tools.mcp import McpServer, McpTools, open_mcp

from .nursery import ROOT, Channel
from .plans import planned
from .servers import Server

TASK = "Refund order A100, please."
THREAD = "customer-7"
PLAN = (call("shop__refund", order_id="A100"), "It is paid.")


class Shop:
    """A folder that a server serves from."""

    def __init__(self, folder: Path) -> None:
        """Take the folder; nothing is started."""
        self.folder = folder
        self.url = f"sqlite:///{folder / 'runs.db'}"

    @property
    def server(self) -> McpServer:
        """How it is started."""
        return {"command": sys.executable, "args": ["-m", "tests.world.mcp_server", str(self.folder)], "cwd": ROOT}

    @property
    def paid(self) -> list[str]:
        """The orders that were paid back."""
        return [line.split()[0] for line in self._lines("paid")]

    @property
    def keys(self) -> list[str]:
        """The idempotency keys that came with them."""
        return [line.split()[1] for line in self._lines("paid")]

    @property
    def starts(self) -> int:
        """How often a server was started."""
        return len(self._lines("starts"))

    def change(self, variant: str) -> None:
        """Have the tools listed otherwise from now on; the server tells nobody."""
        (self.folder / "variant").write_text(variant, encoding="utf-8")

    def agent(self, tools: McpTools) -> Agent:
        """Build the agent that refunds."""
        return create_agent(planned(PLAN), tools, name="shop")

    def _lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


@contextmanager
def serve(folder: Path, transport: str = "http") -> Generator[Server]:
    """Serve a folder over HTTP, until the block is left."""
    places = [str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    command = ("tests.world.mcp_server", str(folder), "{port}", transport)
    server = Server(folder, command, probe="/", env={"PYTHONPATH": os.pathsep.join(places)})
    server.start()
    try:
        yield server
    finally:
        server.stop(signal.SIGKILL)


class Opened:
    """The tools of a shop, called as `act` would call them."""

    def __init__(self, shop: Shop, tools: McpTools) -> None:
        """Find the tools by their names at the server."""
        self.shop = shop
        self.tools = tools
        self._named = {one.name.removeprefix("shop__"): one for one in tools}

    def __getitem__(self, name: str) -> Tool:
        """Return a tool by its name at the server."""
        return self._named[name]

    def call(self, tool: str, /, **args: Any) -> str:
        """Call one, under the key `key-1`; returns the text that the model would read."""
        return to_output(self[tool].contract.run(args, Effect(key="key-1"))).text

    async def acall(self, tool: str, /, **args: Any) -> str:
        """Do the same, awaited."""
        door = self[tool].contract.arun
        assert door is not None
        return to_output(await door(args, Effect(key="key-1"))).text


def approve_waiting(channel: Channel, *, database: str, url: str) -> None:
    """Approve what waits, in a process of its own, and carry the run on; sends how it ended and what was said."""
    with open_mcp({"shop": {"url": url}}) as tools, open_checkpoints(database) as checkpoints:
        channel.send(approve_and_wait(create_agent(planned(PLAN), tools, name="shop"), checkpoints))


def approve_and_wait(agent: Agent, checkpoints: Checkpoints) -> list[str]:
    """Approve what waits and carry the run on; returns how it ended, and the outcome of its one call."""
    runs = SyncRuns(agent, checkpoints)
    (waiting,) = runs.approvals()
    receipt = runs.decide(waiting.id, approve(), by="ana")
    result = runs.wait(receipt.run_id)
    entry = result.trail[-1]
    return [result.status, entry["outcome"], entry["observation"]]
