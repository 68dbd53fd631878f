"""The commands that drive runs."""

from __future__ import annotations

import click

from .commanding import Command
from .exits import Exit
from .options import agent, as_json, by


@click.command(cls=Command)
@as_json
def demo(*, as_json: bool) -> Exit:
    """See a process killed right after a refund: paid once, not twice.

    Offline, in a temporary folder, in less than a minute: two people approve at the same moment, the process dies,
    another one goes on. Beside it the same story on a bare LangGraph graph.
    """
    from .demo import tell
    from .screen import Screen

    return tell(Screen(as_json=as_json))


@click.command(cls=Command, examples=['loopwright run "Refund my order A100. Today is 2026-10-13." --limit-steps 6'])
@click.argument("message")
@click.option("--thread", metavar="ID", help="Go on with this thread, or begin it; by default a new one.")
@agent
@click.option("--requester", metavar="NAME", default="", help="For whom it runs; kept with the run.")
@click.option(
    "--model",
    metavar="NAME",
    help="Instead of the agent's own: openai:MODEL, or demo; A,B: B if A fails. openai-json:MODEL for one that calls "
    "no tools by itself.",
)
@click.option("--limit-steps", type=click.IntRange(0), help="Model calls at most.")
@click.option("--limit-tool-calls", type=click.IntRange(0), help="Tool calls at most.")
@click.option("--limit-tokens", type=click.IntRange(0), help="Input and output tokens at most.")
@click.option("--limit-seconds", type=click.FloatRange(0), help="Active seconds at most.")
@click.option("--limit-cost", metavar="DOLLARS", help="US dollars for model calls at most.")
@click.option("--price", metavar="INPUT,OUTPUT", help="US dollars for a million tokens, where they are not known.")
@click.option("--label", "labels", metavar="NAME=VALUE", multiple=True, help="Who it is for; budgets go by it.")
@click.option("--context", metavar="JSON", help="What its tools get besides; @FILE reads it. Secrets are not stored.")
@click.option("--state", metavar="JSON", help="What channels of the agent's own begin with; @FILE reads it.")
@click.option("--stream/--no-stream", default=None, help="Show the model's text as it comes; a terminal does.")
@as_json
def run(
    *,
    message: str,
    thread: str | None,
    agent: str,
    requester: str,
    model: str | None,
    limit_steps: int | None,
    limit_tool_calls: int | None,
    limit_tokens: int | None,
    limit_seconds: float | None,
    limit_cost: str | None,
    price: str | None,
    labels: tuple[str, ...],
    context: str | None,
    state: str | None,
    stream: bool | None,
    as_json: bool,
) -> Exit:
    """Give an agent a task, and see each step as it happens.

    Ends when the run has ended, or waits for a person. Model and limits given here hold for the whole run, whichever
    process carries it on.
    """
    from .arguments import parse_labels, parse_object
    from .running import run_task
    from .screen import Screen

    given = {
        "model": model,
        "max_steps": limit_steps,
        "max_tool_calls": limit_tool_calls,
        "max_tokens": limit_tokens,
        "max_seconds": limit_seconds,
        "max_cost": limit_cost,
        "price": price,
    }
    changes = {name: str(value) for name, value in given.items() if value is not None}
    screen, labelled = Screen(as_json=as_json, streams=stream), parse_labels(labels)
    return run_task(
        message,
        thread,
        agent,
        changes,
        screen,
        requester=requester,
        labels=labelled,
        context=parse_object("--context", context),
        state=parse_object("--state", state),
    )


@click.command(cls=Command, examples=["loopwright resume 19ac1e"])
@click.argument("run_id", metavar="RUN")
@as_json
def resume(*, run_id: str, as_json: bool) -> Exit:
    """Carry on a run that nobody drives.

    One that waits for a person is shown with its questions. One that a live process drives is waited for.
    """
    from .running import resume_run
    from .screen import Screen

    return resume_run(run_id, Screen(as_json=as_json))


@click.command(cls=Command, examples=["loopwright recover"])
@as_json
def recover(*, as_json: bool) -> Exit:
    """Carry on all that crashed processes have left.

    Exits with 1 if the agent of some run could not be loaded; the others are carried on all the same.
    """
    from .running import recover_runs
    from .screen import Screen

    return recover_runs(Screen(as_json=as_json))


@click.command(cls=Command, examples=["loopwright cancel 19ac1e --by ana"])
@click.argument("run_id", metavar="RUN")
@by
@as_json
def cancel(*, run_id: str, by: str, as_json: bool) -> Exit:
    """End a run: its questions are withdrawn, no further call is begun."""
    from .cancelling import cancel as cancelled
    from .screen import Screen

    return cancelled(run_id, by, Screen(as_json=as_json))


@click.command(cls=Command, examples=["loopwright extend 19ac1e --steps 10 --by ana"])
@click.argument("run_id", metavar="RUN")
@click.option("--steps", type=click.IntRange(0), default=0, help="Model calls more.")
@click.option("--tool-calls", type=click.IntRange(0), default=0, help="Tool calls more.")
@click.option("--tokens", type=click.IntRange(0), default=0, help="Tokens more.")
@click.option("--cost", metavar="DOLLARS", default="0", help="US dollars more.")
@click.option("--seconds", type=click.FloatRange(0), default=0.0, help="Active seconds more.")
@by
@as_json
def extend(
    *, run_id: str, steps: int, tool_calls: int, tokens: int, cost: str, seconds: float, by: str, as_json: bool
) -> Exit:
    """Let a run that stopped at a limit go on with more."""
    from .arguments import parse_dollars
    from .extending import extend as extended
    from .screen import Screen

    dollars = parse_dollars(cost)
    if not (steps or tool_calls or tokens or seconds or dollars):
        raise click.UsageError("nothing is added: say how much more, such as --steps 10")
    more = {"steps": steps, "tool_calls": tool_calls, "tokens": tokens, "seconds": seconds}
    return extended(run_id, more, dollars, by, Screen(as_json=as_json))
