"""The whole ring over real MCP servers: approvals, deaths, and a server that changes while somebody thinks it over."""

from __future__ import annotations

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from tests.world.mcp_shop import TASK, THREAD, Shop, approve_and_wait, serve
from tests.world.nursery import ROOT, Nursery
from tests.world.plans import planned
from tests.world.servers import Server

from loopwright import RunResult, Runs, SyncRuns, approve, create_agent, happened, open_checkpoints
from loopwright.testing import call
from loopwright.tools.mcp import McpServer, McpTools, aopen_mcp, open_mcp

TOKEN = "sk-very-secret-1"


@pytest.fixture(scope="module", name="served")
def serve_shop(tmp_path_factory: pytest.TempPathFactory) -> Generator[Server]:
    """One server; each test has a database of its own."""
    with serve(tmp_path_factory.mktemp("shop")) as server:
        yield server


@pytest.mark.parametrize("variant", ["", "description", "gone"])
def test_what_was_approved_is_what_runs(variant: str, served: Server, tmp_path: Path, nursery: Nursery) -> None:
    """Asked here, approved and resumed in another process: a tool that was changed in between does not run."""
    shop, url = Shop(served.folder), f"{served.url}/mcp"
    before = len(shop.paid)
    database = f"sqlite:///{tmp_path / 'runs.db'}"
    with open_mcp({"shop": {"url": url}}) as tools, open_checkpoints(database) as checkpoints:
        waiting = SyncRuns(shop.agent(tools), checkpoints).run(TASK, thread_id=THREAD)
    assert "waiting" == waiting.status
    shop.change(variant)
    try:
        child = nursery.start("tests.world.mcp_shop:approve_waiting", database=database, url=url)
        status, outcome, said = child.result()
    finally:
        shop.change("")
    if variant:
        assert ("succeeded", "not_run", True, []) == (status, outcome, "has changed" in said, shop.paid[before:])
    else:
        assert ("succeeded", "done", ["A100"]) == (status, outcome, shop.paid[before:])


def test_a_server_that_changes_while_somebody_thinks(served: Server) -> None:
    """In the same process too, and without a word from the server; and a tool that is what it was runs once."""
    shop = Shop(served.folder)
    before = len(shop.paid)
    with open_mcp({"shop": {"url": f"{served.url}/mcp"}}) as tools, open_checkpoints("memory:") as checkpoints:
        agent = shop.agent(tools)
        runs = SyncRuns(agent, checkpoints)
        runs.run(TASK, thread_id="first")
        shop.change("description")
        try:
            status, outcome, said = approve_and_wait(agent, checkpoints)
        finally:
            shop.change("")
        assert ("succeeded", "error", True) == (status, outcome, "not run: its tool 'refund' has changed" in said)
        assert [] == shop.paid[before:]
        runs.run(TASK, thread_id="second")
        assert ("succeeded", "done") == (*approve_and_wait(agent, checkpoints)[:2],)
        assert ["A100"] == shop.paid[before:]


async def _with_a_death(shop: Shop, tools: McpTools) -> RunResult:
    plan = (call("shop__secrets"), call("shop__pays_and_dies", order_id="A100"), "It is paid.")
    agent = create_agent(planned(plan), tools)
    with open_checkpoints(shop.url) as checkpoints:
        async with Runs(agent, checkpoints) as runs:
            result = await runs.run(TASK, thread_id=THREAD)
            await runs.decide(result.approvals[0].id, approve(), by="ana")
            result = await runs.wait(result.run_id)
            assert ("waiting", "outcome_unknown") == (result.status, result.approvals[0].question)
            await runs.resolve(result.approvals[0].effect_id, happened("paid"), by="ana")
            return await runs.wait(result.run_id)


def test_a_server_that_dies_in_a_write(tmp_path: Path) -> None:
    """The effect is unknown and a person is asked; no second server is told to pay. Nothing secret is stored."""
    shop = Shop(tmp_path)
    server: McpServer = {**shop.server, "env": {"SHOP_TOKEN": lambda: TOKEN}}

    async def use() -> RunResult:
        async with await aopen_mcp({"shop": server}, trust_hints=True) as tools:
            return await _with_a_death(shop, tools)

    result = asyncio.run(use())
    assert ("succeeded", ["A100"], 1) == (result.status, shop.paid, shop.starts)
    assert ["(secret) None", "paid"] == [entry["observation"] for entry in result.trail]
    assert "none" not in shop.keys
    database = sqlite3.connect(tmp_path / "runs.db")
    assert TOKEN not in "\n".join(database.iterdump())
    database.close()


_SERVER = '''
from mcp.server.fastmcp import FastMCP

shop = FastMCP("shop", log_level="ERROR")


@shop.tool()
def order(order_id: str) -> str:
    """Look up an order."""
    return "250 euros"


@shop.tool()
def refund(order_id: str) -> str:
    """Pay the money of an order back."""
    return "paid"


shop.run()
'''


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    """The Python block of docs/mcp.md does what it shows, beside a server of a few lines."""
    (tmp_path / "shop_server.py").write_text(_SERVER, encoding="utf-8")
    page = (ROOT / "docs/mcp.md").read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ("shop__refund {'order_id': 'A100'}\n", 0) == (done.stdout, done.returncode), done.stderr
