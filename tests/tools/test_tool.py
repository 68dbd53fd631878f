"""Tools: made of typed functions, or of any LangChain tool."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Annotated, Any, Optional

import pytest
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel, BeforeValidator, Field, SecretStr, ValidationError

from loopwright import Effect, annotate, tool
from loopwright.errors import ConfigurationError
from loopwright.tools import EffectKind, OutOfTime, UnfitArguments, await_within, contract_of, to_output


@tool(effect="write", key="pay:{order_id}")
def pay(order_id: str, amount: Annotated[int, Field(gt=0)], handle: Effect, note: str = "") -> str:
    """Pay money back for an order."""
    return f"{order_id} {amount} {note!r} {bool(handle.key)}"


def test_the_model_sees_the_parameters_that_are_its_own() -> None:
    """Names, types and defaults from the signature; the effect's handle stays hidden."""
    seen: Any = pay.tool_call_schema
    schema = seen.model_json_schema()
    assert {"order_id", "amount", "note"} == set(schema["properties"])
    assert ["order_id", "amount"] == schema["required"]
    assert schema["properties"]["amount"]["exclusiveMinimum"] == 0
    assert (pay.name, pay.description) == ("pay", "Pay money back for an order.")


def test_it_can_be_called_by_itself() -> None:
    """As any LangChain tool, sync and async, with a fresh key; so a unit test needs no agent."""
    given = {"order_id": "A1", "amount": 5}
    assert pay.invoke(given) == "A1 5 '' True"
    assert asyncio.run(pay.ainvoke(given)) == "A1 5 '' True"


def test_arguments_are_coerced_by_the_schema() -> None:
    """What the schema reads as a number becomes one, and defaults are filled in."""
    assert contract_of(pay).canonical_args({"order_id": "A1", "amount": "5"}) == {
        "order_id": "A1",
        "amount": 5,
        "note": "",
    }


@pytest.mark.parametrize(
    "args", [{}, {"order_id": "A1"}, {"order_id": "A1", "amount": 0}, {"order_id": "A1", "amount": 1, "ammount": 2}]
)
def test_arguments_that_do_not_fit_are_refused(args: dict[str, Any]) -> None:
    """Missing, out of range, or misspelt: never dropped silently."""
    with pytest.raises(ValidationError):
        contract_of(pay).canonical_args(args)


def test_arguments_that_change_each_time_are_refused() -> None:
    """A validator that turns euros into cents would do so again when the tool runs: not what was approved."""

    @tool(effect="write")
    def transfer(amount: Annotated[int, BeforeValidator(lambda euros: euros * 100)]) -> str:
        """Transfer an amount to the customer."""
        return str(amount)

    with pytest.raises(UnfitArguments, match="transfer"):
        contract_of(transfer).canonical_args({"amount": 5})
    assert contract_of(transfer).canonical_args({"amount": 0}) == {"amount": 0}


def test_not_a_number_is_no_amount() -> None:
    """It differs from itself, so nobody could have approved it."""

    @tool(effect="write")
    def transfer(amount: float) -> str:
        """Transfer an amount to the customer."""
        return str(amount)

    with pytest.raises(UnfitArguments):
        contract_of(transfer).canonical_args({"amount": float("nan")})


def test_nested_arguments_arrive_as_their_types() -> None:
    """The function gets models and enumerations, not the JSON that was stored of them."""
    got.clear()
    assert total.invoke({"lines": [{"code": "a"}, {"code": "b", "count": 2}]}) == 3
    contract = contract_of(total)
    args = contract.canonical_args({"lines": [{"code": "a"}]})
    assert {"lines": [{"code": "a", "count": 1}]} == args
    assert contract.run(args, Effect()) == 1
    assert [Line(code="a"), Line(code="b", count=2), Line(code="a")] == got


def test_a_type_that_cannot_be_found_is_refused() -> None:
    """A class inside a function is out of sight of the annotations that name it."""

    class Inner(BaseModel):
        code: str

    def total(lines: list[Inner]) -> int:
        """Add up some lines."""
        return len(lines)

    with pytest.raises(ConfigurationError, match="'Inner' is not known"):
        tool(total)


