"""Tools of real MCP servers, over standard input and output and over HTTP; they misbehave on demand."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import signal
import sys
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import SecretStr
from tests.world.mcp_shop import Opened, Shop, serve
from tests.world.servers import Server, wait_until

from loopwright import check, create_agent
from loopwright.errors import ConfigurationError, NotDone, ToolError, UnknownTool
from loopwright.testing import ScriptedModel
from loopwright.tools import Effect, EffectKind, OutOfTime, await_within, to_output
from loopwright.tools.mcp import McpServer, aopen_mcp, open_mcp, session

TOKEN = "sk-very-secret-1"


@pytest.fixture(scope="module", name="opened")
def open_stdio(tmp_path_factory: pytest.TempPathFactory) -> Generator[Opened]:
    """One server for the tests that leave it as it was."""
    shop = Shop(tmp_path_factory.mktemp("stdio"))
    with open_mcp({"shop": {**shop.server, "env": {"SHOP_TOKEN": SecretStr(TOKEN)}}}, trust_hints=True) as tools:
        yield Opened(shop, tools)


def test_each_tool_is_one_of_ours(opened: Opened) -> None:
    """Named after its server, with the arguments as they were described, untrusted, its effect as the hints say."""
    told = convert_to_openai_tool(opened["order"])["function"]
    assert ("shop__order", {"type": "string"}) == (
        told["name"],
        {key: part for key, part in told["parameters"]["properties"]["order_id"].items() if key != "title"},
    )
    kinds = {name: opened[name].contract.effect for name in ("order", "refund", "label", "fails")}
    assert {
        "order": EffectKind.READ,
        "refund": EffectKind.WRITE,
        "label": EffectKind.IDEMPOTENT,
        "fails": EffectKind.WRITE,
    } == kinds
    assert [True] * len(opened.tools) == [one.contract.untrusted for one in opened.tools]


def test_check_shows_what_the_server_says(opened: Opened) -> None:
    """Its words stand there as its own, line by line, so that none can pass for a line of the report."""
    report = str(check(create_agent(ScriptedModel(["done"]), [opened["refund"]])))
    assert "shop__refund, in the words of the MCP server 'shop'\n  | Pay the money of an order back.\n" in report


def test_calls_from_threads_and_loops_reach_one_server(opened: Opened) -> None:
    """Sync and async, from several threads and event loops at once; each gets its own answer."""
    heard: list[str] = []

    async def both() -> None:
        heard.extend(await asyncio.gather(*(opened.acall("order", order_id=f"B{n}") for n in range(5))))

    def work(n: int) -> None:
        heard.append(opened.call("order", order_id=f"A{n}"))
        asyncio.run(both())

    threads = [threading.Thread(target=work, args=(n,)) for n in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    asked = [
        *(f"A{n}" for n in range(3)),
        *(f"B{n}" for n in range(5)),
        *(f"B{n}" for n in range(5)),
        *(f"B{n}" for n in range(5)),
    ]
    assert sorted(f"order {one}: 250 euros" for one in asked) == sorted(heard)


def test_called_by_itself_it_is_a_langchain_tool(opened: Opened) -> None:
    """Without a run around it, as in a unit test: content for the message, the data as its artifact."""
    made: Any = opened["data"].invoke({"type": "tool_call", "id": "1", "name": "shop__data", "args": {}})
    assert isinstance(made, ToolMessage)
    assert {"total": 250} == made.artifact


def test_the_key_goes_to_the_server(opened: Opened) -> None:
    """In `_meta`, for whatever changes something."""
    before = len(opened.shop.keys)
    opened.call("label", order_id="A100")
    assert ["key-1"] == opened.shop.keys[before:]


def test_an_error_of_a_tool_was_met_after_it_had_begun(opened: Opened) -> None:
    """So it is no `NotDone`: a write that failed may have happened."""
    with pytest.raises(ToolError, match="the bank hung up") as caught:
        opened.call("fails", order_id="A100")
    assert not isinstance(caught.value, NotDone)


def test_a_call_that_the_server_does_not_take_was_not_begun(opened: Opened) -> None:
    """The schema is checked here; what gets through is refused there before anything is done."""
    before = len(opened.shop.paid)
    with pytest.raises(ToolError, match="order_id"):
        opened.call("refund", other=1)
    assert before == len(opened.shop.paid)


BARE = """
import json, sys
tools, answer = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    said = {
        "initialize": {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                  "serverInfo": {"name": "bare", "version": "1"}}},
        "tools/list": {"result": {"tools": [
            {"name": f"t{one}", "description": "Do it.", "inputSchema": {"type": "object"}} for one in range(tools)]}},
        "tools/call": answer,
    }.get(asked["method"])
    if said is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
