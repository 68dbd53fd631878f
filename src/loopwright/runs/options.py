"""What `Runs` and `SyncRuns` take by name, both alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from typing_extensions import TypedDict

from loopwright.checkpoints import Approval

from .contexts import RestoreContext


class DrivingOptions(TypedDict, total=False):
    """How runs are driven; each can be left out."""

    reference: str
    """Where another process finds the agent (`package.module:name`); kept with each run, so that the command line can
    resume it."""
    on_reminder: Callable[[Approval], object] | None
    """Called under `recovering`, and by `expire` and `recover`, with each question that a rule's `remind_after` is due
    of: once, however many workers there are; again if it raised. Under `Runs` it may be async, and a plain one runs in
    a thread."""
    restore_context: RestoreContext | None
    """Called as `restore_context(stored, run)` before a run is carried on whose caller gave a context: `stored` are its
    fields without the secret ones. Returns the others, or a whole context. Async or not as `on_reminder`. Left out, the
    agent's own is called, if it has one."""


class RunOptions(TypedDict, total=False):
    """What a run can be started with, besides its message and its thread; each can be left out."""

    run_id: str
    """Your own id for the run, such as a request's idempotency key: started twice, it is one run."""
    requester: str
    """For whom it runs: a rule's `not_requester` keeps them from deciding about it."""
    labels: Mapping[str, str] | None
    """Who it is for, such as `{"tenant": "acme"}`: budgets are kept apart by them, and rules see them in
    `proposed.run["labels"]`. Kept with the run, whoever carries it on."""
    context: object
    """What tools get as `ToolRuntime.context`: an object of the agent's `context_schema`, or its fields. Its secret
    fields are never stored; see `restore_context`."""
    state: Mapping[str, Any] | None
    """What the agent's own channels (`state_schema=`) are given with the message, as plain data: each goes through its
    reducer. Of a run that was started before under this id, what was given first counts."""


class ExtendOptions(TypedDict, total=False):
    """How much more a run is given; each can be left out, but not all of the amounts."""

    steps: int
    """Model calls more."""
    tool_calls: int
    """Tool calls more."""
    tokens: int
    """Tokens more."""
    cost: Decimal
    """US dollars more."""
    seconds: float
    """Active seconds more."""
    key: str
    """Names this extension: under the same key it is added once for ever, also after the run has stopped again."""
