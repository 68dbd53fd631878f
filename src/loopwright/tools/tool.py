"""`@tool` and `annotate`: a typed function, or any LangChain tool, with its contract."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, get_type_hints, overload

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from loopwright.errors import ConfigurationError

from .contract import Contract, Effect, EffectKind, Verify, check_contract

EffectName = Literal["read", "idempotent", "write"]


class Tool(BaseTool):
    """A LangChain tool that carries its contract; made by `@tool` and `annotate`.

    It can be called by itself, as any LangChain tool (`lookup_order.invoke({"order_id": "A100"})`): then no guard and
    no ledger stand before it.
    """

    contract: Contract = Field(exclude=True)

    def _run(self, **kwargs: Any) -> Any:
        return self.contract.run(kwargs, Effect())

    async def _arun(self, **kwargs: Any) -> Any:
        if self.contract.arun is None:
            return await asyncio.to_thread(self.contract.run, kwargs, Effect())
        return await self.contract.arun(kwargs, Effect())


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    effect: EffectName | None = None,
    name: str = "",
    timeout: float = 30.0,
    key: str = "",
    untrusted: bool = False,
    verify: Verify | None = None,
    hands_over: bool = False,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: EffectName | None = None,
    name: str = "",
    timeout: float = 30.0,
    key: str = "",
    untrusted: bool = False,
    verify: Verify | None = None,
    hands_over: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function with a docstring, sync or async.

    Parameters annotated `Effect` are hidden from the model and bring the idempotency key. Arguments that the function
    does not have are refused, so that a misspelt one is never dropped silently.

    Args:
        function: The function, when the decorator is used without options.
        effect: What a call does to the world. Left out, `write` is assumed and `check` complains.
        name: What the model calls it; the function's name by default.
        timeout: Seconds for one call.
        key: Names the effect by the arguments (`"refund:{order_id}"`), over all runs and threads of a ledger. Left
            out, the effect is named by its place in the run.
        untrusted: The results hold text written by strangers; it is marked as such in what the model reads.
        verify: Called as `verify(effect, args)` when nobody knows whether a call happened; see `happened`.
        hands_over: A person takes over once the tool has succeeded: the run ends with the stop reason `escalated`.

    Raises:
        ConfigurationError: If the function has no docstring or an untyped parameter, or the options contradict.
    """

    def build(target: Callable[..., Any]) -> Tool:
        contract = _function_contract(target, name or target.__name__)
        return _tool(
            replace(
                contract,
                effect=EffectKind(effect or "write"),
                declared=effect is not None,
                timeout=timeout,
                key=key,
                untrusted=untrusted,
                verify=verify,
                hands_over=hands_over,
            )
        )

    return build if function is None else build(function)


def annotate(
    existing: BaseTool,
    /,
    *,
    effect: EffectName | None = None,
    timeout: float = 30.0,
    key: str = "",
    untrusted: bool = False,
    verify: Verify | None = None,
    hands_over: bool = False,
) -> Tool:
    """Give any LangChain tool a contract; the options are those of `tool`.

    Raises:
        ConfigurationError: If the tool has no description, or its arguments are not described by a pydantic model.
    """
    contract = replace(
        contract_of(existing),
        effect=EffectKind(effect or "write"),
        declared=effect is not None,
        timeout=timeout,
        key=key,
        untrusted=untrusted,
        verify=verify,
        hands_over=hands_over,
    )
    return _tool(contract)


def contract_of(existing: BaseTool) -> Contract:
    """Return a tool's contract; one that was never declared is a `write`."""
    if isinstance(existing, Tool):
        return existing.contract
    schema = existing.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        text = f"tool {existing.name!r} describes its arguments by JSON schema; give it a pydantic model as args_schema"
        raise ConfigurationError(text, tool=existing.name)

    def run(args: dict[str, Any], effect: Effect) -> Any:
        return _content(existing.invoke(_as_call(existing.name, args, effect)))

    async def arun(args: dict[str, Any], effect: Effect) -> Any:
        return _content(await existing.ainvoke(_as_call(existing.name, args, effect)))

    blocks = type(existing)._arun is BaseTool._arun  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # the only sign that a tool can only block
    return check_contract(Contract(existing.name, existing.description, schema, run, arun=None if blocks else arun))


def _tool(contract: Contract) -> Tool:
    check_contract(contract)
    return Tool(name=contract.name, description=contract.description, args_schema=contract.schema, contract=contract)


def _as_call(name: str, args: dict[str, Any], effect: Effect) -> dict[str, Any]:
    return {"type": "tool_call", "id": effect.key, "name": name, "args": args}


def _content(answer: Any) -> Any:
    return answer.content if isinstance(answer, ToolMessage) else answer


def _function_contract(function: Callable[..., Any], name: str) -> Contract:
    schema, effect_parameter = _schema(function, name)

    def arguments(args: Mapping[str, Any], effect: Effect) -> dict[str, Any]:
        valid = schema.model_validate(dict(args))
        values = {field: getattr(valid, field) for field in schema.model_fields}
        return {**values, effect_parameter: effect} if effect_parameter else values

    def run(args: dict[str, Any], effect: Effect) -> Any:
        result = function(**arguments(args, effect))
        return asyncio.run(result) if inspect.iscoroutine(result) else result

    async def arun(args: dict[str, Any], effect: Effect) -> Any:
        return await function(**arguments(args, effect))

    description = inspect.cleandoc(function.__doc__ or "")
    return Contract(name, description, schema, run, arun=arun if inspect.iscoroutinefunction(function) else None)


def _schema(function: Callable[..., Any], name: str) -> tuple[type[BaseModel], str]:
    """Build the arguments' model from the signature, and find the parameter that wants the `Effect`."""
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    effect_parameter = ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            text = f"tool {name!r}: parameter {parameter.name!r} cannot be filled by name; use plain named parameters"
            raise ConfigurationError(text, tool=name)
        if parameter.name not in hints:
            text = f"tool {name!r}: parameter {parameter.name!r} has no type; the model and the guard both need one"
            raise ConfigurationError(text, tool=name)
        if hints[parameter.name] is Effect:
            effect_parameter = parameter.name
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields), effect_parameter
