"""Where a command writes: lines for a person, or one JSON document for a program."""

from __future__ import annotations

import json
import os
import shutil
import sys
from decimal import Decimal

import click

from .text import clean, hanging, wrap

MIN_COLUMNS = 40


class Screen:
    """Stdout for what was asked for, stderr for what is said beside it.

    Attributes:
        as_json: Whether a program reads: then lines are left out, and `data` writes the one document.
        width: Columns that a line may take.
        streams: Whether a model's text is shown as it comes.
    """

    def __init__(self, *, as_json: bool = False, is_beside: bool = False, streams: bool | None = None) -> None:
        """Measure the terminal; `is_beside` sends the lines to stderr as well, since stdout is taken."""
        self.as_json = as_json
        self._is_beside = is_beside
        self.width = max(MIN_COLUMNS, shutil.get_terminal_size().columns)
        # Prose in a file or a pipe is left as it is, so that it can be searched.
        is_page = (sys.stderr if is_beside else sys.stdout).isatty() or "COLUMNS" in os.environ
        self.page = self.width if is_page else None
        self.streams = not as_json and (sys.stdout.isatty() if streams is None else streams)
        self._noted: set[str] = set()
        self._last = ""

    def line(self, text: str = "", *, dim: bool = False, bold: bool = False) -> None:
        """Write a finished line for a person; the styles show on a terminal only."""
        self._last = text
        if not self.as_json:
            styled = click.style(text, dim=dim or None, bold=bold or None) if dim or bold else text
            click.echo(styled, err=self._is_beside)

    def piece(self, text: str) -> None:
        """Write a piece of a text that goes on, as it is but for what could steer the terminal; `end_piece` ends it."""
        self._last = text
        if not self.as_json:
            click.echo("\n".join(clean(line) for line in text.split("\n")), nl=False, err=self._is_beside)

    def end_piece(self) -> None:
        """End the line that pieces have left open; it is no empty one."""
        if not self.as_json and not self._last.endswith("\n"):
            click.echo(err=self._is_beside)

    def gap(self) -> None:
        """Set off what follows by an empty line, unless there is one or nothing stands before."""
        if self._last:
            self.line()

    def prose(self, text: str, *, indent: str = "", dim: bool = False) -> None:
        """Write a text for a person, broken into lines that fit."""
        for line in wrap(text, self.page, indent):
            self.line(line, dim=dim)

    def fact(self, name: str, text: str, *, indent: str = "  ") -> None:
        """Write a named value."""
        for line in hanging(f"{indent}{name:<10}", text, self.page):
            self.line(line)

    def note(self, text: str) -> None:
        """Write beside the output, for a person, also when a program reads the output."""
        for line in wrap(text, self.page):
            click.echo(line, err=True)

    def note_once(self, text: str) -> None:
        """Do so, unless it was said before."""
        if text not in self._noted:
            self._noted.add(text)
            self.note(text)

    def data(self, value: object) -> None:
        """Write the document for a program."""
        if self.as_json:
            click.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return f"{value:f}"
    raise TypeError(f"{type(value).__name__} has no JSON form")