"""


def bare(tools: int, answer: dict[str, Any]) -> McpServer:
    """Start a server that lists so many tools, and answers each call of one with the very same."""
    return {"command": sys.executable, "args": ["-c", BARE, json.dumps([tools, answer])]}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"error": {"code": -32602, "message": "the bank knows no such account"}}, "the bank knows no such account"),
        (
            {"result": {"isError": True, "content": [], "structuredContent": {"code": "sold out"}}},
            '{"code": "sold out"}',
        ),
    ],
)
def test_an_error_that_can_come_in_the_midst_of_a_call(answer: dict[str, Any], said: str) -> None:
    """It is told, as text or as data, and what has been done is not known; refused parameters may be the bank's."""
    with open_mcp({"bare": bare(1, answer)}) as tools, pytest.raises(ToolError) as caught:
        tools[0].contract.run({}, Effect(key="key-1"))
    assert (False, True) == (isinstance(caught.value, NotDone), said in str(caught.value))


def test_a_list_that_is_too_long_opens_nothing() -> None:
    """It is refused as soon as it is seen."""
    with pytest.raises(ConfigurationError, match="'bare' cannot be used: it lists more than 1,000 tools"):
        open_mcp({"bare": bare(1001, {})})


def test_all_kinds_of_content_become_what_providers_take(opened: Opened) -> None:
    """A picture by what it is, not by what it is called; sound and files as a line; never an exception."""
    output = to_output(opened["mixed"].contract.run({}, Effect()))
    kinds = [(block["type"], block.get("mime_type") or block["text"]) for block in output.blocks]
    assert [
        ("text", "hello"),
        ("image", "image/png"),
        ("text", "(sound, audio/wav, about 3 bytes, is left out)"),
        ("text", "file:///notes.txt:\na note"),
        ("text", "(a link to file:///notes.txt: notes)"),
    ] == kinds


def test_structured_content_is_text_and_artifact(opened: Opened) -> None:
    """The model reads it, a program gets it as data."""
    output = to_output(opened["data"].contract.run({}, Effect()))
    assert ({"total": 250}, True) == (output.artifact, '"total": 250' in output.text)


def test_progress_is_heard(opened: Opened) -> None:
    """What the server says of a long call reaches whoever follows the run."""
    said: list[str] = []

    class Heard(Effect):
        def progress(self, text: str) -> None:
            said.append(text)

    opened["steps"].contract.run({}, Heard())
    assert ["1 of 2"] == said


