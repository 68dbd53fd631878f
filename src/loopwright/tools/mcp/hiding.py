"""Keeps secrets out of the logs: the client libraries write down what a server sends them."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Sequence

from .servers import Vault

LOGGERS = (
    "",  # `mcp.shared.session` logs on the root
    "asyncio",
    "client",
    "httpcore.connection",
    "httpcore.http11",
    "httpx",
    "mcp.client.sse",
    "mcp.client.stdio",
    "mcp.client.streamable_http",
    "mcp.shared.tool_name_validation",
)
_INPUT = re.compile(r"input_value=.*?(?=, input_type=)", re.DOTALL)
"""Pydantic shows the beginning and the end of what it refused: half of a secret would not be found."""


class Discretion(logging.Filter):
    """Takes secrets out of what is logged in the thread of the sessions; what others log there stays as it is."""

    def __init__(self, vaults: Sequence[Vault]) -> None:
        """Take the vaults of all servers."""
        super().__init__()
        self._vaults = vaults
        self._thread = 0

    def begin(self, thread: threading.Thread) -> None:
        """Listen to a thread, until `end`."""
        self._thread = thread.ident or 0
        for name in LOGGERS:
            logging.getLogger(name).addFilter(self)

    def end(self) -> None:
        """Listen no more; may be called twice."""
        for name in LOGGERS:
            logging.getLogger(name).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Let the record through, without secrets; of an exception only its type, since its text repeats the server."""
        if threading.get_ident() != self._thread:
            return True
        said = _INPUT.sub("input_value=…", record.getMessage())
        for vault in self._vaults:
            said = vault.hide(said)
        if record.exc_info and record.exc_info[0] is not None:
            said = f"{said} ({record.exc_info[0].__name__})"
        record.msg, record.args, record.exc_info, record.exc_text = said, None, None, None
        return True
