"""Every error that loopwright raises, under one root.

    LoopwrightError
    ├── ConfigurationError        a graph, tool, rule, limit or model is set up wrongly (before any step runs)
    │   ├── UnknownTool           a rule or limit names a tool that the agent does not have
    │   ├── DuplicateTool         two tools share a name
    │   └── InvalidLimits         limits that bound nothing, or contradict themselves
    ├── RunError                  a run could not go on
    │   └── RunNotFound           no run with that id
    ├── ToolError                 raised by a tool's own code, or about its contract
    │   └── NotDone               a tool says: nothing happened
    ├── ApprovalError             an answer that cannot be taken
    │   ├── ApprovalNotFound      nothing is asked under that id
    │   ├── EffectNotFound        no effect under that id
    │   └── InvalidDecision       the answer has the wrong shape, or is not allowed here
    └── StorageError              the database cannot be used as asked
        ├── ThreadNotFound        nothing is stored for that thread
        ├── ThreadMoved           another worker carried the thread on; nothing of this one was stored
        ├── ClockBehind           this machine's clock is behind what is stored already
        ├── StorageCorrupt        the file is no database, or a damaged one
        └── VersionUnsupported    written by a newer loopwright

Pauses, limits and a run that gives up are results (`RunStatus`, `StopReason`), never exceptions; a late decision is a
receipt. Each error carries its facts in `facts`, survives pickling and round-trips through JSON, since errors are
stored beside the run that met them.
"""

from __future__ import annotations

from typing import Any, Self


class LoopwrightError(Exception):
    """The root: catch this to catch everything that loopwright raises on purpose.

    Attributes:
        message: One sentence or two: what was wrong, where, and the way out.
        facts: The values that the message was built from, JSON-like, for programs.
    """

    def __init__(self, message: str, **facts: Any) -> None:
        """Keep the message and its facts."""
        super().__init__(message)
        self.message = message
        self.facts = facts

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by message and facts: the default would lose the keywords."""
        return (_rebuild, (type(self), self.message, self.facts))

    def to_json(self) -> dict[str, Any]:
        """Return the error as JSON-like data; `from_json` is the way back."""
        return {"error": type(self).__name__, "message": self.message, "facts": self.facts}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> LoopwrightError:
        """Rebuild an error that `to_json` wrote; an unknown class name becomes the root class."""
        kind = _classes().get(data.get("error", ""), LoopwrightError)
        return kind(data["message"], **data.get("facts", {}))


def _rebuild(kind: type[LoopwrightError], message: str, facts: dict[str, Any]) -> LoopwrightError:
    return kind(message, **facts)


def _classes() -> dict[str, type[LoopwrightError]]:
    found: dict[str, type[LoopwrightError]] = {}
    waiting: list[type[LoopwrightError]] = [LoopwrightError]
    while waiting:
        kind = waiting.pop()
        found[kind.__name__] = kind
        waiting.extend(kind.__subclasses__())
    return found


class ConfigurationError(LoopwrightError):
    """Raised while building: a graph, tool, rule, limit, model or URL is set up wrongly."""


class UnknownTool(ConfigurationError):
    """Raised by `create_agent`: a rule or limit names a tool that the agent does not have."""


class DuplicateTool(ConfigurationError):
    """Raised by `create_agent`: two tools share a name."""


class InvalidLimits(ConfigurationError):
    """Raised by `Limits`: a negative bound, or no bound at all."""


class RunError(LoopwrightError):
    """A run could not go on."""


class RunNotFound(RunError):
    """Raised by `Runs`: there is no run with that id."""


class ToolError(LoopwrightError):
    """Raised by a tool's own code, or about its contract."""


class NotDone(ToolError):
    """Raise it in a tool body to say: nothing happened.

    The message goes to the model as an observation. Only this (and LangChain's `ToolException`) lets a `write` fail
    without leaving its effect unknown.
    """

    def __init__(self, message: str = "nothing was done", **facts: Any) -> None:
        """Keep the reason; `raise NotDone` alone says that nothing was done."""
        super().__init__(message, **facts)


class ApprovalError(LoopwrightError):
    """An answer that cannot be taken; the question stays open."""


class ApprovalNotFound(ApprovalError):
    """Raised by `Runs.decide`: nothing is asked under that id."""


class EffectNotFound(ApprovalError):
    """Raised by `Runs.resolve`: no effect under that id."""


class InvalidDecision(ApprovalError):
    """Raised by `Runs.decide` and `Runs.resolve`: the answer has the wrong shape, or is not allowed here."""


class StorageError(LoopwrightError):
    """The database cannot be used as asked; what was stored before is intact."""


class ThreadNotFound(StorageError):
    """Raised when a thread is to be resumed or read of which nothing is stored."""


class ThreadMoved(StorageError):
    """Raised when a thread was carried on by another worker meanwhile; nothing of the loser's was stored."""

    @classmethod
    def of(cls, thread_id: str) -> Self:
        """Build the error."""
        text = f"thread {thread_id!r} was carried on by another worker; nothing of this one's was stored; read it anew"
        return cls(text, thread_id=thread_id)


class ClockBehind(StorageError):
    """Raised when this machine's clock is behind the newest checkpoint: what it stored would count as older."""


class StorageCorrupt(StorageError):
    """Raised by `open_checkpoints`: the file is no SQLite database, or a damaged one."""


class VersionUnsupported(StorageError):
    """Raised when data was written by a newer loopwright; nothing was changed."""