def test_options_are_kept() -> None:
    """As they were given; without a word, a tool is a write and says that nobody said so."""

    @tool
    def plain() -> str:
        """Do something or other."""
        return ""

    contract = contract_of(plain)
    assert (EffectKind.WRITE, False, 30.0) == (contract.effect, contract.declared, contract.timeout)
    contract = contract_of(pay)
    assert (EffectKind.WRITE, True, "pay:pay:A1") == (
        contract.effect,
        contract.declared,
        contract.effect_key({"order_id": "A1", "amount": 3}),
    )


class Line(BaseModel):
    """An argument's part."""

    code: str
    count: int = 1


got: list[Line] = []


@tool(effect="read")
def total(lines: list[Line]) -> int:
    """Add up the counts of some lines."""
    got.extend(lines)
    return sum(line.count for line in lines)


def no_docstring(order_id: str) -> str:  # noqa: D103 -- that is the point
    return order_id


def untyped(order_id) -> str:  # type: ignore[no-untyped-def] # pyright: ignore[reportMissingParameterType, reportUnknownParameterType]  # noqa: ANN001 -- that is the point
    """Look up an order."""
    return str(order_id)  # pyright: ignore[reportUnknownArgumentType]


def variadic(*codes: str) -> str:
    """Look up orders."""
    return str(codes)


def secret(token: SecretStr) -> str:
    """Log in."""
    return str(token)


def nested_secret(tokens: list[SecretStr]) -> str:
    """Log in, again and again."""
    return str(tokens)


def indescribable(callback: Callable[[], None]) -> str:
    """Call back."""
    return str(callback)


def two_handles(first: Effect, second: Effect) -> str:
    """Pay twice."""
    return f"{first}{second}"


def handles(many: list[Effect]) -> str:
    """Pay often."""
    return str(many)


def handle_or_text(handle: Effect | str) -> str:
    """Pay under some name."""
    return str(handle)


def dropped(order_id: str, _note: str) -> str:
    """Note something about an order."""
    return f"{order_id}{_note}"


def mistaken(model_config: str) -> str:
    """Configure a model."""
    return model_config


def shadowing(model_extra: str) -> str:
    """Add something to a model."""
    return model_extra


async def trickle() -> AsyncIterator[str]:
    """Yield orders one after the other."""
    yield "a"


NO_TOOLS: list[tuple[Any, str]] = [
    (no_docstring, "no docstring"),
    (untyped, "'order_id' has no type"),
    (variadic, "'codes' cannot be filled by name"),
    (secret, "token would be a secret"),
    (nested_secret, "tokens would be a secret"),
    (indescribable, "cannot be described"),
    (two_handles, "'first' and 'second' both want the Effect"),
    (handles, "the model would fill many"),
    (handle_or_text, "the model would fill handle"),
    (dropped, "the name '_note' to itself"),
    (mistaken, "the name 'model_config' to itself"),
    (shadowing, "the name 'model_extra' to itself"),
    (trickle, "async generator; return a list"),
    ("read", r"options are given by name, as @tool\(effect='read'\)"),
]


@pytest.mark.parametrize(("function", "match"), NO_TOOLS)
def test_functions_that_make_no_tool(function: Any, match: str) -> None:
    """Each is refused where it is written, by name and with the way out."""
    with pytest.raises(ConfigurationError, match=match):
        tool(function)


