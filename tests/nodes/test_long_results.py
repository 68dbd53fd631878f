"""Results that are too long to be shown whole: cut, kept, and read on in."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.messages import AnyMessage, ToolMessage
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned

from loopwright import Checkpoints, create_agent, tool
from loopwright.errors import DuplicateTool
from loopwright.testing import ScriptedModel, call, check_transcript


@tool(effect="read", untrusted=True)
def fetch(page: int) -> str:
    """Fetch a page by its number; each is 30 kB long."""
    return f"page {page} " + "".join(f"{number:05} " for number in range(5000)) + "end"


@tool(effect="read", response_format="content_and_artifact")
def rows(count: int) -> tuple[str, list[int]]:
    """Return so many rows as text, and as data."""
    return "row " * count, [*range(3)]


def read_on(messages: list[AnyMessage]) -> Any:
    """Do as the newest notice says."""
    found = re.search(r"(?:read_result\(id='(\w+)', )?offset=(\d+)", messages[-1].text[-200:])
    assert found
    ids = re.findall(r"read_result\(id='(\w+)'", "\n".join(message.text for message in messages))
    return call("read_result", id=ids[0], offset=int(found[2]))


def test_c45_many_medium_results_add_up(checkpoints: Checkpoints) -> None:
    """20 calls of 30 kB in one turn, each under the cap: together they stay under the turn's, and each says so."""
    model = planned([[call("fetch", page=number) for number in range(20)], "Done."])
    agent = create_agent(model, [fetch], max_result_characters=40_000, max_turn_characters=150_000)
    result = Desk(agent, checkpoints).run()
    check_transcript(result.messages)
    told = [message for message in result.messages if isinstance(message, ToolMessage)]
    assert [f"page {number} 00000" in message.text for number, message in enumerate(told)] == [True] * 20
    assert 140_000 < sum(len(message.text) for message in told) < 152_000
    assert all("were left out; read_result(id='" in message.text[-160:] for message in told)
    assert all(message.artifact["text"].endswith("end") for message in told)


@pytest.mark.parametrize("door", DOORS)
def test_the_model_reads_on_to_the_end(checkpoints: Checkpoints, door: DoorName) -> None:
    """By the id and offset that the notices name; the parts are the whole, without gap or overlap."""
    model = planned([call("fetch", page=7), read_on, read_on, "Done."])
    agent = create_agent(model, [fetch], max_result_characters=14_000)
    result = Desk(agent, checkpoints, door).run()
    first, *parts = [message for message in result.messages if isinstance(message, ToolMessage)]
    whole = first.artifact["text"]
    bodies = [text.split("\n", 1)[1].rsplit("\n… ", 1)[0] for text in (one.text for one in (first, *parts))]
    bodies = [body.split("\n</untrusted", 1)[0] for body in bodies]
    assert whole == "".join(bodies)
    assert ", the end" in parts[-1].text
    assert all(part.text.startswith("<untrusted") for part in parts)
    assert ["done"] * 3 == [entry["outcome"] for entry in result.trail]


def test_the_reader_is_offered_when_something_was_cut(checkpoints: Checkpoints) -> None:
    """Before that the model does not hear of it."""
    heard: list[list[str]] = []

    class Listening(ScriptedModel):
        def bind_tools(self, tools: Any, **_: Any) -> Any:
            names = [one.name for one in tools]

            class Bound(ScriptedModel):
                def _generate(self, messages: Any, *args: Any, **options: Any) -> Any:
                    heard.append(names)
                    return model._generate(messages, *args, **options)  # noqa: SLF001 -- speaks for it

            built: Any = Bound  # its constructor is the parent's
            return built([])

    listening: Any = Listening
    model = listening([call("rows", count=1), call("rows", count=9_000), "Done."])
    result = Desk(create_agent(model, [rows]), checkpoints).run()
    assert [["rows"], ["rows"], ["rows", "read_result"]] == heard
    kept = [message.artifact for message in result.messages if isinstance(message, ToolMessage)]
    assert [[0, 1, 2], [0, 1, 2]] == [kept[0], kept[1]["artifact"]]


def test_an_id_that_is_none(checkpoints: Checkpoints) -> None:
    """The model is told what is wrong, and what there is."""
    wrong = [call("read_result", id="nonsense", offset=0), read_far]
    result = Desk(create_agent(planned([call("fetch", page=1), *wrong, "Done."]), [fetch]), checkpoints).run()
    assert "no shortened result has the id 'nonsense'" in result.trail[1]["observation"]
    assert "the result has characters 0 to 30" in result.trail[2]["observation"]


def read_far(messages: list[AnyMessage]) -> Any:
    """Ask for what lies beyond the end."""
    found = re.search(r"read_result\(id='(\w+)'", "".join(message.text for message in messages))
    assert found
    return call("read_result", id=found[1], offset=99_999)


def test_the_name_is_taken() -> None:
    """A tool of that name would answer in the built-in one's place."""

    @tool(effect="read")
    def read_result(id: str) -> str:  # noqa: A002 -- as the built-in one has it
        """Read a result by its id."""
        return id

    with pytest.raises(DuplicateTool, match="built in"):
        create_agent("demo", [read_result])
