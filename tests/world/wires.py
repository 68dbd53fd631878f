"""Both providers' real clients against their scripted servers: what the tests of this room share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from tests.world.till import Till

from loopwright import Limits, Retry, RunResult, SyncRuns, allow, create_agent, open_checkpoints, open_model
from loopwright.testing import AnthropicServer, OpenAIServer, check_transcript
from loopwright.testing.scripted_server import ScriptedServer, Turn

OPENAI: dict[str, Any] = {"name": "openai:gpt-5-mini", "server": OpenAIServer}
ANTHROPIC: dict[str, Any] = {"name": "anthropic:claude-haiku-4-5", "server": AnthropicServer}
STREAM: dict[str, Any] = {"streaming": True, "stream_usage": True}
GPT: dict[str, Any] = {**OPENAI, "options": {}}
CLAUDE: dict[str, Any] = {**ANTHROPIC, "options": {}}
KEY = "sk-one-key-of-a-user-0123456789"

WIRES = [
    pytest.param({**OPENAI, "options": {}}, id="openai"),
    pytest.param({**OPENAI, "options": STREAM}, id="openai-stream"),
    pytest.param({**ANTHROPIC, "options": {}}, id="anthropic"),
    pytest.param({**ANTHROPIC, "options": STREAM}, id="anthropic-stream"),
]
every_wire = pytest.mark.parametrize("wire", WIRES)


def is_openai(wire: dict[str, Any]) -> bool:
    """Tell whose wire it is."""
    return wire["server"] is OpenAIServer


def opened(wire: dict[str, Any], server: ScriptedServer, **options: Any) -> BaseChatModel:
    """Open the real client."""
    given: dict[str, Any] = {"api_key": KEY, "base_url": server.base_url}
    return open_model(wire["name"], **given, **wire["options"], **options)


def run(
    wire: dict[str, Any], turns: Sequence[Turn], *, limits: Limits | None = None, **quirks: Any
) -> tuple[RunResult, ScriptedServer, Till]:
    """Run one task against a server; whatever comes of it, its transcript is one that both providers take."""
    till = Till()
    server: ScriptedServer = wire["server"](turns, **quirks)
    with server:
        agent = create_agent(
            opened(wire, server),
            [till.look(), till.pay()],
            permissions=[allow("pay")],
            limits=limits,
            retry=Retry(tries=1),
        )
        with open_checkpoints("memory:") as checkpoints:
            result = SyncRuns(agent, checkpoints).run("Refund A1.", thread_id="t")
    assert [] == server.refused
    check_transcript(result.messages)
    return result, server, till
