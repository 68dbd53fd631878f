"""What an agent is made of: frozen, and checked when it was built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AnyMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.store.base import BaseStore

from loopwright.models import AnswerForm, Pricer, context_window, dearest, innermost, is_kept_an_hour, size_of
from loopwright.policy import AnswerRules, Bounds, Compaction, Loops, Rule, bounds_of
from loopwright.state import Budget, Call, Limits, Purpose, Rate, RunRecord, ThreadRecord, digest
from loopwright.tools import UNTRUSTED_NOTE, Caps, Contract, Retry, full_text

from .channels import OpenChannels
from .contexts import ContextShape, RestoreContext


@dataclass(frozen=True)
class Candidate:
    """A model that an agent can use, with all that goes with it."""

    model: BaseChatModel
    model_name: str
    bound: Runnable[Any, BaseMessage]
    reading: Runnable[Any, BaseMessage]
    price: Pricer | None


@dataclass(frozen=True)
class AgentSpec:
    """Everything that the nodes need to know of an agent."""

    name: str
    model: BaseChatModel
    model_name: str
    bound: Runnable[Any, BaseMessage]
    """The model with the tools' schemas."""
    reading: Runnable[Any, BaseMessage]
    """The same, with the built-in tool that reads on in a shortened result."""
    offered: tuple[BaseTool, ...]
    """The tools as they were given: what another model is bound to when it takes this one's place."""
    tools_tokens: int
    """Input tokens of the tools' schemas, estimated."""
    tools: Mapping[str, Contract]
    """By name; the built-in ones too."""
    rules: tuple[Rule, ...]
    limits: Limits
    loops: Loops
    system_prompt: str
    price: Pricer | None
    """None: the model has no known price, and costs are not counted."""
    store: BaseStore | None
    """What tools keep beyond a thread; None for nothing."""
    caps: Caps
    """How much of its results a turn shows the model."""
    budgets: tuple[Budget, ...] = ()
    """What its runs share with others."""
    rate: Rate | None = None
    """How often its model may be called; None: at will."""
    compaction: Compaction | None = None
    """How a transcript that outgrows the context window is compacted; None: every transcript is sent whole."""
    reading_tokens: int = 0
    """Input tokens of the built-in tool's schema, estimated; it is offered besides once there is a use for it."""
    wrap_up: bool = False
    """Whether a run that meets a limit may say in one last call what it found."""
    answers: AnswerRules = field(default_factory=AnswerRules)
    """What a final answer must stand before it counts."""
    form: AnswerForm | None = None
    """The form of the final answer; None: any text."""
    context: ContextShape | None = None
    """The type of what a caller gives a run besides its message; None for nothing."""
    fallbacks: tuple[Candidate, ...] = ()
    """The models that are asked where the first one cannot reply, in this order."""
    retry: Retry = field(default_factory=Retry)
    """How often each model is asked, where the same request can succeed a moment later."""
    model_timeout: float | None = None
    """Seconds that one attempt at a model may take; None: all that are left of `max_seconds`."""
    restore_context: RestoreContext | None = None
    """Brings back what of a context is not stored, where `Runs` has no hook of its own."""
    open_channels: OpenChannels = field(default_factory=OpenChannels)
    """The channels that a tool may write: the user's own."""

    @property
    def readable(self) -> tuple[str, ...]:
        """The channels of the state that a tool can read."""
        return (*_READABLE, *self.open_channels.names)

    def instructions_for(self, purpose: Purpose) -> str:
        """Return what the model is told before the transcript.

        The system prompt, what the marks on foreign text mean, and the form of the answer where one can be given.
        """
        has_strangers = any(contract.untrusted for contract in self.tools.values())
        form = self.form.instruction if self.form is not None and purpose == Purpose.DECIDE else ""
        return "\n\n".join(part for part in (self.system_prompt, UNTRUSTED_NOTE if has_strangers else "", form) if part)

    @property
    def checks_answers(self) -> bool:
        """Whether a final answer is judged before it ends a run."""
        return bool(self.answers.checks) or self.answers.reflect is not None or self.form is not None

    @property
    def window(self) -> int:
        """Tokens of the context window: as the user set it, else as listed; of several models, the smallest."""
        given = self.compaction.window if self.compaction is not None else None
        return given or min(map(context_window, [self.model, *(other.model for other in self.fallbacks)]))

    @cached_property
    def fixed_tokens(self) -> int:
        """Input tokens of what is sent beside any transcript, estimated: instructions and tools."""
        instructions = self.instructions_for(Purpose.DECIDE)
        prompt = size_of(SystemMessage(instructions)) if instructions else 0
        return prompt + self.tools_tokens + self.reading_tokens

    def worst_price(self, messages: Sequence[AnyMessage]) -> Pricer | None:
        """Return what a call costs in the worst case: with all of its input taken into the provider's cache."""
        if self.price is None:
            return None
        listed = (message.content for message in messages if isinstance(message.content, list))
        return self._dearest_for_an_hour if self._keeps_an_hour or is_kept_an_hour([*listed]) else self._dearest

    @cached_property
    def _keeps_an_hour(self) -> bool:
        extras = [getattr(tool, "extras", None) for tool in self.offered]
        return is_kept_an_hour([getattr(innermost(self.model), "model_kwargs", None), *extras])

    @cached_property
    def _dearest(self) -> Pricer | None:
        return dearest(self.price, for_an_hour=False) if self.price else None

    @cached_property
    def _dearest_for_an_hour(self) -> Pricer | None:
        return dearest(self.price, for_an_hour=True) if self.price else None

    def bounds(self, run: RunRecord, thread: ThreadRecord) -> Bounds:
        """Return what bounds a run here and now; its last words are left out until they are due."""
        keeps = self.wrap_up and run.get("purpose") != Purpose.WRAP_UP
        return bounds_of(self.limits, run, thread, keeps_last_words=keeps)

    @property
    def reports(self) -> bool:
        """Whether any tool can tell how far it is, so that it is worth listening."""
        return any(contract.reports for contract in self.tools.values())

    def serial_key(self, call: Call) -> str:
        """Name what a call must not run at once with; empty for nothing."""
        contract = self.tools.get(call["name"])
        return contract.serial_key(call["args"]) if contract is not None else ""

    @cached_property
    def by_model(self) -> tuple[AgentSpec, ...]:
        """The same agent with each of its models in the first place, in the order in which they are asked."""
        return (self, *(replace(self, **vars(candidate), fallbacks=()) for candidate in self.fallbacks))

    def bound_for(self, messages: Sequence[AnyMessage]) -> Runnable[Any, BaseMessage]:
        """Return the model with the tools that this transcript gives a use for."""
        was_shortened = any(message.type == "tool" and full_text(message) is not None for message in messages)
        return self.reading if was_shortened else self.bound

    @cached_property
    def binding(self) -> str:
        """A digest of the agent's name, tools and rules: who may decide about a run that its caller drives.

        A predicate is told by its name and the plain values in it, since it cannot be compared otherwise.
        """
        tools = {name: (tool.effect.value, tool.schema.model_json_schema()) for name, tool in self.tools.items()}
        return digest(self.name, tools, [_told(rule) for rule in self.rules])


_READABLE = ("messages", "run", "usage", "thread", "trail")


def _told(rule: Rule) -> list[object]:
    return [_told_by_name(value) if callable(value) else value for value in map(rule.__getattribute__, _FIELDS)]


_FIELDS = tuple(field.name for field in fields(Rule))


def _told_by_name(function: object) -> list[object]:
    code = getattr(function, "__code__", None)
    values = [value for value in code.co_consts if isinstance(value, _PLAIN)] if code is not None else []
    return [getattr(function, "__qualname__", type(function).__qualname__), values]


_PLAIN = (str, bytes, int, float, bool)
