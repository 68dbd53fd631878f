"""Final answers: which checks they must pass, how often the model may try again, whether it looks back. Pure."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

from langchain_core.messages import AnyMessage

from loopwright.errors import ConfigurationError
from loopwright.state import RunRecord, ThreadRecord, TrailEntry, is_span

MOST_RETRIES = 10
"""More than that is a loop by another name; what was wrong each time is kept in the run's record."""
FORM = "response_format"
"""Who objects where an answer has not the form that was asked for."""
REFLECTION = "reflect"
"""Who objects where the model itself found something missing."""


@dataclass(frozen=True, slots=True)
class ProposedAnswer:
    """What a check sees of a final answer: a copy of its own, so that whatever it does to it changes nothing."""

    text: str
    output: Any
    """The typed value, where `response_format` asks for one; else None. `Any`: each agent has its own type."""
    task: str
    """The user's message, whole."""
    run: RunRecord
    thread: ThreadRecord
    trail: Sequence[TrailEntry]
    """One entry for each call of the thread."""
    messages: Sequence[AnyMessage]
    """The transcript; the answer is its last message."""


Judgement = bool | str | None
"""None or True: nothing is wrong. A text says what is wrong, False only that something is."""
Check = Callable[[ProposedAnswer], Judgement | Awaitable[Judgement]]


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """One check of final answers, as `create_agent(verify=…)` took it."""

    name: str
    """Of the function: how objections name it."""
    function: Check
    is_async: bool


@dataclass(frozen=True, slots=True)
class Reflect:
    """Lets the model look back at a final answer that passed all checks: did it work, what is missing?

    It has no tools then, and is heard at most `times` a run: what it finds missing goes back to it as work to do.

    Raises:
        ConfigurationError: If a part of it has the wrong type.
    """

    times: int = 1
    """How often in a run."""
    instruction: str = ""
    """What it is asked, in place of the usual question; how it is to reply is added."""

    def __post_init__(self) -> None:
        """Refuse what would ask for ever, or nothing."""
        if not is_count(self.times) or self.times == 0:
            text = f"Reflect: times is {self.times!r}; give a whole number from 1 to {MOST_RETRIES}"
            raise ConfigurationError(text, option="reflect")
        instruction = cast("object", self.instruction)
        if not isinstance(instruction, str):
            raise ConfigurationError(f"Reflect: instruction is {instruction!r}; give a text", option="reflect")


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """What a final answer must stand before it counts."""

    checks: tuple[AnswerCheck, ...] = ()
    retries: int = 2
    """How often an answer is sent back before the run ends `unverified`."""
    seconds: float = 30.0
    """For each check."""
    reflect: Reflect | None = field(default=None)


def build_answer_rules(verify: object, retries: object, seconds: object, reflect: object) -> AnswerRules:
    """Return the rules of an agent.

    Raises:
        ConfigurationError: Naming the option that is set up wrongly.
    """
    if not is_count(retries):
        text = f"answer_retries is {retries!r}; give a whole number from 0 to {MOST_RETRIES}"
        raise ConfigurationError(text, option="answer_retries")
    if not is_span(seconds):
        text = f"verify_seconds is {seconds!r}; give seconds above 0, as a number"
        raise ConfigurationError(text, option="verify_seconds")
    if reflect is not None and not isinstance(reflect, Reflect):
        raise ConfigurationError(f"reflect is {reflect!r}; give Reflect(times=1), or None", option="reflect")
    checks = tuple(_check(one) for one in _several(verify))
    return AnswerRules(checks, cast("int", retries), cast("float", seconds), reflect)


def is_count(value: object) -> bool:
    """Tell whether a value is a number of retries that ends."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_RETRIES


def _several(verify: object) -> list[object]:
    if verify is None or callable(verify):
        return [] if verify is None else [verify]
    if not isinstance(verify, Iterable) or isinstance(verify, str | bytes | Mapping):
        text = f"verify is {verify!r}; give a function such as verify=check_sources, or a list of them"
        raise ConfigurationError(text, option="verify")
    return [*cast("Iterable[object]", verify)]


def _check(function: object) -> AnswerCheck:
    """Return a check; one that could not be called is refused now, and not at the end of somebody's run."""
    if not callable(function) or isinstance(function, type):
        text = f"verify holds {function!r}; give functions that are called with the proposed answer"
        raise ConfigurationError(text, option="verify")
    name = _name(function)
    called = getattr(function, "__call__", None)  # noqa: B004 -- an object's own, which may be async
    if any(inspect.isgeneratorfunction(one) or inspect.isasyncgenfunction(one) for one in (function, called)):
        text = f"verify: {name} is a generator, whose body would never run; give a function that returns its finding"
        raise ConfigurationError(text, option="verify")
    try:
        inspect.signature(function).bind(None)
    except TypeError as error:
        text = f"verify: {name} cannot be called as {name}(answer), with one argument: {error}"
        raise ConfigurationError(text, option="verify") from error
    except ValueError:  # something built in, which does not say what it takes
        pass
    is_async = any(inspect.iscoroutinefunction(one) for one in (function, called))
    return AnswerCheck(name, cast("Check", function), is_async)


def _name(function: object) -> str:
    while isinstance(function, partial):
        function = cast("object", function.func)
    return str(getattr(function, "__name__", type(function).__name__))


def objection_of(returned: object) -> str:
    """Say what is wrong with an answer by what its check returned; empty: nothing is.

    Whatever is neither None nor True is an objection: a check that was written wrongly lets nothing pass.
    """
    if returned is None or returned is True:
        return ""
    if returned is False:
        return "it says no"
    if isinstance(returned, str) and returned.strip():
        return returned.strip()
    what = "an empty text" if isinstance(returned, str) else f"a {type(returned).__name__}"
    return f"it returned {what}, which is neither None, True, False nor a text that says what is wrong"


def reflection_of(said: str) -> str:
    """Return what the model found missing, in its own words; empty where all that it says is that the work is done."""
    words = said.strip()
    return "" if words.strip(" .!*_`\"'\n").casefold() == "done" else words
