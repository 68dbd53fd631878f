"""What the nursery's children do for the tests of the command line."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.world.nursery import Channel


def command(channel: Channel, *, folder: str, args: Sequence[str], settings: Mapping[str, str]) -> None:
    """Be a `loopwright` process: in a folder, with a command line, writing to the files `out` and `err` above it."""
    channel.close()
    os.chdir(folder)
    os.environ.update(settings)
    for descriptor, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(Path(folder).parent / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    sys.argv = ["loopwright", *args]
    from loopwright.cli import main

    try:
        main()
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(end.code or 0))
