"""The shop under examples/retail, the tasks of its data set, and what any process needs to go on with one."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from examples.retail.agent import build_retail_agent
from examples.retail.books import Books
from examples.retail.tools import retail_tools
from langchain_core.messages import AnyMessage, ToolCall

from loopwright import RunResult, SyncRuns, approve, open_checkpoints
from loopwright.state import PersonDecision
from loopwright.testing import ScriptedModel, call
from loopwright.tools import Effect

from .nursery import Channel
from .plans import spoken

SAMPLE = Path(__file__).parents[1] / "data" / "retail"
"""A small part of the data set, with its licence."""
FULL = Path(__file__).parents[3] / "shared" / "data" / "retail"
"""The whole of it, where it lies beside the checkout."""
SETS = [SAMPLE, *([pytest.param(FULL, marks=pytest.mark.in_full)] if FULL.is_dir() else [])]
ANSWER = "That is all."
MANY = 1000


@dataclass(frozen=True, slots=True)
class Task:
    """What somebody wants of the shop, as the calls that do it."""

    id: str
    calls: Sequence[ToolCall]


def tasks_of(data: Path) -> list[Task]:
    """Read the tasks of a data set."""
    given = json.loads((data / "tasks.json").read_text(encoding="utf-8"))
    return [Task(one["id"], [call(part["name"], **part["arguments"]) for part in one["actions"]]) for one in given]


def asked_for(task: Task) -> str:
    """Return the customer's words, which tell the tasks apart."""
    return f"Please do task {task.id}."


class Branch:
    """A shop for each task, each a copy of the same books, and one database for all runs."""

    def __init__(self, folder: Path, data: Path) -> None:
        """Lay the books out; what is there already stays."""
        self.folder = folder
        self.data = data
        self.first = Books.load(folder / "first.db", data / "db.json")
        self.url = f"sqlite:///{folder / 'runs.db'}"

    def books(self, task: Task) -> Books:
        """Return the books of a task's own."""
        path = self.folder / f"task-{task.id}.db"
        if not path.exists():
            copied = path.with_suffix(".new")
            shutil.copy(self.first.path, copied)
            copied.replace(path)
        return Books(path)

    def apply(self, task: Task) -> Books:
        """Do what a task's calls say to a fresh copy, without an agent; a call that fails does nothing."""
        path = self.folder / f"direct-{task.id}.db"
        shutil.copy(self.first.path, path)
        books = Books(path)
        tools = {one.name: one.contract for one in retail_tools(lambda: books)}
        for number, one in enumerate(task.calls):
            contract = tools[one["name"]]
            try:
                contract.run(contract.canonical_args(one["args"]), Effect(key=f"direct-{number}"))
            except Exception:  # noqa: BLE001, S112 -- look-ups that find nothing are a part of the tasks
                continue
        return books

    def serve(
        self,
        tasks: Sequence[Task],
        *,
        url: str = "",
        decide: Callable[[], PersonDecision] = approve,
        clock: Callable[[], float] = time.time,
    ) -> Mapping[str, RunResult]:
        """Carry each task's run to its end; a person decides what is asked. May be called again after a kill."""
        results: dict[str, RunResult] = {}
        plans = {asked_for(task): [*task.calls, ANSWER] for task in tasks}
        at_hand = [self.first]

        def say(messages: list[AnyMessage]) -> Any:
            return plans[messages[1].text][spoken(messages)]

        agent = build_retail_agent(ScriptedModel([say] * MANY), lambda: at_hand[0])
        with open_checkpoints(url or self.url, clock=clock) as checkpoints:
            runs = SyncRuns(agent, checkpoints)
            for task in tasks:
                at_hand[0] = self.books(task)
                result = runs.run(asked_for(task), thread_id=f"task-{task.id}", run_id=f"run-{task.id}")
                while result.approvals:
                    for asked in result.approvals:
                        runs.decide(asked.id, decide(), by="ana")
                    result = runs.wait(result.run_id)
                results[task.id] = result
        return results


def serve_on(channel: Channel, *, folder: str, data: str, later: float) -> None:
    """Carry all tasks on from where an earlier process was killed; sends how many have ended well."""
    branch = Branch(Path(folder), Path(data))
    results = branch.serve(tasks_of(branch.data), clock=lambda: time.time() + later)
    channel.send(sum(result.status.is_final for result in results.values()))
