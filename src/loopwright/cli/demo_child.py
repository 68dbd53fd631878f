"""One of the demo's two people: a process that gets ready, and runs its command the moment it is let go.

Run as `python -m loopwright.cli.demo_child COMMAND…`. It prints one line when it is ready; the end of its stdin lets it
go.
"""

from __future__ import annotations

import sys

import click

from . import deciding, demo_agent, main

PREPARED = (deciding, demo_agent)
"""Imported before the start, so that only milliseconds of the command are left."""

if __name__ == "__main__":
    click.echo("ready")
    sys.stdin.read()
    main()
