"""The commands that only look."""

from __future__ import annotations

import click

from .commanding import Command
from .exits import Exit
from .options import agent, as_json


@click.command(cls=Command, examples=["loopwright inbox"])
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="How many at most.")
@as_json
def inbox(*, limit: int, as_json: bool) -> Exit:
    """List what waits for a person or a rate, and how to answer."""
    from .screen import Screen
    from .showing import show_inbox

    return show_inbox(limit, Screen(as_json=as_json))


@click.command(
    cls=Command,
    examples=["loopwright show", "loopwright show 19ac1e", "loopwright show --status failed --since 7d"],
)
@click.argument("run_id", metavar="[RUN]", required=False)
@click.option("--thread", default="", metavar="ID", help="Only the runs of this thread.")
@click.option("--status", default="", metavar="STATUS", help="Only runs that stand so: running, waiting, failed, …")
@click.option(
    "--since", metavar="TIME", help="Only runs begun then or later: 2026-10-13, '2026-10-13 09:30', or 2h ago."
)
@click.option("--before", metavar="TIME|RUN", help="Only runs begun earlier: than then, or than that run.")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many runs at most.")
@as_json
def show(
    *, run_id: str | None, thread: str, status: str, since: str | None, before: str | None, limit: int, as_json: bool
) -> Exit:
    """List recent runs, or show all that is known of one."""
    from .screen import Screen
    from .showing import Wanted, show_one, show_runs

    screen = Screen(as_json=as_json)
    wanted = Wanted(thread, status, since, before, limit)
    return show_runs(wanted, screen) if run_id is None else show_one(run_id, screen)


@click.command(cls=Command, examples=["loopwright check --agent shop.agents:support"])
@agent
@as_json
def check(*, agent: str, as_json: bool) -> Exit:
    """Ask the five questions of an agent, and lint its tools.

    How many steps at most? What if a tool fails? Success, or gave up? Is each step visible? What does it cost? Calls
    neither a model nor a tool; findings do not change the exit code.
    """
    from .screen import Screen
    from .showing import check_agent

    return check_agent(agent, Screen(as_json=as_json))