def test_a_secret_that_comes_back_is_taken_out(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    """A server that tells its environment tells the model nothing; nor is it in a log or a repr."""
    with caplog.at_level(logging.DEBUG):
        assert "(secret) None" == opened.call("secrets")
    assert TOKEN not in caplog.text + repr(opened.tools[0]) + repr(opened.tools)


def test_a_secret_among_the_messages_is_in_no_log(opened: Opened, caplog: pytest.LogCaptureFixture) -> None:
    """The client library logs what it cannot read: without the secret, nor a part of it. Others log as they did."""
    with caplog.at_level(logging.DEBUG):
        assert "done" == opened.call("blabs")
        assert "order A1: 250 euros" == opened.call("order", order_id="A1")
        logging.getLogger("mcp.client.stdio").error("%s of another client", TOKEN)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert "Failed to parse JSONRPC message from server (ValidationError)" in said
    assert any("nonsense" in one and "(secret)" in one for one in said)
    assert f"{TOKEN} of another client" == said.pop()
    assert TOKEN[:9] not in caplog.text.replace(f"{TOKEN} of another client", "")


def test_a_server_that_dies_is_started_again(tmp_path: Path) -> None:
    """A read is sent once more. A write is not: it was begun. The next call has a new server."""
    shop = Shop(tmp_path)
    with open_mcp({"shop": shop.server}, trust_hints=True) as tools:
        opened = Opened(shop, tools)
        assert ("alive again", 2) == (opened.call("dies", once=True), shop.starts)
        with pytest.raises(ToolError, match="connection ended") as caught:
            opened.call("pays_and_dies", order_id="A100")
        assert (False, ["A100"]) == (isinstance(caught.value, NotDone), shop.paid)
        assert ("paid A101", 3) == (opened.call("refund", order_id="A101"), shop.starts)
    with pytest.raises(NotDone, match="closed"):
        opened.call("refund", order_id="A102")


@pytest.mark.parametrize(
    ("variant", "said"),
    [("description", r"changed \(description\)"), ("arguments", r"changed \(arguments\)"), ("gone", "gone")],
)
def test_a_tool_that_changed_in_silence_does_not_run(variant: str, said: str, opened: Opened) -> None:
    """A write looks at the list right before, and another tool under the same name is not called."""
    before = len(opened.shop.paid)
    opened.shop.change(variant)
    try:
        with pytest.raises(NotDone, match=said):
            opened.call("refund", order_id="A100")
        assert "order A1: 250 euros" == opened.call("order", order_id="A1")
    finally:
        opened.shop.change("")
    assert before == len(opened.shop.paid)
    assert "paid A102" == opened.call("refund", order_id="A102")  # it is what it was


def test_a_list_that_is_announced_is_read_before_the_next_call(opened: Opened) -> None:
    """Also before a read: here the announced list is nonsense, so that nothing in it can be relied on."""
    assert "changed" == opened.call("change", variant="twice")
    with pytest.raises(NotDone, match="two tools called 'refund'"):
        opened.call("order", order_id="A1")
    opened.shop.change("")
    assert "order A1: 250 euros" == opened.call("order", order_id="A1")


def test_a_server_that_cannot_be_reached_says_why() -> None:
    """At once, by name, and without what it was given."""
    with pytest.raises(ConfigurationError, match="'shop' cannot be used: its command cannot be started"):
        open_mcp({"shop": {"command": "no-such-command"}})
    with pytest.raises(ConfigurationError, match="'shop' cannot be used: it failed: Connection closed"):
        open_mcp({"shop": {"command": sys.executable, "args": ["-c", "pass"]}})
    with pytest.raises(ConfigurationError, match="'docs' cannot be used: it cannot be reached") as caught:
        open_mcp({"docs": {"url": "http://127.0.0.1:9/mcp", "headers": {"authorization": SecretStr(TOKEN)}}})
    assert TOKEN not in str(caught.value)


def test_a_write_that_hangs_may_have_happened(tmp_path: Path) -> None:
    """It is given up in time, and nothing else waits for it; closing ends what still hangs."""
    shop = Shop(tmp_path)
    given_up: list[str] = []
    with open_mcp({"shop": shop.server}, trust_hints=True) as tools:
        opened = Opened(shop, tools)

        def hang() -> None:
            with pytest.raises(ToolError, match="connection ended") as caught:
                opened.call("hangs", order_id="A100")
            given_up.append(type(caught.value).__name__)

        waiting = threading.Thread(target=hang)
        waiting.start()
        wait_until(lambda: shop.paid == ["A100"])
        assert "order A1: 250 euros" == opened.call("order", order_id="A1")
    waiting.join()
    assert ["ToolError"] == given_up


def test_a_server_that_answers_nobody_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is stuck as a whole is ended and started anew: before the next write, while nothing has been sent."""
    monkeypatch.setattr(session, "LIST_SECONDS", 0.3)
    shop = Shop(tmp_path)

    async def use(opened: Opened) -> None:
        with pytest.raises(OutOfTime):
            await await_within(0.2, lambda: opened.acall("stuck"))
        assert ("paid A101", 2) == (await opened.acall("refund", order_id="A101"), shop.starts)

    with open_mcp({"shop": shop.server}, trust_hints=True) as tools:
        asyncio.run(use(Opened(shop, tools)))


@pytest.fixture(scope="module", name="served")
def serve_http(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Shop, Server]]:
    """The shop over HTTP, which a test may end and start again."""
    folder = tmp_path_factory.mktemp("http")
    with serve(folder) as server:
        yield Shop(folder), server


async def _over_http(shop: Shop, served: Server) -> None:
    tokens = (f"Bearer token-{n}" for n in itertools.count())
    address: McpServer = {"url": f"{served.url}/mcp", "headers": {"authorization": lambda: next(tokens)}}
    async with await aopen_mcp({"shop": address}, trust_hints=True) as tools:
        opened = Opened(shop, tools)
        call = opened.acall
        assert "None (secret)" == await call("secrets")
        with pytest.raises(ToolError, match="cannot be reached") as caught:
            await call("pays_and_dies", order_id="A100")
        assert (False, ["A100"], ["key-1"]) == (isinstance(caught.value, NotDone), shop.paid, shop.keys)
        with pytest.raises(NotDone, match="cannot be reached"):
            await call("refund", order_id="A101")
        served.stop()  # nobody has waited for the process yet
        served.start()
        assert "paid A101" == await call("refund", order_id="A101")
        served.stop(signal.SIGKILL)
        served.start()  # it does not know the session any more
        assert "order A1: 250 euros" == await call("order", order_id="A1")


def test_a_server_over_http(served: tuple[Shop, Server]) -> None:
    """Its death in a call is noticed, a write is unknown then; found again, it is greeted anew, with a fresh token."""
    asyncio.run(_over_http(*served))


def test_a_pin_of_another_version_opens_nothing(served: tuple[Shop, Server], opened: Opened) -> None:
    """Or leaves the tool out, if that is what was asked for; a misspelt name is a mistake either way."""
    known = opened.tools.versions["shop__order"]
    pin = {"shop__refund": "0" * 32, "shop__order": known, "shop__lost": known}
    servers: dict[str, McpServer] = {"shop": {"url": f"{served[1].url}/mcp"}}
    with pytest.raises(ConfigurationError, match="shop__refund is another now, shop__lost is gone now"):
        open_mcp(servers, pin=pin)
    with open_mcp(servers, pin=pin, on_changed="leave_out", tools={"shop__order": {"effect": "read"}}) as tools:
        effects = {one.name: one.contract.effect.value for one in tools}
    assert (None, "read", "write") == tuple(effects.get(f"shop__{one}") for one in ("refund", "order", "label"))
    with pytest.raises(UnknownTool, match="shop__ordre"):
        open_mcp(servers, tools={"shop__ordre": {}})
    with open_mcp(servers, leave_out=["shop__dies"]) as tools:
        assert {**opened.tools.versions} == {**tools.versions, "shop__dies": opened.tools.versions["shop__dies"]}
