"""The form of an answer on both providers' wires: nothing is sent for it, unless it is asked for."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from tests.world.doors import Desk, DoorName
from tests.world.till import Till
from tests.world.wires import every_wire, is_openai, opened

from loopwright import Native, create_agent, open_checkpoints
from loopwright.testing import call, check_transcript
from loopwright.testing.scripted_server import Request

LOOK = call("look", order_id="A1")


class Total(BaseModel):
    """What is asked for."""

    euros: int


def sent(request: Request) -> Any:
    """Return the schema that a request has the provider enforce; None for none."""
    body = request.body
    if "response_format" in body:
        return body["response_format"]["json_schema"]["schema"]
    return body.get("output_config", {}).get("format", {}).get("schema")


@every_wire
@pytest.mark.parametrize(("door", "is_native"), [("sync", False), ("async", True)])
def test_a_form(wire: dict[str, Any], door: DoorName, *, is_native: bool) -> None:
    """Told, read, sent back and read again; with `Native` the provider is sent it too, beside the tools."""
    turns = [LOOK, "3 euros", '{"euros": 3}']
    form: Any = Native(Total) if is_native else Total
    with wire["server"](turns) as server, open_checkpoints("memory:") as checkpoints:
        agent = create_agent(opened(wire, server), [Till().look()], response_format=form)
        result = Desk(agent, checkpoints, door).run()
        server.assert_done()
    check_transcript(result.messages)
    assert ("succeeded", Total(euros=3)) == (result.status, result.output)
    assert [is_native] * 3 == [sent(request) is not None for request in server.requests]
    if is_native:
        schema = sent(server.requests[0])
        assert ("object", ["euros"]) == (schema["type"], [*schema["properties"]])
        assert all(request.body["tools"] for request in server.requests)
    elif is_openai(wire):
        system = server.requests[0].body["messages"][0]
        assert ("system", True) == (system["role"], '"euros"' in system["content"])
