"""What a person can say: decisions about calls, and outcomes of effects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from loopwright.errors import InvalidDecision


@dataclass(frozen=True, slots=True)
class PersonDecision:
    """A person's decision about one question; build it with `approve`, `edit`, `reject` or `respond`.

    Raises:
        InvalidDecision: If a part of it has the wrong type.
    """

    type: Literal["approve", "edit", "reject", "respond"]
    message: str = ""
    """The reason of a rejection; the text of a response."""
    tool: str = ""
    """For an edit: the tool to call instead; empty for the proposed one."""
    args: Mapping[str, Any] | None = None
    """For an edit: the arguments, whole."""
    changes: Mapping[str, Any] | None = None
    """For an edit: what is laid over the proposed arguments."""

    def __post_init__(self) -> None:
        """Refuse what could not be carried out, before anybody waits for it."""
        _check_text(self.type, "its message", self.message)
        _check_text(self.type, "the tool", self.tool)
        _check_args(self.type, self.args)
        _check_args(self.type, self.changes)


def _check_text(kind: str, part: str, given: object) -> None:
    if not isinstance(given, str):
        raise InvalidDecision(f"{kind}: {part} is {given!r}; give a text")


def _check_args(kind: str, given: object) -> None:
    named = isinstance(given, Mapping) and all(isinstance(name, str) for name in cast("Mapping[object, object]", given))
    if given is not None and not named:
        raise InvalidDecision(f"{kind}: the arguments are {given!r}; give them by name, as edit({{'amount': 5}})")


def approve() -> PersonDecision:
    """The call runs as it was shown."""
    return PersonDecision("approve")


def edit(args: Mapping[str, Any] | None = None, /, *, tool: str = "", **changes: Any) -> PersonDecision:
    """The call runs with other arguments.

    Args:
        args: Replaces the proposed arguments whole.
        tool: Names another tool to call instead.
        **changes: Laid over the proposed arguments (or over `args`).

    Raises:
        InvalidDecision: If nothing is changed, an argument is given twice, or a part has the wrong type.
    """
    if args is None and tool == "" and not changes:
        raise InvalidDecision(
            "edit: nothing is changed; give what is, as edit(amount=5), or approve() the call as it is"
        )
    if isinstance(args, Mapping) and (twice := [name for name in changes if name in args]):
        text = f"edit: {', '.join(twice)} is given twice, in the arguments and by name; give one value"
        raise InvalidDecision(text)
    return PersonDecision("edit", tool=tool, args=args, changes=changes or None)


def reject(reason: str = "") -> PersonDecision:
    """The call never runs; the model reads the reason.

    Asked whether an effect happened: it did not, and it shall not run.
    """
    return PersonDecision("reject", message=reason)


def respond(text: str) -> PersonDecision:
    """The text answers the model in the tool's place; the tool does not run.

    Asked whether an effect happened: it did, and the text is its result.

    Raises:
        InvalidDecision: If the text is empty, or none.
    """
    if text == "":
        raise InvalidDecision("respond: the text is empty; it answers in the tool's place, so say something")
    return PersonDecision("respond", message=text)


@dataclass(frozen=True, slots=True)
class Happened:
    """An effect happened."""

    result: Any
    """What the tool would have returned."""


@dataclass(frozen=True, slots=True)
class NotHappened:
    """An effect did not happen."""


def happened(result: Any = "done") -> Happened:
    """Say that an effect happened, with what the tool would have returned."""
    return Happened(result)


def not_happened() -> NotHappened:
    """Say that an effect did not happen: its call is screened and asked anew."""
    return NotHappened()


CANCEL = "cancel"
"""The decision that a cancellation, or a newer task, writes on an open question."""
EXPIRE = "expire"
"""The decision that the passing of its time writes on an open question."""
NOT_HAPPENED = "not_happened"
"""What `Runs.resolve` writes on a question about an outcome: screen the call anew."""
