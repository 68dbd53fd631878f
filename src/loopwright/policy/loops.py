"""What counts as a loop, and what comes of it: the loop guard's options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, cast

from loopwright.errors import ConfigurationError, UnknownTool

LEAST = 2
"""What happened once is no loop yet."""


@dataclass(frozen=True, slots=True)
class Loops:
    """When the model is told that it goes round in circles, and what happens when it goes on.

    The ladder: at the count, the model is told in the result of the call. The same call again is not run. Asked for
    once more, the run ends with `loop`, or a person is asked. As soon as the run learns something new, it begins anew.

    `None` switches a kind off; the bounds of `Limits` stay. A new task begins at zero; no pause, crash or resume does.

    Raises:
        ConfigurationError: If a count is no whole number of at least 2, or `then` and `allow` hold something else.
    """

    repeats: int | None = 3
    """The same call brought the same result so many times in a row."""
    rounds: int | None = 2
    """The same two, three or four turns came so many times in a row, with the same results."""
    failures: int | None = 4
    """A tool failed the same way so many times in a row, with whatever arguments; forbidden at twice as many."""
    no_news: int | None = 8
    """So many turns in a row only made calls that had been made before, and that brought what they brought before."""
    then: Literal["stop", "ask"] = "stop"
    """At the end of the ladder: end the run, or ask a person. Where nobody can be asked, it ends."""
    allow: Mapping[str, int] = field(default_factory=dict[str, int])
    """By tool: that many times before anything is said, where a count above is lower. For polling."""

    def __post_init__(self) -> None:
        """Refuse what could not be counted."""
        for name in ("repeats", "rounds", "failures", "no_news"):
            count = getattr(self, name)
            if count is not None:
                _check_count(name, count, "None, which switches it off")
        if self.then not in ("stop", "ask"):
            raise ConfigurationError(f"then is {self.then!r}; give 'stop' or 'ask'", option="then")
        if not isinstance(cast("object", self.allow), Mapping):
            text = f"allow is {self.allow!r}; give a number for each tool, such as allow={{'job_status': 20}}"
            raise ConfigurationError(text, option="allow")
        for tool, count in self.allow.items():
            _check_count(f"allow[{tool!r}]", count, "leave the tool out")

    def count_for(self, count: int | None, tools: Iterable[str]) -> int | None:
        """Return a count of this object as it holds for these tools together; None when it is switched off."""
        return None if count is None else max([count, *(self.allow.get(tool, 0) for tool in tools)])


def _check_count(name: str, count: object, else_: str) -> None:
    if not isinstance(count, int) or isinstance(count, bool) or count < LEAST:
        text = f"{name} is {count!r}; give a whole number from {LEAST} on, or {else_}"
        raise ConfigurationError(text, option=name)


def check_loops(loops: object, tools: Iterable[str]) -> Loops:
    """Refuse what is no `Loops`, and an allowance that no tool would ever have.

    Raises:
        UnknownTool: If it names a tool that the agent does not have.
        ConfigurationError: If it is something else.
    """
    if not isinstance(loops, Loops):
        text = f"loops is {loops!r}; give Loops(…); Loops(repeats=None, …) switches a kind off"
        raise ConfigurationError(text, option="loops")
    names = [*tools]
    for name in loops.allow:
        if name not in names:
            known = ", ".join(names) or "none"
            text = f"Loops(allow=…) names {name!r}, which is no tool of this agent; its tools are: {known}"
            raise UnknownTool(text, target=name)
    return loops
