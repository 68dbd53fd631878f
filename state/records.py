"""The plain records that the state's channels hold."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NotRequired

from typing_extensions import TypedDict

from .people import Requirement


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
    HELD = "held"
    """It stopped halfway, or failed, and a person is asked how it goes on."""


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
    WORDS = "question"
    """What the model wants to know of a person: the answer is the call's result."""
    PAUSE = "tool_interrupt"
    """What a tool wants to know in the midst of its work, by LangGraph's `interrupt`."""
    FAILURE = "tool_failed"
    """It failed: once more?"""
    PARKED = "parked"
    """No question to anybody: the run waits for a rate, and goes on by itself when its time has come."""


class Purpose(StrEnum):
    """What a call of the model is for."""

    DECIDE = "decide"
    """To choose the next step: the usual one."""
    WRAP_UP = "wrap_up"
    """To say in a run's last words what it found; without tools."""
    REFLECT = "reflect"
    """To look back at a final answer before it ends the run; without tools."""
    SUMMARISE = "summarise"
    """To sum up old turns that no longer fit the context window; without tools. Set and read by `reason`."""


class Result(TypedDict):
    """What an `act` task brought back: the `results` channel holds these for one super-step."""

    call_id: str
    outcome: str
    """An `Outcome`."""
    text: str
    """The observation: whole, unmarked."""
    blocks: NotRequired[list[dict[str, Any]]]
    """Content blocks, where the tool returned more than text; `text` stands for them elsewhere."""
    tries: NotRequired[list[str]]
    """How each try failed that was followed by another."""
    stops: NotRequired[bool]
    """Whether the failure ends the run."""
    asks: NotRequired[str]
    """The `Question` that it raises: the call stays on the table until a person has answered."""
    asked: NotRequired[Any]
    """What the tool wants to know, where it asks."""
    until: NotRequired[float]
    """Seconds since the epoch: when a call that is parked may be tried again."""
    artifact: NotRequired[Any]
    """What the tool returned for programs: plain data."""
    update: NotRequired[dict[str, Any]]
    """What it writes into open channels, once the result is told: plain data. From release 0.3 on."""
    effect: NotRequired[str]
    """The id of the effect, where its outcome is unknown."""
    cost_nano: NotRequired[int]
    """What it cost, for a tool with a price."""
    began: float
    """Seconds since the epoch."""
    seconds: float
    """How long it took."""


class TaintSource(TypedDict):
    """One text by strangers that came into the context: an item of the `taint` channel."""

    run: str
    step: int
    tool: str
    call: str
    """The id of the call that it answered."""
    message: str
    """The id of the message that brought it."""
    origin: str
    """What was asked for: an excerpt of the call's arguments."""
    passage: str
    """An excerpt of it."""


class Passage(TypedDict):
    """A place in a text by strangers that an approver should see; without an argument, only where text came from."""

    tool: str
    origin: str
    step: int
    argument: str
    """The argument whose value stands there."""
    text: str
    """The place, with the value between « and »."""


class Call(TypedDict):
    """A tool call on the table: an item of the `turn` channel."""

    id: str
    name: str
    args: dict[str, Any]
    """Canonical: validated by the tool's schema, then dumped as JSON."""
    ordinal: int
    """Its place in the turn, from 0."""
    attempt: int
    """Counts how often it was put on the table: a new claim for each."""
    branch: str
    """Where the thread was forked from before a decision: that branch asks anew. Empty on the first."""
    verdict: str
    """A `Verdict`."""
    why: str
    """The reason for the verdict, in words for the model and the person."""
    by: str
    """Who gave the verdict: a rule's name, or a person."""
    thought: str
    changes: bool
    """Whether running it changes something: all but a `read`."""
    version: NotRequired[str]
    """The version of the tool that was judged, where another party describes it. From release 0.2 on."""
    proposed: NotRequired[dict[str, Any]]
    """The arguments the model sent, where a person changed them."""
    approval: str
    """The id of the question, while there is one."""
    question: str
    """A `Question`, while there is one."""
    expires_in: NotRequired[float]
    """Seconds for which the question stays open, where the rule says so."""
    remind_after: NotRequired[float]
    """Seconds after which somebody is to be reminded of the question."""
    needs: NotRequired[Requirement]
    """Who may decide, where a rule asks."""
    revision: NotRequired[int]
    """Counts the edits that led to this question: each is a question of its own."""
    edited_by: NotRequired[str]
    """Whose edit led to this question: the first who approves it."""
    votes: NotRequired[list[str]]
    """Who has approved so far, where it takes several."""
    error: str
    """Why the last answer could not be taken; shown when asked again."""
    effect: str
    """The id of the effect whose outcome is unknown."""
    result: NotRequired[Result]
    """What came back, while a sibling still waits."""
    held: NotRequired[Result]
    """What it had come to when a person was asked how it goes on."""
    resumes: NotRequired[list[Any]]
    """What people answered when the tool asked, in order: it is called again with these."""
    parkings: NotRequired[int]
    """Counts how often it was parked for its tool's rate."""
    loop: NotRequired[str]
    """The kind of loop that the model is told about with the result."""
    taint: NotRequired[list[Passage]]
    """What the approver is told of text by strangers, where there was any in the context."""


