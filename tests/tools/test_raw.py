"""LangChain tools: what they return is read as what one of ours returns, and not as LangChain would print it."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from langchain_core.callbacks import CallbackManagerForToolRun
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel

from loopwright import annotate, tool
from loopwright.tools import Effect, contract_of, to_output


class Kind(Enum):
    """A kind of order."""

    GIFT = "gift"


class Order(BaseModel):
    """An order."""

    total: Decimal


RESULTS: dict[str, Callable[[], Any]] = {
    "a dict": lambda: {"at": dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.UTC), "b": None},
    "a decimal": lambda: Decimal("1.10"),
    "a set": lambda: {3, 1, 2},
    "a model": lambda: Order(total=Decimal("1.10")),
    "an enumeration": lambda: Kind.GIFT,
    "bytes": lambda: b"abc",
    "nothing": lambda: None,
    "an empty list": list,
    "a generator": lambda: (number for number in range(3)),
    "text": lambda: "as it is",
    "blocks": lambda: [{"type": "text", "text": "a"}],
    "an error": lambda: ValueError("no"),
}


def both(existing: BaseTool, args: dict[str, Any]) -> list[str]:
    """Call a tool by the doors that it has."""
    contract = contract_of(existing)
    texts = [to_output(contract.run(args, Effect())).text]
    if contract.arun is not None:
        awaited: Any = contract.arun(args, Effect())
        texts.append(to_output(asyncio.run(awaited)).text)
    return texts


@pytest.mark.parametrize("build", RESULTS.values(), ids=RESULTS)
def test_c42_a_result_is_read_as_one_of_ours(build: Callable[[], Any]) -> None:
    """By each kind of tool that LangChain has."""

    def give() -> Any:
        """Give something back."""
        return build()

    async def agive() -> Any:
        """Give something back."""
        return build()

    class Given(BaseTool):
        name: str = "give"
        description: str = "Give something back."

        def _run(self) -> Any:
            return build()

    ours = to_output(tool(effect="read")(give).contract.run({}, Effect())).text
    made = StructuredTool.from_function(coroutine=agive, name="give", description="Give something back.")
    both_ways = StructuredTool.from_function(func=give, coroutine=agive, name="give", description="Give.")
    texts = [text for one in (langchain_tool(give), made, both_ways, Given()) for text in both(one, {})]
    assert {ours} == {*texts}
    assert "datetime" not in ours


def test_what_langchain_passes_in_still_comes() -> None:
    """The config and the callbacks; and a tool that counts its calls does so itself."""

    class Counting(BaseTool):
        name: str = "counting"
        description: str = "Count the calls of this tool."
        calls: int = 0

        def _run(self, config: RunnableConfig, run_manager: CallbackManagerForToolRun | None = None) -> Any:
            self.calls += 1
            return {"config": "callbacks" in config, "manager": run_manager is not None}

    counting = Counting()
    assert ['{"config": true, "manager": true}'] == both(counting, {})
    assert 1 == counting.calls
    assert isinstance(counting.invoke({"type": "tool_call", "id": "c", "name": "counting", "args": {}}), ToolMessage)


def test_content_and_artifact() -> None:
    """Both come as they are; called by itself, an annotated tool still gives the content."""

    @langchain_tool(response_format="content_and_artifact")
    def look() -> tuple[Any, Any]:
        """Look something up."""
        return {"at": dt.date(2026, 1, 2)}, {"raw": Decimal("1.10")}

    annotated = annotate(look, effect="read")
    output = to_output(annotated.contract.run({}, Effect()))
    assert ('{"at": "2026-01-02"}', {"raw": "1.10"}) == (output.text, output.artifact)
    assert {"at": dt.date(2026, 1, 2)} == annotated.invoke({})


def test_an_error_that_langchain_handles_is_one() -> None:
    """It is no result: nothing was done."""

    @langchain_tool
    def fail() -> Any:
        """Fail in some way."""
        raise ToolException("sold out")

    fail.handle_tool_error = True
    with pytest.raises(ToolException, match="sold out"):
        contract_of(fail).run({}, Effect())
