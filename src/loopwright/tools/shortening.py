"""How much of its results a turn may show the model. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.messages import ToolMessage

from loopwright.errors import ConfigurationError
from loopwright.state import digest

READ_RESULT = "read_result"
"""The built-in tool that reads on in a shortened result."""
ROOM_FOR_NOTICE = 160
"""Characters that a shortened result keeps free to say so."""
MIN_CAP = 1000
FULL_TEXT = "full_text"
"""The `type` of a shortened result's artifact: `{"type": "full_text", "text": …, "artifact": the tool's own}`."""


@dataclass(frozen=True, slots=True)
class Caps:
    """How many characters the model is shown of one result, and of all results of one turn together."""

    result: int = 20_000
    turn: int = 100_000

    def __post_init__(self) -> None:
        """Refuse what shows nothing.

        Raises:
            ConfigurationError: If a cap is no whole number, or too small for a result and its notice.
        """
        _check_cap("max_result_characters", self.result)
        _check_cap("max_turn_characters", self.turn)


def _check_cap(option: str, cap: object) -> None:
    if not isinstance(cap, int) or isinstance(cap, bool) or cap < MIN_CAP:
        text = f"{option} is {cap!r}; give a whole number of characters, at least {MIN_CAP}"
        raise ConfigurationError(text, option=option)


@dataclass(frozen=True, slots=True)
class Shown:
    """What the model is shown of a result."""

    text: str
    notice: str = ""
    """Says how much was left out, and how to read on; empty where nothing was."""


def shares(lengths: Sequence[int], caps: Caps) -> list[int]:
    """Return how many characters each result of a turn may take.

    What is short stays whole; the long ones share the rest of the turn's room evenly.
    """
    wanted = [min(length, caps.result) for length in lengths]
    room, left = caps.turn, len(wanted)
    given = [0] * len(wanted)
    for place in sorted(range(len(wanted)), key=wanted.__getitem__):
        given[place] = min(wanted[place], room // left)
        room, left = room - given[place], left - 1
    return given


def show(text: str, share: int, reader_id: str) -> Shown:
    """Return what fits into a share; with its notice it is no longer than that, if the share has room for one."""
    if len(text) <= share:
        return Shown(text)
    kept = max(0, share - ROOM_FOR_NOTICE)
    left = len(text) - kept
    way = f"{READ_RESULT}(id='{reader_id}', offset={kept}) reads on"
    return Shown(text[:kept], f"\n… shortened: {left} of {len(text)} characters were left out; {way}")


def reader_id(message_id: str) -> str:
    """Name a shortened result, as the model repeats it: the same when the turn is told again."""
    return digest("result", message_id)[:10]


def full_text(message: object) -> str | None:
    """Return the whole text of a shortened result; None for any other message."""
    artifact: object = message.artifact if isinstance(message, ToolMessage) else None
    if not isinstance(artifact, dict):
        return None
    kept = cast("Mapping[str, Any]", artifact)
    return str(kept["text"]) if kept.get("type") == FULL_TEXT and "text" in kept else None
