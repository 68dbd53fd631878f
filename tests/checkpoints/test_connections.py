"""Connections that break (C63), servers that restart, pools and files that many want at once (C65)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.world.bank import Bank, build_pay
from tests.world.gates import wait_until
from tests.world.nursery import Nursery
from tests.world.plans import planned
from tests.world.postgres import Database
from tests.world.refund import Refund, later
from tests.world.stories import ANSWER, build_shop, finish, wait_at_question
from tests.world.till import Till

from loopwright import Checkpoints, RunResult, SyncRuns, allow, create_agent, open_checkpoints, tool
from loopwright.errors import StorageError
from loopwright.testing import call, check_transcript


def carry_on(agent: Any, url: str, run_id: str) -> RunResult:
    """Recover in another process's place, when every lease has run out; answer as an honest person would."""
    with open_checkpoints(url, clock=later) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        runs.recover()
        result = runs.get(run_id)
        while result.approvals:
            said = {"type": "respond", "message": "it is paid"}
            runs.decide(result.approvals[0].id, said, by="ana")
            result = runs.wait(run_id)
        return result


@pytest.mark.parametrize("effect", ["read", "write"])
def test_c63_every_backend_is_killed_during_a_call(postgres: Database, tmp_path: Path, effect: str) -> None:
    """The run goes on over fresh connections, or it stops with our error; carried on, the tool has run once."""
    bank = Bank(tmp_path / "bank.db")
    cut: list[int] = []

    def cut_all() -> None:
        if not cut:  # once: what is asked just as the server hangs up may end with our error, in the next run too
            cut.append(postgres.terminate_backends())

    @tool(effect="read")
    def look() -> str:
        """Look, while the server cuts all connections."""
        cut_all()
        return "seen"

    plan = [call("look") if effect == "read" else call("pay", order_id="A1", amount=5), ANSWER]
    agent = create_agent(planned(plan), [look, build_pay(bank, after=cut_all)], permissions=[allow("pay")])
    with open_checkpoints(postgres.url) as checkpoints:
        runs = SyncRuns(agent, checkpoints)
        try:
            result = runs.run("Pay.", thread_id="t", run_id="r1")
        except StorageError:
            assert runs.get("r1").status == "running"
            result = carry_on(agent, postgres.url, "r1")
        assert ("succeeded", ANSWER) == (result.status, result.answer)
        check_transcript(result.messages)
        assert cut
        assert 1 == len([message for message in result.messages if message.type == "tool"])
        assert [("A1", 5)] * (effect == "write") == bank.payments()
        again = runs.run("And now?", thread_id="t2")
        assert again.status == "succeeded"


def kill_backends(database: Database) -> None:
    """Cut every connection."""
    assert database.terminate_backends() > 0


def restart_server(database: Database) -> None:
    """Stop the server and start it again."""
    database.server.restart()


@pytest.mark.parametrize("breaks", [kill_backends, restart_server])
@pytest.mark.parametrize("pool_size", [1, 4])
def test_c63_between_pause_and_resume(postgres: Database, breaks: Callable[[Database], None], pool_size: int) -> None:
    """The same process decides and resumes as if nothing had been: idle connections are tried before use."""
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(postgres.url, pool_size=pool_size) as checkpoints:
        waiting = wait_at_question(agent, checkpoints)
        breaks(postgres)
        runs = SyncRuns(agent, checkpoints)
        runs.decide(waiting.approvals[0].id, {"type": "approve"}, by="ana")
        assert ANSWER == runs.wait(waiting.run_id).answer
        assert [("A1", 5)] == till.paid
        breaks(postgres)
        assert "succeeded" == finish(agent, checkpoints, "next").status
        assert checkpoints.ledger.log.verify().is_whole


def test_c63_a_server_that_is_away(postgres: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked meanwhile, each door says so with our error; when it is back, all is as it was saved last."""
    monkeypatch.setattr("loopwright.checkpoints.postgres.POOL_SECONDS", 0.5)
    till = Till()
    agent = build_shop(till)
    with open_checkpoints(postgres.url) as checkpoints:
        waiting = wait_at_question(agent, checkpoints)
        runs = SyncRuns(agent, checkpoints)
        postgres.server.stop()
        try:
            with pytest.raises(StorageError):
                runs.decide(waiting.approvals[0].id, {"type": "approve"}, by="ana")
            with pytest.raises(StorageError):
                open_checkpoints(postgres.url)
        finally:
            postgres.server.start()
        assert waiting.messages == runs.get(waiting.run_id).messages
        runs.decide(waiting.approvals[0].id, {"type": "approve"}, by="ana")
        assert ANSWER == runs.wait(waiting.run_id).answer
        assert [("A1", 5)] == till.paid


def drive_many(checkpoints: Checkpoints, number: int) -> str:
    """Run a few threads of one's own to their ends; returns what went wrong."""
    till = Till()
    agent = build_shop(till)
    for place in range(2):
        finish(agent, checkpoints, f"t{number}-{place}")
    return "" if till.paid == [("A1", 5)] * 2 else f"{number}: {till.paid}"


def test_c63_a_pool_of_one_and_eight_threads(postgres: Database) -> None:
    """They wait for one another; none times out, no connection leaks, every run ends."""
    with open_checkpoints(postgres.url, pool_size=1) as checkpoints, ThreadPoolExecutor(8) as threads:
        assert [""] * 8 == [*threads.map(drive_many, [checkpoints] * 8, range(8))]
        assert 16 == len(checkpoints.ledger.runs.list(status="succeeded"))
        assert checkpoints.ledger.log.verify().is_whole
        assert len(postgres.execute(_BACKENDS.format(postgres.name))) <= 1
    wait_until(lambda: not postgres.execute(_BACKENDS.format(postgres.name)))


_BACKENDS = "select pid from pg_stat_activity where datname = '{}' and pid <> pg_backend_pid()"
RUNS = 10


def test_c65_four_processes_write_one_file(nursery: Nursery, tmp_path: Path) -> None:
    """Ten runs each while somebody reads for long: nobody meets a lock, every run ends, each is paid once."""
    refund = Refund(tmp_path)
    open_checkpoints(refund.url).close()
    children = [
        nursery.start(
            "tests.world.crowds:run_many", folder=str(tmp_path), name=f"p{number}", count=RUNS, effect="write"
        )
        for number in range(4)
    ]
    assert ["ready"] * 4 == [child.receive() for child in children]
    with closing(sqlite3.connect(tmp_path / "runs.db", isolation_level=None)) as reader:
        reader.execute("begin")
        assert 0 == reader.execute("select count(*) from checkpoints").fetchone()[0]
        for child in children:
            child.send("go")
        assert [{"succeeded": RUNS}] * 4 == [child.receive() for child in children]
        assert 0 == reader.execute("select count(*) from checkpoints").fetchone()[0]
        reader.execute("commit")
    assert [0] * 4 == [child.wait() for child in children]
    assert [("A100", 250)] * 4 * RUNS == refund.bank.payments()
    assert 4 * RUNS == len(set(refund.bank.keys()))
    with open_checkpoints(refund.url) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        listed = runs.list(limit=1000)
        assert 4 * RUNS == len({run.thread_id for run in listed})
        for run in listed:
            check_transcript(runs.get(run.id).messages)
        assert checkpoints.ledger.log.verify().is_whole
