"""`@tool` and `annotate`: a typed function, or any LangChain tool, with its contract."""

from __future__ import annotations

import asyncio
import inspect
import types
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Annotated, Any, Union, Unpack, cast, get_args, get_origin, get_type_hints, overload

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel, ConfigDict, Field, create_model

from loopwright.errors import ConfigurationError

from .contract import Contract, Effect, check_contract
from .deadline import call_aside
from .options import ToolOptions, declare


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
def tool(*, name: str = "", **options: Unpack[ToolOptions]) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None, /, *, name: str = "", **options: Unpack[ToolOptions]
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function with a docstring, sync or async.

    A parameter annotated `Effect` (or `Effect | None`) is hidden from the model and brings the idempotency key.
    Arguments that the function does not have are refused, so that a misspelt one is never dropped silently. What it
    returns is awaited if it can be, and an iterator is read to its end, both within the call's time.

    Args:
        function: The function, when the decorator is used without options.
        name: What the model calls it; the function's name by default.
        **options: What the tool declares about itself; see `ToolOptions`.

    Raises:
        ConfigurationError: If the function has no docstring or an untyped parameter, or the options contradict.
    """

    def build(target: Callable[..., Any]) -> Tool:
        _check_function(target)
        return _tool(declare(_function_contract(target, name or target.__name__), options))

    return build if function is None else build(function)


def annotate(existing: BaseTool, /, **options: Unpack[ToolOptions]) -> Tool:
    """Give any LangChain tool a contract; the options are those of `tool`.

    Raises:
        ConfigurationError: If the tool has no description, or its arguments are not described by a pydantic model.
    """
    return _tool(declare(contract_of(existing), options))


def _check_function(target: object) -> None:
    if not callable(target):
        text = f"@tool got {target!r} for a function; options are given by name, as @tool(effect='read')"
        raise ConfigurationError(text)
    if inspect.isasyncgenfunction(target):
        name = str(getattr(target, "__name__", target))
        raise ConfigurationError(f"tool {name!r} is an async generator; return a list of what it yields", tool=name)


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
        if inspect.isawaitable(result) or isinstance(result, AsyncIterator):
            result = asyncio.run(_awaited(result))
        return _read(result)

    async def arun(args: dict[str, Any], effect: Effect) -> Any:
        result = await _awaited(function(**arguments(args, effect)))
        return await call_aside(lambda: _read(result)) if isinstance(result, Iterator) else result

    description = inspect.cleandoc(function.__doc__ or "")
    return Contract(name, description, schema, run, arun=arun if inspect.iscoroutinefunction(function) else None)


async def _awaited(result: Any) -> Any:
    """Return what comes of a result, whatever has to be awaited for it."""
    while inspect.isawaitable(result):
        result = await result
    return (
        [item async for item in cast("AsyncIterator[object]", result)] if isinstance(result, AsyncIterator) else result
    )


def _read(result: Any) -> Any:
    """Read an iterator to its end: its body is the tool's, and must run, and fail, within the tool's call."""
    return [_read(item) for item in cast("Iterator[object]", result)] if isinstance(result, Iterator) else result


def _is_effect(hint: Any) -> bool:
    """Tell whether a parameter wants the `Effect` itself: bare, optional or annotated."""
    inner = getattr(hint, "__value__", hint)  # what a `type` statement names
    if get_origin(inner) is Annotated:
        return _is_effect(get_args(inner)[0])
    if get_origin(inner) in (Union, types.UnionType):
        return all(part is types.NoneType or _is_effect(part) for part in get_args(inner))
    return inner is Effect


def _schema(function: Callable[..., Any], name: str) -> tuple[type[BaseModel], str]:
    """Build the arguments' model from the signature, and find the parameter that wants the `Effect`."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        text = f"tool {name!r}: the type {error.name!r} is not known where the function stands; define it in the module"
        raise ConfigurationError(text, tool=name) from error
    fields: dict[str, Any] = {}
    effect_parameter = ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            text = f"tool {name!r}: parameter {parameter.name!r} cannot be filled by name; use plain named parameters"
            raise ConfigurationError(text, tool=name)
        if parameter.name not in hints:
            text = f"tool {name!r}: parameter {parameter.name!r} has no type; the model and the guard both need one"
            raise ConfigurationError(text, tool=name)
        if _is_effect(hints[parameter.name]):
            if effect_parameter:
                text = f"tool {name!r}: {effect_parameter!r} and {parameter.name!r} both want the Effect; keep one"
                raise ConfigurationError(text, tool=name)
            effect_parameter = parameter.name
            continue
        if _is_reserved(parameter.name):
            text = f"tool {name!r}: pydantic keeps the name {parameter.name!r} to itself; rename the parameter"
            raise ConfigurationError(text, tool=name)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields), effect_parameter


def _is_reserved(parameter: str) -> bool:
    """Tell whether a model's field cannot be called so: pydantic would drop it, or hand out something else."""
    return parameter.startswith("_") or (parameter.startswith("model_") and hasattr(BaseModel, parameter))
