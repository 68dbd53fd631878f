"""`open_mcp`: the tools of one or several servers, as tools of ours."""

from __future__ import annotations

import asyncio
import atexit
from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Literal, Self, Unpack, cast, overload

from typing_extensions import TypedDict

from loopwright.errors import ConfigurationError, UnknownTool
from loopwright.state import is_span, refuse_unknown
from loopwright.tools.contract import Contract, check_contract
from loopwright.tools.options import ToolOptions, declare
from loopwright.tools.schemas import described
from loopwright.tools.tool import Tool

from .hints import Described, check_distinct, declared_options, offered_name
from .remote import Remote
from .servers import McpServer, check_server

if TYPE_CHECKING:
    from .session import Loop, Session


class McpOptions(TypedDict, total=False):
    """How the tools of the servers are taken in; each can be left out."""

    tools: Mapping[str, ToolOptions]
    """What the service itself declares of a tool, by the name that the model sees: `{"shop__refund": {"effect":
    "idempotent"}}`. It counts more than what the server says."""
    trust_hints: bool
    """Whether a server may declare its own tools harmless (`readOnlyHint`, `idempotentHint`). False by default: then
    all that the service does not declare is a `write`."""
    trust_errors: bool
    """Whether a tool that answers with an error has done nothing. False by default: then a `write` that failed may
    have happened, and somebody is asked."""
    pin: Mapping[str, str]
    """The versions of tools (`McpTools.versions`) that somebody has looked at."""
    on_changed: Literal["refuse", "leave_out"]
    """What happens where a pinned tool is another one now, or gone: `refuse`, the default, opens nothing; `leave_out`
    opens the others."""
    leave_out: Collection[str]
    """Tools that are not taken, by the name that the model would see."""
    connect_seconds: float
    """For connecting and for each list of tools; 10 by default."""


class McpTools(Sequence[Tool]):
    """The tools of the servers: a sequence, for `create_agent`; and what closes the sessions.

    They can be called from any thread and any event loop, until they are closed or the process ends. Usable with
    `with` and with `async with`; `close` may be called twice. A tool that is called afterwards says that nothing was
    done.
    """

    def __init__(self, loop: Loop, sessions: Sequence[Session], tools: Sequence[Tool]) -> None:
        """Take over what was opened."""
        self._tools = (*tools,)
        self._loop = loop
        self._sessions = sessions
        atexit.register(self.close)
        self.versions: Mapping[str, str] = MappingProxyType({one.name: one.contract.version for one in tools})
        """A digest of each tool's name, description, arguments and hints: what `pin` takes."""

    @overload
    def __getitem__(self, index: int) -> Tool: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Tool]: ...

    def __getitem__(self, index: int | slice) -> Tool | Sequence[Tool]:
        """Return a tool by its place, or several."""
        return self._tools[index]

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        """Return them in the servers' order."""
        return iter(self._tools)

    def close(self) -> None:
        """End the sessions, and the processes that were started for them."""
        atexit.unregister(self.close)
        _close(self._loop, self._sessions)

    async def aclose(self) -> None:
        """Do the same off the event loop."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        """Use it in a block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Use it in a block."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it, off the event loop."""
        await self.aclose()


def open_mcp(servers: Mapping[str, McpServer], **options: Unpack[McpOptions]) -> McpTools:
    """Connect to MCP servers and return their tools; blocks until all have answered.

    A tool is called `server__tool`. All that comes back counts as written by strangers (`untrusted`), and a tool is a
    `write`, unless declared otherwise. What it was when it was opened is what is called: if its server has changed its
    description, its arguments or its hints since, a call does not run.

    Args:
        servers: By the name that their tools are to carry in front; see `McpServer`.
        **options: See `McpOptions`.

    Raises:
        ConfigurationError: If a server cannot be reached, or offers what cannot be used; if an option or a pin does not
            fit; if the extra `mcp` is not installed.
    """
    settings = {name: check_server(name, given) for name, given in _servers(servers).items()}
    _check_options(options)
    try:
        from .session import Loop, Session
    except ImportError as error:
        text = "MCP servers need the extra 'mcp': pip install 'loopwright[mcp]'"
        raise ConfigurationError(text, missing=error.name) from error
    seconds = options.get("connect_seconds", 10.0)
    sessions = [Session(name, given, connect_seconds=seconds) for name, given in settings.items()]
    loop = Loop([session.vault for session in sessions])
    try:
        offers = loop.submit(_offers(sessions)).result()
        tools = [_tool(offer, options, loop) for offer in _chosen(offers, options)]
    except BaseException:
        _close(loop, sessions)
        raise
    return McpTools(loop, sessions, tools)


async def aopen_mcp(servers: Mapping[str, McpServer], **options: Unpack[McpOptions]) -> McpTools:
    """Do what `open_mcp` does, off the event loop."""
    return await asyncio.to_thread(lambda: open_mcp(servers, **options))