OPTIONS: list[tuple[dict[str, Any], str]] = [
    ({"timeout": 0}, "timeout is 0"),
    ({"timeout": float("nan")}, "timeout is nan"),
    ({"timeout": "30"}, "timeout is '30'"),
    ({"timeout": True}, "timeout is True"),
    ({"timeout": None}, "timeout is None"),
    ({"effect": "raed"}, "tool 'refund': effect is 'raed'; give one of 'read', 'idempotent', 'write'"),
    ({"effect": ""}, "effect is ''"),
    ({"effect": ["read"]}, "effect is "),
    ({"key": 3}, "key is 3"),
    ({"verify": True}, "verify is True; give a function"),
    ({"verify": False}, "verify is False; give a function"),
    ({"verify": no_docstring}, "with two arguments"),
    ({"verify": trickle}, "verify is an async generator"),
    ({"effect": "read", "key": "{order_id}"}, "declared 'read'"),
    ({"effect": "read", "verify": no_docstring}, "declared 'read'"),
    ({"key": "{order}"}, "it has no order"),
    ({"key": "constant"}, "share one effect"),
    ({"key": "{}"}, "must name parameters"),
    ({"key": "{amount:.2f}"}, "formats a parameter"),
    ({"key": "{amount!r}"}, "formats a parameter"),
]


@pytest.mark.parametrize("name", ["refund order", "r" * 65, "rückzahlung", "refund.order"])
def test_a_name_that_no_provider_takes(name: str) -> None:
    """It is refused when the tool is made, not by the first request; so is that of a LangChain tool."""

    def refund(order_id: str) -> str:
        """Pay money back for an order."""
        return order_id

    with pytest.raises(ConfigurationError, match="no provider takes that name"):
        tool(name=name)(refund)
    with pytest.raises(ConfigurationError, match="no provider takes that name"):
        annotate(langchain_tool(name)(refund))


@pytest.mark.parametrize(("options", "match"), OPTIONS)
def test_options_that_contradict(options: dict[str, Any], match: str) -> None:
    """Each is refused when the tool is made."""

    def refund(order_id: str, amount: float) -> str:
        """Pay money back for an order."""
        return f"{order_id} {amount}"

    with pytest.raises(ConfigurationError, match=match):
        tool(**options)(refund)
    if "verify" not in options:
        with pytest.raises(ConfigurationError, match=match):
            annotate(tool(refund), **options)


def test_an_async_function() -> None:
    """It is awaited where it can be, and run to its end where it cannot."""

    @tool(effect="read")
    async def look(order_id: str) -> str:
        """Look up an order."""
        return f"{order_id}!"

    assert look.invoke({"order_id": "a"}) == "a!"
    assert asyncio.run(look.ainvoke({"order_id": "a"})) == "a!"


def test_a_key_needs_its_values() -> None:
    """Calls that leave one empty would be one effect: the first one's result would answer for all of them."""

    @tool(effect="write", key="refund:{order_id}", serial="customer:{customer}")
    def refund(order_id: str | None, customer: str | None = None) -> str:
        """Pay the money of an order back."""
        return f"{order_id} of {customer}"

    with pytest.raises(UnfitArguments, match="order_id of refund names the effect, and must not be null"):
        refund.contract.canonical_args({"order_id": None})
    assert {"order_id": "A1", "customer": None} == refund.contract.canonical_args({"order_id": "A1"})


def test_any_langchain_tool_can_be_annotated() -> None:
    """It gets a contract, keeps its schema, and hands out content and artifact."""

    @langchain_tool(response_format="content_and_artifact")
    def search(query: str) -> tuple[str, list[int]]:
        """Search the catalogue for a word."""
        return f"found {query}", [1, 2]

    annotated = annotate(search, effect="read", untrusted=True)
    contract = contract_of(annotated)
    assert (annotated.name, contract.effect, contract.untrusted) == ("search", EffectKind.READ, True)
    output = to_output(contract.run({"query": "x"}, Effect(key="call-1")))
    assert ("found x", [1, 2]) == (output.text, output.artifact)
    assert "found x" == annotated.invoke({"query": "x"})


def described_tool(schema: dict[str, Any]) -> BaseTool:
    """Build a tool that describes its arguments as those of other languages do."""

    @langchain_tool(args_schema=schema)
    def search(**given: Any) -> str:
        """Search the catalogue."""
        return str(given)

    return search


