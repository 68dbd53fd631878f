"""How a run stands, and why it ended."""

from __future__ import annotations

from enum import StrEnum


class RunStatus(StrEnum):
    """Where a run stands; the values are what is stored."""

    RUNNING = "running"
    """A worker drives it, or will as soon as one is free."""
    WAITING = "waiting"
    """It waits for a person, or is parked for a rate, and holds nothing meanwhile."""
    SUCCEEDED = "succeeded"
    """The model gave a final answer."""
    STOPPED = "stopped"
    """It met a bound, a refusal or a loop; the best answer so far is kept."""
    FAILED = "failed"
    """A model or a tool failed in a way that nothing here can mend."""
    CANCELLED = "cancelled"
    """A person or a newer task ended it."""

    @property
    def is_final(self) -> bool:
        """Whether nothing will happen any more."""
        return self not in (RunStatus.RUNNING, RunStatus.WAITING)


class StopReason(StrEnum):
    """Why a run ended; `docs/results.md` has the table with the statuses."""

    ANSWERED = "answered"
    MAX_STEPS = "max_steps"
    MAX_TOOL_CALLS = "max_tool_calls"
    MAX_TOKENS = "max_tokens"
    MAX_COST = "max_cost"
    RATE_LIMIT = "rate_limit"
    """The model was called too often, and its rate refuses."""
    DEADLINE = "deadline"
    """The active seconds are used up."""
    LOOP = "loop"
    """The model went round in circles, was told, and went on."""
    REFUSED = "refused"
    """The model, or its provider's filter, would not answer."""
    EMPTY = "empty"
    """The model kept sending replies without text and without calls."""
    TRUNCATED = "truncated"
    """The model's replies kept being cut at its output limit."""
    MALFORMED = "malformed"
    """The model's replies could not be read, or named no tool that there is, several times in a row."""
    UNVERIFIED = "unverified"
    """The final answers had not the form that was asked for, or did not pass the checks, until no retry was left."""
    TOO_LONG = "too_long"
    """What must be sent does not fit the model's context window, however much is left out or shortened."""
    DENIED = "denied"
    """A call had to be asked about, and there is nobody to ask (no saver)."""
    ESCALATED = "escalated"
    """A tool handed the matter over to a person."""
    CANCELLED = "cancelled"
    ERROR = "error"
    """A model call failed, or what a start gave was no longer taken; `RunResult.error` says how."""

    @property
    def status(self) -> RunStatus:
        """The one status that goes with this reason."""
        return _STATUS.get(self, RunStatus.STOPPED)


_STATUS = {
    StopReason.ANSWERED: RunStatus.SUCCEEDED,
    StopReason.ERROR: RunStatus.FAILED,
    StopReason.CANCELLED: RunStatus.CANCELLED,
}
