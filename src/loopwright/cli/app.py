"""The group of all commands.

What a command does is imported when it is run, so that `--help` is quick.
"""

from __future__ import annotations

import os

import click

from .answer_commands import approve, edit, reject, resolve, respond
from .commanding import Group
from .eval_commands import evaluate
from .keeping_commands import log, prune, reseal
from .run_commands import cancel, demo, extend, recover, resume, run
from .view_commands import check, inbox, show

_TRY = [
    "loopwright demo",
    'loopwright run "Can I get a refund for my order A100? Today is 2026-10-13."',
]
_CODES = [
    "0  done: the run succeeded, or the command did what was asked",
    "1  error, told in one line on stderr; or another decision counts than yours",
    "2  the command was not used as its help says",
    "3  the run waits for a person, or for a rate",
    "4  the run was stopped, has failed or was cancelled",
]
_ENVIRONMENT = [
    "LOOPWRIGHT_CHECKPOINTS    where runs are kept, such as sqlite:///runs.db;",
    "                          by default .loopwright/runs.db of this folder",
    "LOOPWRIGHT_ENCRYPTION     keys of an encrypted database, each of 64 hexadecimal",
    "                          digits, the newest first, commas between",
    "LOOPWRIGHT_MODEL          the model of agents that name none",
    "LOOPWRIGHT_LEASE_SECONDS  a process silent for so long counts as gone (10)",
    "LOOPWRIGHT_TRACEBACK      1: show where an unexpected error came from",
    "OPENAI_API_KEY            for openai:… models, with OPENAI_BASE_URL for a",
    "                          server of your own; without a key and without",
    "                          a name the rule-based demo model answers",
]


@click.group(
    cls=Group,
    sections=[("Try it", _TRY), ("Exit codes", _CODES), ("Environment", _ENVIRONMENT)],
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="loopwright", prog_name="loopwright")
@click.pass_context
def app(ctx: click.Context) -> None:
    """Run agents that are bounded, ask before they do harm, and survive a kill."""
    if os.environ.get("NO_COLOR"):
        ctx.color = False


_COMMANDS = (
    demo,
    run,
    inbox,
    approve,
    reject,
    edit,
    respond,
    resolve,
    cancel,
    show,
    resume,
    extend,
    recover,
    check,
    log,
    prune,
    reseal,
)
for command in _COMMANDS:
    app.add_command(command)
app.add_command(evaluate, "eval")
