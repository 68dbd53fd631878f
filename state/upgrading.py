"""States that another release wrote, brought up to what this one reads. Pure functions.

They are applied where a channel is loaded (`agent_state.py`), and so hold for every saver, node and reader. A missing
field gets its default, a counter that came as a float becomes a whole number again, and what is not known here is
carried along. Never made up is what tells one run, call or result from another: without it a state is refused. Steps
name the places of calls; where their count is missing, the transcript has it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from loopwright.errors import StorageCorrupt, VersionUnsupported

from .records import Call, Question, ThreadRecord, Verdict, new_call
from .status import RunStatus, StopReason
from .usage import no_usage

if TYPE_CHECKING:
    from .agent_state import AgentState

SCHEMA_VERSION = 1
"""Of the state; `thread["version"]` says which one wrote it."""

Fields = Mapping[str, Any]


def new_thread() -> ThreadRecord:
    """Return the totals of a thread that begins."""
    return ThreadRecord(version=SCHEMA_VERSION, runs=0, steps=0, tool_calls=0, tokens=0, cost_nano=0, window={})


_RUN: Fields = {"task_id": "", "task": "", "began": 0.0, "status": "", "reason": "", "answer": "", "error": ""}
_THREAD: Fields = {**new_thread(), "version": 0}
_UNCOUNTED = -1
_USAGE: Fields = {**no_usage(), "steps": _UNCOUNTED}
_CALL: Fields = {name: value for name, value in new_call("", "", {}).items() if name not in ("id", "name", "args")}
_RESULT: Fields = {"began": 0.0, "seconds": 0.0}
_ANSWER: Fields = {"by": "", "at": ""}


def upgrade(channel: str, value: Any) -> Any:
    """Return a channel's stored value as this release reads it; the very same object where nothing is to be done.

    Raises:
        VersionUnsupported: If a newer release wrote it.
        StorageCorrupt: If it lacks what cannot be made up.
    """
    change = _UPGRADES.get(channel)
    return value if change is None else change(value)


def default_of(channel: str) -> Any:
    """Return what a channel holds that a stored state lacks; None where that cannot be made up, or need not be."""
    made = _DEFAULTS.get(channel)
    return made() if made else None


def count_steps(state: AgentState) -> AgentState:
    """Return the state with its steps counted, where the stored one had no count: replies, and what the trail knows."""
    values = cast("Fields", state)
    if values.get("usage", {}).get("steps") != _UNCOUNTED or "run" not in values:
        return state
    usage, run = state["usage"], state["run"]
    messages, trail = state.get("messages") or [], state.get("trail") or []
    tasks = [place for place, message in enumerate(messages) if message.id == run["task_id"]]
    replies = sum(message.type == "ai" for message in messages[tasks[-1] if tasks else 0 :])
    steps = max([replies, *(entry["step"] for entry in trail if entry["run"] == run["id"])])
    return {**state, "usage": {**usage, "steps": steps}}


def upgrade_call(value: Any) -> Call:
    """Return a call on the table as this release reads it; one that is asked about has a kind of question."""
    call = _filled("a call", value, _CALL, "id", "name", "args")
    if call["verdict"] == Verdict.ASK and not call["question"]:
        call = {**call, "question": Question.OUTCOME.value if call["effect"] else Question.APPROVAL.value}
    return cast("Call", call)


def _upgrade_run(value: Any) -> Fields:
    run = _filled("a run", value, _RUN, "id")
    if run["status"]:
        return run
    ended = run["reason"]
    return {**run, "status": StopReason(ended).status.value if ended else RunStatus.RUNNING.value}


def _upgrade_usage(value: Any) -> Fields:
    usage = _filled("usage", value, _USAGE)
    by_tool: Mapping[str, Any] = usage["by_tool"]
    if any(type(count) is not int for count in by_tool.values()):
        return {**usage, "by_tool": {name: _whole("usage", name, count) for name, count in by_tool.items()}}
    return usage


def _upgrade_thread(value: Any) -> Fields:
    thread = _filled("a thread", value, _THREAD)
    if thread["version"] > SCHEMA_VERSION:
        text = f"this thread was written by a newer loopwright (state version {thread['version']}, this one knows "
        text += f"{SCHEMA_VERSION}); upgrade loopwright, nothing was changed"
        raise VersionUnsupported(text, found=thread["version"], known=SCHEMA_VERSION)
    return thread if thread["version"] == SCHEMA_VERSION else {**thread, "version": SCHEMA_VERSION}


def _each(change: Callable[[Any], Any]) -> Callable[[Any], list[Any]]:
    return lambda values: [change(value) for value in values]


_UPGRADES: Mapping[str, Callable[[Any], Any]] = {
    "run": _upgrade_run,
    "usage": _upgrade_usage,
    "thread": _upgrade_thread,
    "turn": _each(upgrade_call),
    "results": _each(lambda value: _filled("a result", value, _RESULT, "call_id", "outcome", "text")),
    "answers": _each(lambda value: _filled("an answer", value, _ANSWER, "call", "value")),
}
_DEFAULTS: Mapping[str, Callable[[], Any]] = {
    "usage": lambda: {**_USAGE, "by_tool": {}},
    "thread": new_thread,
    "turn": list,
}


def _filled(what: str, value: Any, defaults: Fields, *needed: str) -> Fields:
    """Return a record with every field that it must have, each of the right kind."""
    if not isinstance(value, Mapping):
        raise StorageCorrupt(f"a stored state holds {value!r} for {what}; restore the database from a backup")
    record = cast("Fields", value)
    for name in needed:
        if name not in record:
            text = f"a stored state holds {what} without its {name!r}, which nothing can replace; "
            raise StorageCorrupt(text + "restore the database from a backup", field=name)
    missing = {name: default for name, default in defaults.items() if record.get(name) is None}
    counts = {
        name: _whole(what, name, record[name])
        for name, default in defaults.items()
        if type(default) is int and name not in missing and type(record[name]) is not int
    }
    return {**record, **missing, **counts} if missing or counts else record


def _whole(what: str, name: str, number: Any) -> int:
    """Return a counter as the whole number that it is; a fraction counts as begun."""
    if isinstance(number, int | float) and math.isfinite(number):
        return math.ceil(number)
    raise StorageCorrupt(f"a stored state counts {number!r} as {name!r} of {what}; restore the database from a backup")
