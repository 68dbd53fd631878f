"""One tool of one server, as the doors of a contract call it; and what its failures mean."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from loopwright.errors import NotDone, ToolError
from loopwright.tools.contract import Contract, Effect

from .hints import Described

if TYPE_CHECKING:
    from mcp import types

    from .session import Loop, Session

GRACE_SECONDS = 5.0
"""A call is waited for so much longer than its timeout: whoever runs it gives up first, and says so."""


class Remote:
    """Calls the tool over the server's session."""

    def __init__(self, session: Session, tool: Described, loop: Loop, *, trust_errors: bool) -> None:
        """Say what is called; `bind` says under which contract."""
        self._session = session
        self._tool = tool
        self._loop = loop
        self._trust_errors = trust_errors
        self._is_read = False
        self._seconds = 0.0

    def bind(self, contract: Contract) -> None:
        """Take the contract that was declared."""
        self._is_read = contract.is_read
        self._seconds = contract.timeout + GRACE_SECONDS

    def run(self, args: dict[str, Any], effect: Effect) -> Any:
        """Call it, blocking.

        Raises:
            NotDone: If it is known that nothing happened.
            ToolError: If that is not known.
        """
        try:
            result = self._send(args, effect).result()
        except Exception as error:  # noqa: BLE001 -- told apart below
            raise self._told(error) from None
        return self._taken(result)

    async def arun(self, args: dict[str, Any], effect: Effect) -> Any:
        """Call it, awaited; cancelling that takes the call off the line, and the server may go on with it.

        Raises:
            NotDone: If it is known that nothing happened.
            ToolError: If that is not known.
        """
        try:
            result = await asyncio.wrap_future(self._send(args, effect))
        except Exception as error:  # noqa: BLE001 -- told apart below
            raise self._told(error) from None
        return self._taken(result)

    def _send(self, args: dict[str, Any], effect: Effect) -> Future[types.CallToolResult]:
        key = "" if self._is_read else effect.key
        work = self._session.call(self._tool, args, key=key, seconds=self._seconds, said=effect.progress)
        return self._loop.submit(work)

    def _told(self, error: Exception) -> Exception:
        from .line import NotBegun, NotSent

        said = f"the MCP server {self._session.name!r}: {str(error) or type(error).__name__}"
        return NotDone(said) if isinstance(error, NotBegun | NotSent) else ToolError(said)

    def _taken(self, result: types.CallToolResult) -> Any:
        """Return what it brought. An error that it tells was met after it had begun."""
        from .content import to_result, to_words

        hide = self._session.vault.hide_in
        if not result.isError:
            return to_result(result, hide)
        said = to_words(result, hide)
        raise NotDone(said) if self._trust_errors else ToolError(said)
