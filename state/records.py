"""The plain records that the state's channels hold."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from typing_extensions import TypedDict


class Verdict(StrEnum):
    """What the guard says of a call on the table."""

    ALLOW = "allow"
    """It may run."""
    ASK = "ask"
    """A person decides first."""
    DENY = "deny"
    """A rule, or a person, forbids it: it never runs."""
    INVALID = "invalid"
    """Unknown tool or bad arguments: the model is told what was wrong."""
    NOT_RUN = "not_run"
    """A limit, a cancellation or a newer task came first."""
    ANSWERED = "answered"
    """A person answered in the tool's place."""
    UNKNOWN = "unknown"
    """It was begun, and nobody knows whether its effect happened."""


class Outcome(StrEnum):
    """What became of a call: the `outcome` of its trail entry."""

    DONE = "done"
    ERROR = "error"
    """The tool failed; nothing, or only reading, was done."""
    INVALID = "invalid"
    DENIED = "denied"
    """By a rule."""
    REJECTED = "rejected"
    """By a person, or by an approval that expired."""
    ANSWERED = "answered"
    NOT_RUN = "not_run"
    UNKNOWN = "unknown"
    """Begun, and nobody knows: settled later in the ledger only."""


class Question(StrEnum):
    """What kind of question waits for a person; the `type` of an interrupt's payload."""

    APPROVAL = "tool_approval"
    """May this call run?"""
    OUTCOME = "outcome_unknown"
    """Did this effect happen?"""


class Result(TypedDict, total=False):
    """What an `act` task brought back: the `results` channel holds these for one super-step."""

    call_id: str
    outcome: str
    """An `Outcome`."""
    text: str
    """The observation, unmarked."""
    effect: str
    """The id of the effect, where its outcome is unknown."""
    began: float
    """Seconds since the epoch."""
    seconds: float
    """How long it took."""


class Call(TypedDict, total=False):
    """A tool call on the table: an item of the `turn` channel. `id` to `verdict` are always there."""

    id: str
    name: str
    args: dict[str, Any]
    """Canonical: validated by the tool's schema, then dumped as JSON."""
    ordinal: int
    """Its place in the turn, from 0."""
    attempt: int
    """Counts how often it was put on the table: a new claim for each."""
    verdict: str
    """A `Verdict`."""
    why: str
    """The reason for the verdict, in words for the model and the person."""
    by: str
    """Who gave the verdict: a rule's name, or a person."""
    thought: str
    proposed: dict[str, Any]
    """The arguments the model sent, where a person changed them."""
    approval: str
    """The id of the question, while there is one."""
    question: str
    """A `Question`, while there is one."""
    expires_in: float
    """Seconds for which the question stays open, where the rule says so."""
    error: str
    """Why the last answer could not be taken; shown when asked again."""
    effect: str
    """The id of the effect whose outcome is unknown."""
    result: Result
    """What came back, while a sibling still waits."""


class Answer(TypedDict):
    """What a resume brought: the `answers` channel holds it for one super-step."""

    approval: str
    value: Any
    by: str


class RunRecord(TypedDict, total=False):
    """The `run` channel: the run that is on, or was last."""

    id: str
    task_id: str
    """The id of the user's message that is the task."""
    task: str
    """An excerpt of it."""
    began: float
    """Seconds since the epoch."""
    status: str
    reason: str
    answer: str
    error: str
    over_limit: str
    """The limit that the final answer itself went over; the answer is kept."""
    stop: str
    """A stop reason that waits until the turn on the table is answered."""
    cancelled_by: str
    malformed: int
    """Unusable replies in a row."""


class ThreadRecord(TypedDict):
    """The `thread` channel: what outlives a run."""

    version: int
    """Of this schema."""
    runs: int
    steps: int
    tool_calls: int
    tokens: int
    cost_nano: int
    window: dict[str, list[Any]]
    """The loop guard's memory: by call digest, the result's digest and how often in a row."""


class TrailEntry(TypedDict, total=False):
    """One small record a call: an item of the `trail` channel."""

    run: str
    step: int
    tool: str
    args: dict[str, Any]
    digest: str
    """Over tool and canonical arguments."""
    proposed: dict[str, Any]
    thought: str
    verdict: str
    why: str
    by: str
    outcome: str
    observation: str
    """An excerpt."""
    began: float
    seconds: float
