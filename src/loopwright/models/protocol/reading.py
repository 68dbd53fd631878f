"""What a text of the JSON protocol decides; a call is read, never guessed. Pure functions.

The rules:
* What stands in `<think>…</think>` is a thought, whatever it holds; so is all before a `</think>` that nothing began,
  since many templates begin the thought themselves.
* Around the decision there may be anything: fences, prose, other objects. A decision is an object whose `type` is
  `"tool"` or `"final"`, and that lies in no other object.
* The same decision several times is one. Two that differ are none: nobody knows which is meant.
* An object that breaks off, or holds a name twice, makes the whole text unreadable, wherever it stands.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from loopwright.models.strict import refuse_constant
from loopwright.state import canonical, is_too_deep


@dataclass(frozen=True, slots=True)
class ToolUse:
    """The model wants a tool run."""

    tool: str
    input: dict[str, Any]
    thought: str = ""
    unread: str = ""
    """What stood for the input, where it is no object."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The model is done."""

    text: str


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The text holds no decision, or more than one."""

    why: str


ReadDecision = ToolUse | Answer | Unreadable

_THOUGHT = re.compile(r"(?:<think>|\A(?=(?:(?!<think>).)*</think>))(.*?)(?:</think>|\Z)", re.DOTALL)
_BEGINS = re.compile(r'\{\s*(?:"|\}|\Z)')
"""How an object begins; a brace in prose does not go on like this."""
_FENCE = re.compile(r"```\w*")


def read_decision(text: str) -> ReadDecision:
    """Return the one decision in a text.

    >>> read_decision('Sure: {"type": "final", "answer": "It is 4."}')
    Answer(text='It is 4.')
    """
    spoken = _THOUGHT.sub(" ", text)
    try:
        found = [*_objects(spoken)]
    except (ValueError, RecursionError):
        return Unreadable("it holds an object that breaks off, is nested too deep, or is no JSON")
    decisions = {canonical(value): value for value, _ in found if value.get("type") in ("tool", "final")}
    if not decisions:
        return Unreadable('it holds no object with "type": "tool" or "type": "final"')
    if len(decisions) > 1:
        return Unreadable(f"it holds {len(decisions)} decisions that differ, and only one can be meant")
    [value] = decisions.values()
    return _answer(value) if value["type"] == "final" else _tool_use(value, _beside(text, spoken, found))


def read_object(text: str) -> dict[str, Any]:
    """Return the one object in a text that is to be nothing else: thoughts, fences and prose around it do not count.

    Raises:
        ValueError: Saying, for the model, why there is none that is surely meant.
    """
    spoken = _THOUGHT.sub(" ", text)
    try:
        found = [*_objects(spoken)]
    except (ValueError, RecursionError):
        raise ValueError("it holds an object that breaks off, is nested too deep, or is no JSON") from None
    if any(spoken[:start].rstrip().endswith("[") for _, (start, _) in found):
        raise ValueError("it holds a list, and one JSON object is wanted")
    different = {canonical(value): value for value, _ in found}
    if len(different) != 1:
        number = len(different) or "no"
        raise ValueError(f"it holds {number} JSON objects that could be meant, and exactly one is wanted")
    return next(iter(different.values()))


def _objects(text: str) -> Iterator[tuple[dict[str, Any], tuple[int, int]]]:
    """Yield the outermost objects, each with its place.

    Raises:
        ValueError: If one breaks off, or cannot be read or stored.
    """
    decoder = json.JSONDecoder(strict=False, parse_constant=refuse_constant, object_pairs_hook=_once)
    place = 0
    while (start := text.find("{", place)) >= 0:
        if not _BEGINS.match(text, start):
            place = start + 1
            continue
        value, place = decoder.raw_decode(text, start)
        if is_too_deep(value):
            raise ValueError("nested too deep")
        yield value, (start, place)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that says something twice: readers differ in which one they take."""
    whole = dict(pairs)
    if len(whole) < len(pairs):
        raise ValueError("a name stands twice")
    return whole


def _tool_use(value: dict[str, Any], beside: str) -> ReadDecision:
    tool, given = value.get("tool"), value.get("input")
    if not isinstance(tool, str) or not tool.strip():
        return Unreadable('the decision of type "tool" names no tool')
    thought = value.get("thought")
    said = thought.strip() if isinstance(thought, str) else ""
    if given is not None and not isinstance(given, dict):
        return ToolUse(tool.strip(), {}, said or beside, unread=json.dumps(given, ensure_ascii=False))
    return ToolUse(tool.strip(), value.get("input") or {}, said or beside)


def _answer(value: dict[str, Any]) -> ReadDecision:
    given = value.get("answer")
    if given is None:
        return Unreadable('the decision of type "final" has no answer')
    return Answer(given if isinstance(given, str) else json.dumps(given, ensure_ascii=False))


def _beside(text: str, spoken: str, found: list[tuple[dict[str, Any], tuple[int, int]]]) -> str:
    """Return what was said around the objects, or thought aloud: it stands in for a thought that is missing."""
    rest = spoken
    for _, (start, end) in reversed(found):
        rest = rest[:start] + " " + rest[end:]
    thought = " ".join(part.strip() for part in _THOUGHT.findall(text))
    return f"{thought} {_FENCE.sub(' ', rest)}".strip()