def _close(loop: Loop, sessions: Sequence[Session]) -> None:
    from .line import NotSent

    try:
        loop.submit(_end(sessions)).result()
    except NotSent:  # closed already, or another process's
        return
    loop.close()


async def _end(sessions: Sequence[Session]) -> None:
    """Close the sessions, and let the calls that are under way hear of it."""
    await asyncio.gather(*(session.close() for session in sessions))
    if others := asyncio.all_tasks() - {asyncio.current_task()}:
        await asyncio.wait(others, timeout=1)


def _servers(given: object) -> Mapping[str, object]:
    if not isinstance(given, Mapping) or not given:
        text = "open_mcp takes the servers by name: open_mcp({'shop': {'command': 'python', 'args': ['shop.py']}})"
        raise ConfigurationError(text)
    return cast("Mapping[str, object]", given)


def _check_options(options: McpOptions) -> None:
    given = cast("Mapping[str, object]", options)
    refuse_unknown("open_mcp", given, McpOptions.__annotations__)
    for option in ("trust_hints", "trust_errors"):
        if not isinstance(given.get(option, False), bool):
            raise ConfigurationError(f"open_mcp: {option} is {given[option]!r}; give True or False", option=option)
    for option in ("tools", "pin"):
        if not isinstance(given.get(option, {}), Mapping):
            text = f"open_mcp: {option} is {given[option]!r}; give a mapping by the names that the model sees"
            raise ConfigurationError(text, option=option)
    left: object = given.get("leave_out", ())
    if isinstance(left, str) or not isinstance(left, Collection):
        text = f"open_mcp: leave_out is {left!r}; give a list of the names that the model would see"
        raise ConfigurationError(text, option="leave_out")
    if given.get("on_changed", "refuse") not in ("refuse", "leave_out"):
        text = f"open_mcp: on_changed is {given['on_changed']!r}; give 'refuse' or 'leave_out'"
        raise ConfigurationError(text, option="on_changed")
    if not is_span(given.get("connect_seconds", 10.0)):
        text = f"open_mcp: connect_seconds is {given['connect_seconds']!r}; give seconds above 0, as a number"
        raise ConfigurationError(text, option="connect_seconds")


Offer = tuple[str, "Session", Described]
"""The name that the model sees, and what stands behind it."""


async def _offers(sessions: Sequence[Session]) -> list[Offer]:
    """Ask all servers at once what they offer."""
    listed = await asyncio.gather(*(_offer(session) for session in sessions))
    return [one for offers in listed for one in offers]


async def _offer(session: Session) -> list[Offer]:
    from .line import NotSent

    try:
        found = await session.tools()
    except NotSent as error:
        text = f"the MCP server {session.name!r} cannot be used: {error}"
        raise ConfigurationError(text, server=session.name) from None
    return [(offered_name(session.name, tool.name), session, tool) for tool in found.values()]


def _chosen(offers: Sequence[Offer], options: McpOptions) -> list[Offer]:
    """Return the offers that are taken, after the pins have been compared."""
    versions = {name: tool.version for name, _, tool in offers}
    left = {*options.get("leave_out", ())}
    _check_known("leave_out", left, versions)
    _check_known("tools", options.get("tools", {}), versions)
    other = [name for name, version in options.get("pin", {}).items() if versions.get(name) != version]
    if other and options.get("on_changed", "refuse") == "refuse":
        said = ", ".join(f"{name} is {'another' if name in versions else 'gone'} now" for name in other)
        text = f"pinned tools have changed: {said}; look at them (`check` shows what they say), and pin them anew"
        raise ConfigurationError(text, tool=other[0], option="pin")
    taken = [offer for offer in offers if offer[0] not in left | {*other}]
    check_distinct((name, tool.name) for name, _, tool in taken)
    return taken


def _check_known(option: str, names: Collection[str], offered: Collection[str]) -> None:
    if unknown := [name for name in names if name not in offered]:
        known = ", ".join(offered) or "none"
        text = f"open_mcp: {option} names {unknown[0]!r}, which no server offers; there are: {known}"
        raise UnknownTool(text, target=unknown[0], option=option)


def _tool(offer: Offer, options: McpOptions, loop: Loop) -> Tool:
    name, session, tool = offer
    own = options.get("tools", {}).get(name, {})
    hinted = declared_options(name, tool, own, trust_hints=options.get("trust_hints", False))
    remote = Remote(session, tool, loop, trust_errors=options.get("trust_errors", False))
    contract = declare(
        Contract(
            name,
            tool.description.strip() or f"The tool {tool.name!r} of the server {session.name!r}, which says no more.",
            described(name, tool.schema),
            remote.run,
            arun=remote.arun,
            reports=True,
            origin=f"the MCP server {session.name!r}",
            version=tool.version,
        ),
        hinted,
    )
    remote.bind(contract)
    return Tool(
        name=name,
        description=contract.description,
        args_schema=contract.schema,
        response_format="content_and_artifact",
        contract=check_contract(contract),
    )