def new_call(call_id: str, name: str, args: dict[str, Any], *, ordinal: int = 0, thought: str = "") -> Call:
    """Return a call that nobody has judged yet."""
    return Call(
        id=call_id,
        name=name,
        args=args,
        ordinal=ordinal,
        attempt=0,
        branch="",
        verdict=Verdict.INVALID,
        why="",
        by="",
        thought=thought,
        changes=True,
        approval="",
        question="",
        error="",
        effect="",
    )


def instant_result(call_id: str, outcome: Outcome, text: str) -> Result:
    """Return a result that no tool took time for."""
    return Result(call_id=call_id, outcome=outcome, text=text, began=0.0, seconds=0.0)


class Answer(TypedDict):
    """What a resume brought: the `answers` channel holds it for one super-step."""

    call: str
    """The id of the call that was asked about."""
    value: Any
    by: str
    """Who is authenticated; empty when nobody is."""
    roles: NotRequired[list[str]]
    """What they may do, as the server's authentication says."""
    at: str
    """The checkpoint of the pause: the same however often its answer is judged, another one on another branch."""
    wrong: NotRequired[str]
    """Why it cannot be taken, whatever it says: then the value is not kept. From release 0.3 on."""


class RunRecord(TypedDict):
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
    """A `StopReason`, once it has ended."""
    answer: str
    """The final answer; of a run that was stopped, the best so far."""
    error: str
    """What failed, for the stop reason `error`."""
    over_limit: NotRequired[str]
    """The limit that the final answer itself went over; the answer is kept."""
    limit: NotRequired[str]
    """Which limit ended the run, in words: whose it is, and how much."""
    labels: NotRequired[dict[str, str]]
    """What the run was started with: who it is for. Budgets are kept apart by them."""
    purpose: NotRequired[str]
    """What the next call of the model is for, a `Purpose`; left out, to decide. Set by the guard, read by `reason`."""
    added: NotRequired[Added]
    """What `Runs.extend` added to the limits."""
    extensions: NotRequired[int]
    """How often it did."""
    stop: NotRequired[str]
    """A stop reason that waits until the turn on the table is answered."""
    cancelled_by: NotRequired[str]
    requester: NotRequired[str]
    """For whom it runs, where that is known."""
    branch: NotRequired[str]
    """Names the branch of the thread that it is on, once one was asked for: a call there is another effect."""
    malformed: NotRequired[int]
    """Unusable replies in a row."""
    retries: NotRequired[int]
    """How often a final answer was sent back, since it has not the right form or a check found something wrong."""
    reflections: NotRequired[int]
    """How often the model has looked back at a final answer."""
    objections: NotRequired[list[Objection]]
    """What was wrong with final answers so far: one for each that went back to the model."""
    output: NotRequired[Any]
    """The final answer as plain data, where a form was asked for (`response_format`)."""
    failures: NotRequired[list[FailedAttempt]]
    """The newest attempts at a model that failed."""
    cooldowns: NotRequired[list[float]]
    """By the place of each model in the agent's list: until when it is asked last, in seconds since the epoch; 0 for
    one that never had to be left for another."""
    fits: NotRequired[int]
    """Tokens that may be sent at most, where a provider has refused more than that as too long."""
    parked: NotRequired[ParkedRecord]
    """While it waits for the rate of its model."""
    parkings: NotRequired[int]
    """Counts how often it did."""


