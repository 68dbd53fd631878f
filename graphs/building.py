"""Checks everything that an agent is made of, before any step runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from langchain_core.tools import BaseTool
from langgraph.store.base import BaseStore

from loopwright.checkpoints import Checkpoints
from loopwright.errors import ConfigurationError, DuplicateTool, UnknownTool
from loopwright.models import AnswerForm, Price, build_form, check_form, estimate_tools
from loopwright.nodes import AgentSpec, Candidate, ContextShape, RestoreContext, open_channels
from loopwright.policy import (
    AnswerRules,
    Loops,
    Parameters,
    Rule,
    check_compaction,
    check_conditions,
    check_loops,
    check_rules,
)
from loopwright.state import Budget, Limits, Rate, storable
from loopwright.tools import READ_RESULT, Caps, Contract, Tool, build_reader, contract_of

from .candidates import ModelOption, build_candidates, check_priced, check_retry, check_timeout

LEAST_TO_WRAP_UP = 2
"""Steps: one to find something out, and one to say it."""


def build_spec(
    *,
    model: object,
    tools: Sequence[BaseTool],
    system_prompt: str,
    limits: Limits,
    loops: Loops,
    permissions: Sequence[Rule],
    price: object,
    retry: object,
    model_timeout: object,
    budgets: Sequence[Budget],
    rate: Rate | None,
    wrap_up: bool,
    compaction: object,
    name: str,
    unknown: Mapping[str, Any],
    store: BaseStore | None,
    context_schema: type[Any] | None,
    restore_context: object,
    state_schema: object,
    caps: Caps,
    answers: AnswerRules,
    response_format: object,
) -> AgentSpec:
    """Return the frozen specification.

    Raises:
        ConfigurationError: If anything in it is set up wrongly.
    """
    _refuse_unknown(unknown)
    _check_text("system_prompt", system_prompt)
    _check_text("name", name)
    _check_name(name)
    _check_wrap_up(wrap_up, limits)
    _check_rate(rate)
    tries, seconds = check_retry(retry), check_timeout(model_timeout)
    offered = [_tool(item) for item in _listed("tools", tools, "tools, such as tools=[lookup_order]")]
    rules = _listed("permissions", permissions, "rules, such as permissions=[ask('effect:write')]")
    contracts = _contracts(offered)
    _check_fallbacks(contracts)
    _check_store(store)
    reader = _reader(contracts, caps)
    _check_limits(limits, contracts)
    shared = _budgets(budgets)
    first, *others = build_candidates(model, offered, reader, price, limits, shared)
    spec = AgentSpec(
        name=name,
        **vars(first),
        fallbacks=tuple(others),
        retry=tries,
        model_timeout=seconds,
        offered=tuple(offered),
        tools_tokens=estimate_tools(offered),
        tools={**contracts, reader.name: reader.contract},
        rules=_rules(rules, contracts),
        limits=limits,
        loops=check_loops(loops, contracts),
        system_prompt=system_prompt,
        budgets=shared,
        rate=rate,
        wrap_up=wrap_up,
        store=store,
        caps=caps,
        context=None if context_schema is None else ContextShape(context_schema),
        restore_context=_restore_context(restore_context, context_schema),
        open_channels=open_channels(state_schema),
        answers=answers,
        form=_form(response_format, (first, *others)),
        compaction=check_compaction(compaction),
        reading_tokens=estimate_tools([reader]),
    )
    return _check_window(_check_channels(spec))


def _check_channels(spec: AgentSpec) -> AgentSpec:
    """Refuse a tool that wants a channel which there is not: each call of it would fail."""
    for contract in spec.tools.values():
        for channel in contract.channels:
            if channel not in spec.readable:
                text = f"tool {contract.name!r} wants the state channel {channel!r}, which there is not; there are: "
                text += f"{', '.join(spec.readable)}. Channels of your own are declared by state_schema="
                raise ConfigurationError(text, tool=contract.name, option="state_schema")
    return spec


def _restore_context(hook: object, schema: type[Any] | None) -> RestoreContext | None:
    if hook is None:
        return None
    if not callable(hook):
        text = f"restore_context is {hook!r}; give a function that is called as restore_context(stored, run)"
        raise ConfigurationError(text, option="restore_context")
    if schema is None:
        text = "restore_context brings contexts back, and the agent has no type for one; give context_schema= too"
        raise ConfigurationError(text, option="restore_context")
    return cast("RestoreContext", hook)


def _check_window(spec: AgentSpec) -> AgentSpec:
    """Refuse instructions and tools that leave no room for a transcript."""
    if spec.compaction is not None and spec.fixed_tokens >= (most := spec.compaction.most(spec.window)):
        text = f"system_prompt and tools take about {spec.fixed_tokens:,} tokens, and into a context window of "
        text += f"{spec.window:,} go {most:,} beside the reply; shorten them, or set compaction=Compaction(window=…)"
        raise ConfigurationError(text, option="compaction")
    return spec


def _form(response_format: object, models: Sequence[Candidate]) -> AnswerForm | None:
    form = build_form(response_format, models[0].model)
    for one in models[1:]:
        check_form(form, one.model)
    return form


def _rules(given: Sequence[object], contracts: Mapping[str, Contract]) -> tuple[Rule, ...]:
    rules = check_rules(given, contracts)
    check_conditions(rules, {name: _parameters(contract) for name, contract in contracts.items()})
    return rules


def _parameters(contract: Contract) -> Parameters:
    is_open = contract.schema.model_config.get("extra") == "allow"
    return Parameters(contract.effect.value, tuple(contract.schema.model_fields), is_open)


def _check_store(store: object) -> None:
    if store is not None and not isinstance(store, BaseStore):
        text = f"store is {store!r}; give one of LangGraph's, such as InMemoryStore()"
        raise ConfigurationError(text, option="store")


def _check_fallbacks(contracts: Mapping[str, Contract]) -> None:
    for contract in contracts.values():
        if contract.fallback and contract.fallback not in contracts:
            text = f"tool {contract.name!r} falls back on {contract.fallback!r}, which is no tool of this agent; "
            raise UnknownTool(f"{text}its tools are: {', '.join(contracts)}", target=contract.fallback)


def _reader(contracts: Mapping[str, Contract], caps: Caps) -> Tool:
    """Build the tool that reads on in a shortened result; its name is taken."""
    if READ_RESULT in contracts:
        text = f"{READ_RESULT!r} is built in, and reads on in results that were shortened; rename your tool"
        raise DuplicateTool(text, tool=READ_RESULT)
    return build_reader(caps, untrusted=any(contract.untrusted for contract in contracts.values()))


def change_spec(spec: AgentSpec, *, model: ModelOption | None, limits: Limits, price: Price | None = None) -> AgentSpec:
    """Return the specification with other models (None: the same ones), these limits, and a price (None: as before).

    Raises:
        ConfigurationError: If the model cannot be opened, or its price is not known although the cost is limited.
    """
    _check_limits(limits, spec.tools)
    _check_wrap_up(spec.wrap_up, limits)
    if model is None and price is not None:
        model = [one.model for one in spec.by_model]
    if model is None:
        for one in spec.by_model:
            check_priced(one.model_name, one.price, limits, spec.budgets)
        return replace(spec, limits=limits)
    first, *others = build_candidates(model, spec.offered, _reader({}, spec.caps), price, limits, spec.budgets)
    for candidate in (first, *others):
        check_form(spec.form, candidate.model)
    return _check_window(replace(spec, **vars(first), fallbacks=tuple(others), limits=limits))


def _refuse_unknown(unknown: Mapping[str, Any]) -> None:
    if "checkpointer" in unknown:
        text = "create_agent takes checkpoints=open_checkpoints(…), not checkpointer=: saver and ledger belong together"
        raise ConfigurationError(text, option="checkpointer")
    if unknown:
        raise ConfigurationError(f"create_agent has no option {', '.join(sorted(unknown))}", options=sorted(unknown))


def check_checkpoints(checkpoints: object) -> None:
    """Refuse what is neither None nor opened checkpoints.

    Raises:
        ConfigurationError: Without the value: a URL may hold a password.
    """
    if checkpoints is not None and not isinstance(checkpoints, Checkpoints):
        text = f"checkpoints is a {type(checkpoints).__name__}; give what open_checkpoints('sqlite:///runs.db') returns"
        raise ConfigurationError(text, option="checkpoints")


def _check_text(option: str, given: object) -> None:
    if not isinstance(given, str):
        raise ConfigurationError(f"{option} is {given!r}; give a text", option=option)


def _check_name(name: str) -> None:
    """Refuse a name that a ledger would keep as another one: runs are found by it."""
    if name != storable(name):
        text = f"name is {name!r}; give a text without NUL characters and halves of surrogate pairs"
        raise ConfigurationError(text, option="name")


def _check_rate(rate: object) -> None:
    if rate is not None and not isinstance(rate, Rate):
        raise ConfigurationError(f"rate is {rate!r}; give Rate(calls=…, per_seconds=…)", option="rate")


def _budgets(given: object) -> tuple[Budget, ...]:
    listed = _listed("budgets", given, "budgets, such as budgets=[Budget(name='support', max_cost=Decimal(1))]")
    budgets: list[Budget] = []
    for one in listed:
        if not isinstance(one, Budget):
            raise ConfigurationError(f"budgets hold {one!r}, which is no Budget", option="budgets")
        if any(one.name == other.name for other in budgets):
            raise ConfigurationError(f"two budgets are called {one.name!r}; rename one of them", option="budgets")
        budgets.append(one)
    return tuple(budgets)


def _check_wrap_up(wrap_up: object, limits: object) -> None:
    if not isinstance(wrap_up, bool):
        raise ConfigurationError(f"wrap_up is {wrap_up!r}; give True or False", option="wrap_up")
    if wrap_up and isinstance(limits, Limits) and limits.max_steps is not None and limits.max_steps < LEAST_TO_WRAP_UP:
        text = f"wrap_up takes the last of max_steps, and max_steps is {limits.max_steps}; give at least 2"
        raise ConfigurationError(text, option="wrap_up")


def _listed(option: str, given: object, wanted: str) -> list[object]:
    """Return what an option lists; one alone, which may be iterable too, is not a list of one."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | BaseTool):
        raise ConfigurationError(f"{option} is {given!r}, which is no list; give a list of {wanted}", option=option)
    return [*cast("Iterable[object]", given)]


def _tool(item: object) -> BaseTool:
    if not isinstance(item, BaseTool):
        raise ConfigurationError(f"tools hold {item!r}, which is no tool; decorate the function with @tool")
    return item


def _contracts(tools: Sequence[BaseTool]) -> dict[str, Contract]:
    contracts: dict[str, Contract] = {}
    for item in tools:
        if item.name in contracts:
            raise DuplicateTool(f"two tools are called {item.name!r}; rename one of them", tool=item.name)
        contracts[item.name] = contract_of(item)
    return contracts


def _check_limits(limits: object, contracts: Mapping[str, Contract]) -> None:
    if not isinstance(limits, Limits):
        raise ConfigurationError(f"limits is {limits!r}; give Limits(…)", option="limits")
    both = (limits, limits.thread) if limits.thread is not None else (limits,)
    named = [one.max_calls_per_tool for one in both if isinstance(one.max_calls_per_tool, Mapping)]
    for name in [name for numbers in named for name in numbers]:
        if name not in contracts:
            known = ", ".join(contracts) or "none"
            text = f"max_calls_per_tool names {name!r}, which is no tool of this agent; its tools are: {known}"
            raise UnknownTool(text, target=name)
