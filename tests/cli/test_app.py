"""The command itself: its help, its version, and how little it costs to ask for them."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import click
import pytest

from loopwright.cli.app import app

COMMANDS = [
    *("demo", "run", "inbox", "approve", "reject", "edit", "respond", "resolve"),
    *("cancel", "show", "resume", "extend", "recover", "check", "log", "prune", "reseal", "eval"),
]
HEAVY = ("langgraph", "langchain_core", "pydantic", "sqlite3")


def test_commands_stand_in_the_order_in_which_a_user_meets_them() -> None:
    """The list is complete, and not sorted by the alphabet."""
    assert COMMANDS == app.list_commands(click.Context(app))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_explains_itself(name: str) -> None:
    """One line that is not cut in the overview, every option explained, and an example to start from."""
    command = app.commands[name]
    context = click.Context(command, info_name=name)
    help_ = command.get_help(context)
    assert not command.get_short_help_str(limit=68).endswith("...")
    assert [] == [each for each in command.params if isinstance(each, click.Option) and not each.help]
    assert name == "demo" or f"loopwright {name}" in help_


def test_the_help_says_what_exit_codes_mean() -> None:
    """All five, and the variables of the environment."""
    help_ = app.get_help(click.Context(app, info_name="loopwright"))
    for words in ["0  done", "1  error", "2  the command", "3  the run waits", "4  the run was stopped"]:
        assert words in help_
    assert "LOOPWRIGHT_CHECKPOINTS" in help_


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["run", "--help"]])
def test_asking_for_help_loads_no_engine(args: list[str]) -> None:
    """Neither LangGraph nor a database is imported for it, so that it is there at once."""
    code = f"import sys; sys.argv[1:] = {args!r}\nfrom loopwright.cli import main\n"
    code += f"try: main()\nfinally: print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]" == done.stdout.splitlines()[-1]


def test_the_version_is_the_packages() -> None:
    """`python -m loopwright.cli` is the console script, also where that is on no path."""
    command = [sys.executable, "-m", "loopwright.cli", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"loopwright, version {version('loopwright')}\n" == done.stdout
