"""What the process says to whoever started it."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit codes; click itself exits with 2 when a command was not used as its help says."""

    DONE = 0
    """The run succeeded; or the command did what was asked."""
    ERROR = 1
    """Nothing was done, and stderr says why; or another decision counts than the one that was given."""
    WAITING = 3
    """The run waits for a person, or for a rate."""
    STOPPED = 4
    """The run was stopped, has failed or was cancelled."""


def exit_of(status: str) -> Exit:
    """Return the exit code for how a run stands."""
    match status:
        case "succeeded" | "running":
            return Exit.DONE
        case "waiting":
            return Exit.WAITING
        case _:
            return Exit.STOPPED