class ParkedRecord(TypedDict):
    """That the next call of the model waits for its rate."""

    name: str
    """What the rate is kept for."""
    why: str
    until: float
    """Seconds since the epoch."""
    approval: str
    """The id under which the ledger knows when it goes on; empty until it is told."""
    left: list[int]
    """Which of the agent's models may still be asked in this step, by their places; the first one is asked then."""
    tried: int
    """How often that one was asked in this step before."""
    counted: int
    """The number of this step's newest attempt that the usage holds already."""
    is_over: bool
    """Whether the time has come."""


class FailedAttempt(TypedDict):
    """An attempt at a model that brought no reply."""

    step: int
    model: str
    error: str
    """An excerpt, without keys."""
    next: str
    """The model that was asked then; empty when none was."""
    wait: float
    """Seconds before that."""
    at: float
    """Seconds since the epoch."""


class Objection(TypedDict):
    """What was wrong with one final answer."""

    by: str
    """The check that says so; `response_format` for the form, `reflect` for the model itself; several with commas."""
    step: int
    """The step whose answer it is about."""
    text: str
    """An excerpt of it."""


class Added(TypedDict, total=False):
    """More than the limits say, in the units that the state counts in."""

    steps: int
    tool_calls: int
    tokens: int
    cost_nano: int
    seconds: float


class ThreadRecord(TypedDict):
    """The `thread` channel: what outlives a run."""

    version: int
    """Of this schema."""
    runs: int
    steps: int
    tool_calls: int
    tokens: int
    cost_nano: int
    seconds: NotRequired[float]
    """Active; from release 0.2 on."""
    by_tool: NotRequired[dict[str, int]]
    """Admitted calls, by tool; from release 0.2 on."""
    window: dict[str, Any]
    """The loop guard's memory (`loopwright.policy.Window`); begins empty with each task."""


class TrailEntry(TypedDict):
    """One small record a call: an item of the `trail` channel."""

    run: str
    step: int
    tool: str
    args: dict[str, Any]
    digest: str
    """Over tool and canonical arguments."""
    proposed: NotRequired[dict[str, Any]]
    thought: str
    verdict: str
    why: str
    by: str
    outcome: str
    observation: str
    """An excerpt."""
    loop: NotRequired[str]
    """Where the loop guard told the model that it goes round in circles: the kind of loop."""
    tries: NotRequired[list[str]]
    """How each try failed that was followed by another."""
    cost_nano: NotRequired[int]
    """What the call cost, for a tool with a price."""
    began: float
    seconds: float


class CompactionRecord(TypedDict):
    """What the model is no longer sent whole: an item of the `compactions` channel; the newest one holds.

    The transcript itself keeps everything. Places in it are ids of messages; empty: none.
    """

    run: str
    step: int
    """The step before which it was made, or whose call made it."""
    at: str
    """The newest message then."""
    shortened: str
    """Results up to here are sent short."""
    shares: dict[str, int]
    """Results behind it that are sent short too: how many characters of each."""
    until: str
    """Messages up to here are left out: all but system messages, and the user's first and newest one."""
    digest: str
    """Over the messages up to there: when one of them was taken away, or is another, this record is void."""
    covered: str
    """The summary tells of the messages up to here. Behind `until` never; before it where no summary could be made."""
    summary: str
    """Sent in the place of what is left out; not the user's word."""
    gap: str
    """Says what is left out behind `covered`, without a summary."""
    made: bool
    """Whether this compaction made the summary; else it is an earlier one, or empty."""
    tainted: bool
    """Whether text by strangers may have found its way into the summary."""
    scale: float
    """Tokens that the provider counted for one that was estimated."""
    left_out: int
    """How many messages are left out."""
    tokens: int
    """What is sent from then on, estimated."""
