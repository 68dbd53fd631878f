"""What many child processes can be asked to do at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Literal

from loopwright import SyncRuns, approve, open_checkpoints
from loopwright.graphs.shop import Shop

from .nursery import Channel
from .refund import TASK, Refund


def run_many(channel: Channel, *, folder: str, name: str, count: int, effect: Literal["write", "idempotent"]) -> None:
    """Run many threads to their ends as soon as a message comes; sends how many ended how."""
    refund = Refund(Path(folder), effect=effect)
    with open_checkpoints(refund.url) as checkpoints:
        runs = SyncRuns(refund.agent, checkpoints)
        ended: Counter[str] = Counter()
        channel.send("ready")
        channel.receive()
        for number in range(count):
            result = runs.run(TASK, thread_id=f"{name}-{number}")
            runs.decide(result.approvals[0].id, approve(), by=name)
            ended[runs.wait(result.run_id).status] += 1
        channel.send(ended)


def refund_at_once(channel: Channel, *, path: str) -> None:
    """Be the first to use a shop as soon as a message comes; sends the refund, and how many orders there are."""
    channel.send("ready")
    channel.receive()
    shop = Shop(Path(path))
    channel.send([str(shop.refund("k1", "A100", 250000)), len(shop.orders())])


def open_at_once(channel: Channel, *, url: str, **options: Any) -> None:
    """Open a database as soon as a message comes, and write to it; sends how many runs it has, or the error."""
    channel.send("ready")
    name = channel.receive()
    try:
        with open_checkpoints(url, **options) as checkpoints:
            checkpoints.ledger.runs.start(name, thread_id=name, agent="a", message="hi", task="hi")
            channel.send(checkpoints.ledger.runs.find(name) is not None)
    except Exception as error:  # noqa: BLE001 -- whatever it is, the test looks at it
        channel.send(f"{type(error).__name__}: {error}")
