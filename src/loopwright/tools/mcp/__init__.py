"""Tools of MCP servers, under the same contract as any other."""

from __future__ import annotations

from .hints import Described
from .opening import McpOptions, McpTools, aopen_mcp, open_mcp
from .servers import McpServer, Secret

__all__ = [
    "Described",
    "McpOptions",
    "McpServer",
    "McpTools",
    "Secret",
    "aopen_mcp",
    "open_mcp",
]
