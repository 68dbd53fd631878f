"""Many tasks of one event loop."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.world.bank import Bank, build_pay
from tests.world.plans import planned

from loopwright import Runs, approve, create_agent, edit, open_checkpoints, reject
from loopwright.testing import call

PLAN = [call("pay", order_id="A100", amount=250), "Done."]


def test_many_click_at_once(tmp_path: Path) -> None:
    """Different decisions in one moment: one counts, for all of them, and is what happens."""

    async def main() -> None:
        bank = Bank(tmp_path / "bank.db")
        agent = create_agent(planned(PLAN), [build_pay(bank)])
        with open_checkpoints(f"sqlite:///{tmp_path}/runs.db") as checkpoints:
            async with Runs(agent, checkpoints) as runs:
                waiting = await runs.run("Pay.", thread_id="t")
                asked = waiting.approvals[0].id
                said = [approve(), reject("no"), edit(amount=1), approve()]
                receipts = await asyncio.gather(
                    *(runs.decide(asked, one, by=str(number)) for number, one in enumerate(said))
                )
                (counts,) = [receipt for receipt in receipts if receipt.accepted]
                assert {counts.by} == {receipt.by for receipt in receipts}
                results = await asyncio.gather(*(runs.wait(waiting.run_id) for _ in range(4)))
                assert ["Done."] * 4 == [result.answer for result in results]
                expected = {"approve": [("A100", 250)], "edit": [("A100", 1)], "reject": []}
                assert expected[counts.decision["type"]] == bank.payments()

    asyncio.run(main())


def test_runs_of_many_threads_at_once(tmp_path: Path) -> None:
    """Twenty conversations in one loop: each is paid once, and ends."""

    async def main() -> None:
        bank = Bank(tmp_path / "bank.db")
        agent = create_agent(planned(PLAN), [build_pay(bank)])
        with open_checkpoints(f"sqlite:///{tmp_path}/runs.db") as checkpoints:
            async with Runs(agent, checkpoints) as runs:
                await asyncio.gather(*(runs.run("Pay.", thread_id=f"t{number}") for number in range(20)))
                waiting = await runs.approvals()
                assert len(waiting) == 20
                await asyncio.gather(*(runs.decide(asked.id, approve(), by="ana") for asked in waiting))
                await runs.drain()
                assert {"succeeded"} == {run.status for run in await runs.list()}
        assert len(bank.payments()) == 20

    asyncio.run(main())