def test_a_tool_with_a_json_schema() -> None:
    """Its arguments are checked by that schema; what is left out stays out, and a name it does not know is refused."""
    parts = {"query": {"type": "string"}, "schema": {"type": "integer", "minimum": 1}, "top": {"default": 5}}
    given = {"type": "object", "properties": parts, "required": ["query"], "description": "Search."}
    contract = contract_of(annotate(described_tool(given), effect="read", key=""))
    assert {"query": "x", "top": 5} == contract.canonical_args({"query": "x"})
    assert {"query": "x", "schema": 2, "top": 5} == contract.canonical_args({"query": "x", "schema": 2})
    assert parts == contract.schema.model_json_schema()["properties"]
    assert "{'query': 'x'}" == to_output(contract.run({"query": "x"}, Effect())).text
    for wrong in ({}, {"query": 1}, {"query": "x", "schema": 0}, {"query": "x", "other": 1}):
        with pytest.raises(ValidationError):
            contract.canonical_args(wrong)


@pytest.mark.parametrize("option", ["serial", "key"])
def test_a_template_over_what_a_call_may_leave_out(option: Any) -> None:
    """It could not be filled then; with a default it can."""
    parts: dict[str, Any] = {"order_id": {"type": "string"}}
    given = {"type": "object", "properties": parts, "description": "Ship."}
    options: dict[str, Any] = {"effect": "write", option: "order:{order_id}"}
    with pytest.raises(ConfigurationError, match="names order_id, which a call may leave out"):
        annotate(described_tool(given), **options)
    parts["order_id"]["default"] = "all"
    contract = contract_of(annotate(described_tool(given), **options))
    args = contract.canonical_args({})
    assert "order:all" in (contract.serial_key(args), contract.effect_key(args).partition(":")[2])


@pytest.mark.timeout(20)
def test_a_pattern_that_takes_for_ever_elsewhere() -> None:
    """Whoever described the arguments may mean no good; what pydantic's engine does not know is not checked here."""
    parts = {"a": {"type": "string", "pattern": "^(a+)+$"}, "b": {"type": "string", "pattern": "^(?=x)"}}
    contract = contract_of(annotate(described_tool({"type": "object", "properties": parts, "description": "S."})))
    assert {"a": "aa", "b": "y"} == contract.canonical_args({"a": "aa", "b": "y"})
    with pytest.raises(ValidationError, match="does not fit pattern"):
        contract.canonical_args({"a": "a" * 40 + "!"})


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "object", "properties": {"model_dump": {}}, "description": "S."}, "rename the parameter"),
        ({"type": "string", "description": "S."}, "no object"),
        ({"type": "object", "properties": {"a": {"type": 3}}, "description": "S."}, "no valid JSON schema"),
    ],
)
def test_a_json_schema_that_cannot_be_used(schema: dict[str, Any], said: str) -> None:
    """It fails when the agent is built, not when the tool is called."""
    with pytest.raises(ConfigurationError, match=said):
        annotate(described_tool(schema))


def optional(order_id: str, handle: Effect | None = None) -> str:
    """Pay money back for an order."""
    return f"{order_id} {handle.key if handle else None}"


def old_style(order_id: str, handle: Optional[Effect] = None) -> str:  # noqa: UP045 -- that is the point
    """Pay money back for an order."""
    return optional(order_id, handle)


def annotated(order_id: str, handle: Annotated[Effect, "the handle"]) -> str:
    """Pay money back for an order."""
    return optional(order_id, handle)


def both(order_id: str, handle: Annotated[Effect | None, "the handle"] = None) -> str:
    """Pay money back for an order."""
    return optional(order_id, handle)


@pytest.mark.parametrize("function", [optional, old_style, annotated, both])
def test_the_handle_is_hidden_however_it_is_written(function: Callable[..., str]) -> None:
    """Whoever filled it would choose the idempotency key."""
    contract = contract_of(tool(function))
    assert ["order_id"] == [*contract.schema.model_fields]
    assert contract.run({"order_id": "A1"}, Effect(key="k1")) == "A1 k1"


