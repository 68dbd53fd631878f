"""The commands that measure."""

from __future__ import annotations

import click

from .commanding import Command, Group
from .exits import Exit
from .options import as_json

_SUITES = ("workspace", "travel", "banking", "slack")


@click.group(cls=Group, sections=[("Example", ["loopwright eval agentdojo"])])
def evaluate() -> None:
    """Measure the guard against tasks that others have made."""


@evaluate.command(
    cls=Command,
    examples=["loopwright eval agentdojo --suite banking", "loopwright eval agentdojo --rules service --json"],
)
@click.option("--suite", type=click.Choice(_SUITES), multiple=True, help="Only these; all four by default.")
@click.option("--rules", type=click.Choice(["default", "service"]), multiple=True, help="Only with these rules.")
@click.option("--task", metavar="ID", multiple=True, help="Only these tasks of the user, such as user_task_3.")
@as_json
def agentdojo(*, suite: tuple[str, ...], rules: tuple[str, ...], task: tuple[str, ...], as_json: bool) -> Exit:
    """Run AgentDojo's injections against a model that obeys.

    Each pair of a task and an injection goes through the whole ring, with a model that obeys all it reads, and nobody
    says yes. Counted are the injected effects that happened all the same, how many honest tasks are asked about, and
    how many of them succeed once a person approves. Takes minutes; exits with 1 if an injected effect happened.
    """
    from .evaluating import run_agentdojo
    from .screen import Screen

    return run_agentdojo(suite or _SUITES, rules or ("default", "service"), task, Screen(as_json=as_json))
