"""`@tool` and `annotate`: a typed function, or any LangChain tool, with its contract."""

from __future__ import annotations

import asyncio
import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Unpack, cast, get_type_hints, overload

from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.tools.base import ArgsSchema, get_all_basemodel_annotations
from pydantic import BaseModel, ConfigDict, Field, create_model

from loopwright.errors import ConfigurationError, NotDone, ToolError

from .contract import Contract, Effect, check_contract
from .deadline import call_aside
from .injection import Hidden, found_in, hidden
from .options import ToolOptions, declare
from .raw import giving_raw, value_of
from .results import MAX_ITEMS, ONLY_FIRST, WithArtifact, safe_str, unpacked
from .schemas import DescribedArguments, described

ResponseFormat = Literal["content", "content_and_artifact"]


class Tool(BaseTool):
    """A LangChain tool that carries its contract; made by `@tool` and `annotate`.

    It can be called by itself, as any LangChain tool (`lookup_order.invoke({"order_id": "A100"})`): then no guard and
    no ledger stand before it.
    """

    contract: Contract = Field(exclude=True)

    def __repr_args__(self) -> Iterable[tuple[str, object]]:
        """Print what a reader looks for; `contract` and `args_schema` have the rest."""
        yield "name", self.name
        yield "effect", self.contract.effect.value
        yield "description", self.description.partition("\n")[0]

    @property
    def tool_call_schema(self) -> ArgsSchema:
        """Return what the model is told of the arguments; a JSON schema just as it was given."""
        schema = self.contract.schema
        if issubclass(schema, DescribedArguments):
            return {"title": self.name, "description": self.description, **schema.described}
        return super().tool_call_schema

    def _run(self, **kwargs: Any) -> Any:
        return unpacked(self.contract.run(kwargs, Effect()))

    async def _arun(self, **kwargs: Any) -> Any:
        if self.contract.arun is None:
            return unpacked(await asyncio.to_thread(self.contract.run, kwargs, Effect()))
        return unpacked(await self.contract.arun(kwargs, Effect()))


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str = "", response_format: ResponseFormat = "content", **options: Unpack[ToolOptions]
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    response_format: ResponseFormat = "content",
    **options: Unpack[ToolOptions],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a typed function with a docstring, sync or async.

    A parameter annotated `Effect` (or `Effect | None`) is hidden from the model and brings the idempotency key. So are
    LangChain's: `ToolRuntime`, `Annotated[…, InjectedState("…")]`, `InjectedStore` and `InjectedToolCallId`.
    Arguments that the function does not have are refused, so that a misspelt one is never dropped silently. What it
    returns is awaited if it can be, and an iterator is read, 10,000 items at most, both within the call's time.

    Args:
        function: The function, when the decorator is used without options.
        name: What the model calls it; the function's name by default.
        response_format: `"content_and_artifact"` for a function that returns both, as a tuple: the model reads the
            content, the artifact is kept with the message (`ToolMessage.artifact`), as plain data.
        **options: What the tool declares about itself; see `ToolOptions`.

    Raises:
        ConfigurationError: If the function has no docstring or an untyped parameter, or the options contradict.
    """

    def build(target: Callable[..., Any]) -> Tool:
        _check_function(target)
        contract = _function_contract(target, name or target.__name__, response_format)
        return _tool(declare(contract, options), response_format)

    return build if function is None else build(function)


def annotate(existing: BaseTool, /, **options: Unpack[ToolOptions]) -> Tool:
    """Give any LangChain tool a contract; the options are those of `tool`.

    Raises:
        ConfigurationError: If the tool has no description, or an option contradicts what it is.
    """
    return _tool(declare(contract_of(existing), options), existing.response_format)


def _check_function(target: object) -> None:
    if not callable(target):
        text = f"@tool got {target!r} for a function; options are given by name, as @tool(effect='read')"
        raise ConfigurationError(text)
    if inspect.isasyncgenfunction(target):
        name = str(getattr(target, "__name__", target))
        raise ConfigurationError(f"tool {name!r} is an async generator; return a list of what it yields", tool=name)


def contract_of(existing: BaseTool) -> Contract:
    """Return a tool's contract; one that was never declared is a `write`.

    What LangChain injects into a tool (`ToolRuntime`, state, store, the call's id) is injected here too.
    """
    if isinstance(existing, Tool):
        return existing.contract
    given = existing.tool_call_schema
    schema = given if isinstance(given, type) and issubclass(given, BaseModel) else described(existing.name, given)
    hiding = _injected(existing)
    kept = hiding.keys() - schema.model_fields.keys()
    fills = {name: fill for name, fill in hiding.items() if fill.kind not in ("call_id", "default")}
    door = giving_raw(existing)

    def arguments(args: Mapping[str, Any], effect: Effect) -> dict[str, Any]:
        if taken := sorted(kept & args.keys()):  # a schema that is open lets it through
            raise NotDone(f"{', '.join(taken)} is for the caller to fill, and not for the model; nothing was done")
        whole = {**args, **{name: fill.value(effect) for name, fill in fills.items()}}
        return {"type": "tool_call", "id": effect.around.call_id or effect.key, "name": existing.name, "args": whole}

    told = _as_told_by_a_server if _is_of_a_server(existing) else _as_told

    def run(args: dict[str, Any], effect: Effect) -> Any:
        if _can_only_be_awaited(existing):
            return asyncio.run(arun(args, effect))
        with told():
            return value_of(door.invoke(arguments(args, effect)))

    async def arun(args: dict[str, Any], effect: Effect) -> Any:
        with told():
            return value_of(await door.ainvoke(arguments(args, effect)))

    blocks = type(existing)._arun is BaseTool._arun  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # the only sign that a tool can only block
    blocks = blocks or (isinstance(existing, StructuredTool) and existing.coroutine is None)
    found = found_in(fills.values())
    awaited = None if blocks else arun
    return check_contract(Contract(existing.name, existing.description, schema, run, arun=awaited, **found))


def _can_only_be_awaited(existing: BaseTool) -> bool:
    return isinstance(existing, StructuredTool) and existing.func is None and existing.coroutine is not None


_ADAPTERS = "langchain_mcp_adapters"


def _is_of_a_server(existing: BaseTool) -> bool:
    """Tell whether langchain-mcp-adapters made the tool: what it calls is an MCP server's."""
    called = getattr(existing, "coroutine", None) or getattr(existing, "func", None)
    return str(getattr(called, "__module__", "")).partition(".")[0] == _ADAPTERS


@contextmanager
def _as_told() -> Generator[None]:
    """Leave an error as it is: LangChain's `ToolException` says that nothing was done."""
    yield


@contextmanager
def _as_told_by_a_server() -> Generator[None]:
    """Take an error for one that was met after the call had begun: the adapters tell all of a server's errors alike.

    Raises:
        ToolError: In its place.
    """
    try:
        yield
    except ToolException as error:
        raise ToolError(safe_str(error)) from error


def _injected(existing: BaseTool) -> dict[str, Hidden]:
    """Find what the model does not fill: what LangChain's ToolNode would inject, and what only a caller could."""
    hints: dict[str, Any] = {}
    function = getattr(existing, "func", None) or getattr(existing, "coroutine", None)
    if function is not None:
        hints |= get_type_hints(function, include_extras=True)
    if not isinstance(existing.args_schema, dict):
        hints |= get_all_basemodel_annotations(existing.get_input_schema())
    found = {name: hidden(hint) for name, hint in hints.items()}
    return {name: fill for name, fill in found.items() if fill is not None}


def _tool(contract: Contract, response_format: ResponseFormat = "content") -> Tool:
    check_contract(contract)
    return Tool(
        name=contract.name,
        description=contract.description,
        args_schema=contract.schema,
        response_format=response_format,
        contract=contract,
    )


def _function_contract(function: Callable[..., Any], name: str, response_format: ResponseFormat) -> Contract:
    schema, fills = _schema(function, name)

    def arguments(args: Mapping[str, Any], effect: Effect) -> dict[str, Any]:
        valid = schema.model_validate(dict(args))
        values = {field: getattr(valid, field) for field in schema.model_fields}
        return values | {parameter: fill.value(effect) for parameter, fill in fills.items()}

    def finish(result: Any) -> Any:
        return result if response_format == "content" else WithArtifact.of(name, result)

    def run(args: dict[str, Any], effect: Effect) -> Any:
        result = function(**arguments(args, effect))
        if inspect.isawaitable(result) or isinstance(result, AsyncIterator):
            result = asyncio.run(_awaited(result))
        return finish(_read(result))

    async def arun(args: dict[str, Any], effect: Effect) -> Any:
        result = await _awaited(function(**arguments(args, effect)))
        return finish(await call_aside(lambda: _read(result)) if isinstance(result, Iterator) else result)

    description = inspect.cleandoc(function.__doc__ or "")
    found = found_in(fills.values())
    door = arun if inspect.iscoroutinefunction(function) else None
    return Contract(name, description, schema, run, arun=door, **found)


async def _awaited(result: Any) -> Any:
    """Return what comes of a result, whatever has to be awaited for it."""
    while inspect.isawaitable(result):
        result = await result
    return await _listed(cast("AsyncIterator[object]", result)) if isinstance(result, AsyncIterator) else result


async def _listed(items: AsyncIterator[object]) -> list[object]:
    read: list[object] = []
    async for item in items:
        if len(read) == MAX_ITEMS:
            return [*read, ONLY_FIRST]
        read.append(item)
    return read


def _read(result: Any) -> Any:
    """Read an iterator: its body is the tool's, and must run, and fail, within the tool's call.

    It may have no end, and no thread can be ended that reads one: as many items are read as are kept.
    """
    if not isinstance(result, Iterator):
        return result
    items = cast("Iterator[object]", result)
    read = [_read(item) for item in itertools.islice(items, MAX_ITEMS)]
    is_over = len(read) == MAX_ITEMS and next(items, read) is not read
    return [*read, ONLY_FIRST] if is_over else read


def _schema(function: Callable[..., Any], name: str) -> tuple[type[BaseModel], dict[str, Hidden]]:
    """Build the arguments' model from the signature, and find the parameters that the model never sees."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except NameError as error:
        text = f"tool {name!r}: the type {error.name!r} is not known where the function stands; define it in the module"
        raise ConfigurationError(text, tool=name) from error
    fields: dict[str, Any] = {}
    fills: dict[str, Hidden] = {}
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            text = f"tool {name!r}: parameter {parameter.name!r} cannot be filled by name; use plain named parameters"
            raise ConfigurationError(text, tool=name)
        if parameter.name not in hints:
            text = f"tool {name!r}: parameter {parameter.name!r} has no type; the model and the guard both need one"
            raise ConfigurationError(text, tool=name)
        fill = hidden(hints[parameter.name])
        if fill is not None:
            _check_hidden(fill, parameter, fills, name)
            fills[parameter.name] = fill
            continue
        if _is_reserved(parameter.name):
            text = f"tool {name!r}: pydantic keeps the name {parameter.name!r} to itself; rename the parameter"
            raise ConfigurationError(text, tool=name)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (hints[parameter.name], default)
    fills = {parameter: fill for parameter, fill in fills.items() if fill.kind != "default"}
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields), fills


def _check_hidden(fill: Hidden, parameter: inspect.Parameter, before: Mapping[str, Hidden], name: str) -> None:
    other = next((one for one, earlier in before.items() if earlier.kind == fill.kind == "effect"), "")
    if other:
        text = f"tool {name!r}: {other!r} and {parameter.name!r} both want the Effect; keep one"
        raise ConfigurationError(text, tool=name)
    if fill.kind == "default" and parameter.default is parameter.empty:
        text = f"tool {name!r}: nobody would fill {parameter.name!r}; give it a default, or take it from ToolRuntime"
        raise ConfigurationError(text, tool=name)


def _is_reserved(parameter: str) -> bool:
    """Tell whether a model's field cannot be called so: pydantic would drop it, or hand out something else."""
    return parameter.startswith("_") or (parameter.startswith("model_") and hasattr(BaseModel, parameter))
