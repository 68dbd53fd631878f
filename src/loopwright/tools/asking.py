"""`ask_human`: the model's way to ask a person. The guard puts the question; nothing here ever runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from pydantic import Field

from loopwright.errors import NotDone

from .tool import Tool, tool


@tool(effect="read", name="ask_human")
def _asked(
    question: Annotated[str, Field(min_length=1)],  # noqa: ARG001 -- for the person to read
    choices: list[str] | None = None,  # noqa: ARG001 -- likewise
) -> str:
    """Ask the person in charge, and wait for the answer: when a fact or a wish is missing that no other tool can find.

    Give `choices` where only certain answers make sense. Not for leave to do something: tools ask for that themselves.
    """
    raise NotDone("only a person can answer; run it within an agent")


def _build_ask_human() -> Tool:
    contract = replace(_asked.contract, by_person=True)
    return Tool(name=contract.name, description=contract.description, args_schema=contract.schema, contract=contract)


ask_human = _build_ask_human()
"""A tool whose calls are questions to a person: `respond` answers, `reject` leaves the model without an answer."""
