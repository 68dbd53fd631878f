"""What a kill costs: at each place, for each kind of tool, on both stores; a table of what was seen.

`python -m tests.durability.crash_matrix` prints the table of `docs/crash-matrix.md`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from tests.world.nursery import KILLED, Child, Nursery
from tests.world.postgres import Postgres
from tests.world.recovery import KINDS, check, finish
from tests.world.refund import Refund

from loopwright import RunResult, open_checkpoints
from loopwright.crash import CrashPoint
from loopwright.state import Question

STORES = ("sqlite", "postgres")
NAMES = ("write with verify", "write without", "idempotent")
HEADER = f"| killed | {' | '.join(NAMES)} | model calls lost |"
RULE = "| --- " * (len(NAMES) + 2) + "|"
AROUND = {
    "in the model call": {"die_in": "model:1"},
    "in the tool, before its effect": {"die_in": "tool:before"},
    "in the tool, after its effect": {"die_in": "tool:after"},
}
PLACES: Mapping[str, Mapping[str, str]] = {
    **{f"`{point.value}`": {"crash_at": point.value} for point in CrashPoint},
    **AROUND,
}
"""How each row of the table is called, and what kills a process there."""


def row_of(place: str, nursery: Nursery, server: Postgres, folder: Path, stores: Sequence[str] = STORES) -> str:
    """Kill a process of each kind at a place, on each store, and end each run elsewhere; returns the table's row."""
    with ExitStack() as stack:
        cases: list[tuple[Refund, Child]] = []
        for number, kind in enumerate(KINDS):
            for store in stores:
                url = stack.enter_context(server.database()).url if store == "postgres" else ""
                own = folder / f"{store}-{number}"
                own.mkdir(parents=True)
                child = nursery.start("drive", folder=str(own), url=url, **PLACES[place], **kind)
                cases.append((Refund(own, url=url, **kind), child))
        seen = [_end(refund, child) for refund, child in cases]
    cells = [_either(told for told, _ in of_kind) for of_kind in _by_kind(seen)]
    return f"| {' | '.join([place, *cells, _either(str(lost) for _, lost in seen)])} |"


def _by_kind(seen: Sequence[tuple[str, int]]) -> Iterator[Sequence[tuple[str, int]]]:
    """Put the stores of each kind together."""
    many = len(seen) // len(KINDS)
    yield from (seen[begin : begin + many] for begin in range(0, len(seen), many))


def _either(texts: Iterable[str]) -> str:
    """Return what all say; where they differ, all of it."""
    return " or ".join(dict.fromkeys(texts))


def _end(refund: Refund, child: Child) -> tuple[str, int]:
    """Recover what the child left; returns what became of the payment, and how many model calls were lost."""
    assert (None, KILLED) == (child.receive(), child.wait())
    result = finish(refund)
    check(refund, result)
    return _told(refund, result), result.usage.model_calls - result.usage.steps


def _told(refund: Refund, result: RunResult) -> str:
    with open_checkpoints(refund.url) as checkpoints:
        assert checkpoints.ledger.log.verify().is_whole
        assert {"done", "failed"} >= {row.status for row in checkpoints.ledger.effects.of_run(result.run_id)}
        asked = [one.question for one in checkpoints.ledger.approvals.of_run(result.run_id)]
        looked = [
            record for record in checkpoints.ledger.log.records(result.run_id) if record.data.get("by") == "verify"
        ]
    keys = refund.bank.keys()
    assert len(set(keys)) <= 1
    parts = ["once" if refund.bank.payments() else "not paid"]
    parts += ["a person was asked"] * (Question.OUTCOME in asked)
    parts += ["`verify` found it"] * bool(looked)
    parts += [f"sent {len(keys)} times with one key"] * (len(keys) > 1)
    return ", ".join(parts)


def main() -> None:
    """Print the table."""
    print(HEADER, RULE, sep="\n")  # noqa: T201 -- its output
    with Nursery() as nursery, Postgres() as server, tempfile.TemporaryDirectory() as folder:
        for number, place in enumerate(PLACES):
            print(row_of(place, nursery, server, Path(folder) / str(number)), flush=True)  # noqa: T201 -- its output


if __name__ == "__main__":
    main()
