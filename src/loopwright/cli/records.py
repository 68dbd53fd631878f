"""The log's records, in words: who decided what, and what was done. `--json` has each whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from loopwright.checkpoints import LogRecord
from loopwright.state import EXPIRE, NANO, canonical

from .finding import SHORTEST
from .questions import asked
from .screen import Screen
from .text import ELLIPSIS, hanging, when

_ADDED = ("steps", "tool_calls", "tokens", "seconds")
_LONGEST = 200
"""Characters of an argument that a record shows at most."""


def show_records(records: Sequence[LogRecord], screen: Screen, *, indent: str = "", has_runs: bool = False) -> None:
    """Write records below each other; with `has_runs` each names its run."""
    for record in records:
        head = f"{indent}{record.number:>5}  {when(record.at)}  {record.event:<9}  "
        run = f"run {record.run_id[:SHORTEST]}  " if has_runs else ""
        for line in hanging(head, run + told(record), screen.page):
            screen.line(line)


def told(record: LogRecord) -> str:
    """Say what a record holds."""
    data = record.data
    match record.event:
        case "began":
            return str(data["task"])
        case "asked":
            return f"{data['tool']}: {asked(data['question'])} {_arguments(data['args'])}".rstrip()
        case "voted":
            return f"{data['tool']}: approved by {_people(data)}; {_arguments(data['args'])}".rstrip("; ")
        case "decided":
            return _decided(data)
        case "ended":
            return f"{data['status']} ({data['reason']})"
        case "cancelled" | "extended":
            return f"by {data['by']}{_added(data)}"
        case "claimed" | "settled" | "unknown" | "resolved" | "late":
            status, by = data.get("status", ""), data.get("by", "")
            return f"{data['tool']}: {status or 'effect'} {data['effect'][:SHORTEST]}{f' by {by}' if by else ''}"
        case _:
            return canonical(data) if data else ""


def _decided(data: Mapping[str, Any]) -> str:
    """Say who decided what, in which words, and about which arguments; of an edit, what they became."""
    decision = data["decision"]
    who = "nobody in time" if decision["type"] == EXPIRE else _people(data)
    words = f": “{decision['message']}”" if decision.get("message") else ""
    asked_about = _arguments(data["args"])
    if decision["type"] == "edit":
        other = f"{decision['tool']} with " if decision.get("tool") else ""
        asked_about = f"now {other}{_arguments(decision['args'])}; asked was {asked_about}"
    return f"{data['tool']}: {decision['type']} by {who}{words}; {asked_about}".rstrip("; ")


def _people(data: Mapping[str, Any]) -> str:
    roles = data.get("roles")
    return f"{data['by']} ({', '.join(roles)})" if roles else str(data["by"])


def _arguments(args: Mapping[str, object]) -> str:
    return ", ".join(f"{name}={_short(repr(value))}" for name, value in args.items())


def _short(written: str) -> str:
    return written if len(written) <= _LONGEST else written[:_LONGEST] + ELLIPSIS


def _added(data: Mapping[str, Any]) -> str:
    """Say how much more a run was given; nothing where it was given nothing."""
    counts = [f"{data[name]:g} {name.replace('_', ' ')}" for name in _ADDED if data.get(name)]
    cost = Decimal(data.get("cost_nano") or 0) / NANO
    amounts = ", ".join([*counts, f"${cost:f}"] if cost else counts)
    return f": {amounts} more" if amounts else ""