def test_a_handle_that_a_langchain_tool_asks_the_model_for() -> None:
    """It is refused: nothing would fill it but the model."""

    @langchain_tool
    def pay_back(order_id: str, handle: Effect) -> str:
        """Pay money back for an order."""
        return f"{order_id}{handle}"

    with pytest.raises(ConfigurationError, match="the model would fill handle"):
        annotate(pay_back, effect="write")


class Promise:
    """Something that is awaited, and no coroutine."""

    def __await__(self) -> Iterator[Any]:
        """Come true, at once."""
        return self._come().__await__()

    async def _come(self) -> str:
        return "come true"


async def nested() -> Awaitable[str]:
    """Return what has to be awaited once more."""
    return Promise()  # type: ignore[return-value] # pyright: ignore[reportReturnType]  # awaitable all the same


def promise() -> Promise:
    """Promise something."""
    return Promise()


@pytest.mark.parametrize("function", [nested, promise])
def test_whatever_can_be_awaited_is(function: Callable[..., Any]) -> None:
    """By both doors: the model reads the result, not the name of a coroutine."""
    made = tool(function)
    assert [made.invoke({}), asyncio.run(made.ainvoke({}))] == ["come true", "come true"]


def letters() -> Iterator[str]:
    """Yield two letters."""
    yield from "ab"


async def letters_later() -> Iterator[str]:
    """Return an iterator of two letters."""
    return letters()


def letters_from_afar() -> AsyncIterator[str]:
    """Return an async iterator of two letters."""

    async def afar() -> AsyncIterator[str]:
        for letter in "ab":
            yield letter

    return afar()


@pytest.mark.parametrize("function", [letters, letters_later, letters_from_afar])
def test_an_iterator_is_read_within_the_call(function: Callable[..., Any]) -> None:
    """What is left of it afterwards is a list."""
    made = tool(function)
    assert [made.invoke({}), asyncio.run(made.ainvoke({}))] == [["a", "b"], ["a", "b"]]


def broken() -> Iterator[str]:
    """Yield a letter, and fail."""
    yield "a"
    raise LookupError("no b")


async def broken_later() -> Iterator[str]:
    """Return an iterator that fails."""
    return broken()


@pytest.mark.parametrize("function", [broken, broken_later])
def test_an_iterator_that_fails_fails_its_call(function: Callable[..., Any]) -> None:
    """Its body is the tool's: the model reads the error, and the ledger does not count it as done."""
    contract = contract_of(tool(function))
    with pytest.raises(LookupError, match="no b"):
        contract.run({}, Effect())
    if contract.arun is not None:
        with pytest.raises(LookupError, match="no b"):
            asyncio.run(tool(function).ainvoke({}))


def count_for_ever() -> Iterator[int]:
    """Count."""
    return itertools.count()


async def acount_for_ever() -> AsyncIterator[int]:
    """Count."""

    async def count() -> AsyncIterator[int]:
        for number in itertools.count():
            yield number

    return count()


@pytest.mark.timeout(20)
@pytest.mark.parametrize("function", [count_for_ever, acount_for_ever])
def test_an_iterator_without_end_is_read_in_part(function: Any) -> None:
    """Its thread could not be ended, and would fill the memory."""
    text = to_output(contract_of(tool(effect="read")(function)).run({}, Effect())).text
    assert text.endswith('9999, "(only the first 10000 items)"]')


def test_an_iterator_that_blocks_does_not_block_the_loop() -> None:
    """An async tool that returns one is given up in time."""
    release = threading.Event()

    @tool(effect="read")
    async def stuck() -> Iterator[bool]:
        """Return an iterator that waits."""
        return (release.wait() for _ in range(1))

    arun = contract_of(stuck).arun
    assert arun is not None
    try:
        with pytest.raises(OutOfTime):
            asyncio.run(await_within(0.05, lambda: arun({}, Effect())))
    finally:
        release.set()
