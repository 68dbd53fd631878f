"""The command line: runs agents, shows each step, and takes people's answers."""

from __future__ import annotations

import io
import sys


def main() -> None:
    """Run the `loopwright` command; ends the process with its exit code."""
    from .app import app

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that knows few characters gets escapes for the others, not an error.
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="loopwright")


__all__ = ["main"]
