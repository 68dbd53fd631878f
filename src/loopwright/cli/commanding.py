"""The command and the group that all commands are made of."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Sequence
from typing import Any

import click

from loopwright.errors import LoopwrightError

from .exits import Exit

TRACEBACK_VARIABLE = "LOOPWRIGHT_TRACEBACK"


class Command(click.Command):
    """A command whose function returns its exit code, whose errors are one line, and whose help ends with examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **options: Any) -> None:
        """Take click's options, and command lines to start from."""
        super().__init__(*args, **options)
        self._examples = examples

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Write the examples as they are to be typed."""
        write_lines("Example" if len(self._examples) == 1 else "Examples", self._examples, formatter)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and end the process with its exit code."""
        try:
            code = super().invoke(ctx)
        except (click.ClickException, click.Abort, click.exceptions.Exit):
            raise
        except LoopwrightError as error:
            code = _failed(error, ctx)
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE) or (isinstance(error, OSError) and error.errno == errno.EPIPE):
                raise
            hint = f"(set {TRACEBACK_VARIABLE}=1 to see where)"
            code = _failed(LoopwrightError(f"unexpected {type(error).__name__}: {error} {hint}"), ctx)
        ctx.exit(int(code))


def _failed(error: LoopwrightError, ctx: click.Context) -> Exit:
    from .text import clean

    click.echo(f"error: {clean(error.message)}", err=True)
    if ctx.params.get("as_json"):
        click.echo(json.dumps(error.to_json(), indent=2, default=str))
    return Exit.ERROR


def write_lines(title: str, lines: Sequence[str], formatter: click.HelpFormatter) -> None:
    """Write a section of a help page whose lines stay as they are; an empty one is left out."""
    if not lines:
        return
    with formatter.section(title):
        for line in lines:
            formatter.write(f"{' ' * formatter.current_indent}{line}\n")


class Group(click.Group):
    """The commands in the order in which a user meets them, with what holds for all of them below."""

    def __init__(self, *args: Any, sections: Sequence[tuple[str, Sequence[str]]] = (), **options: Any) -> None:
        """Take click's options, and sections for the end of the help page: titles with their lines."""
        super().__init__(*args, **options)
        self._sections = sections

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Write the sections."""
        for title, lines in self._sections:
            write_lines(title, lines, formatter)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """Return the names as they were added."""
        return list(self.commands)
