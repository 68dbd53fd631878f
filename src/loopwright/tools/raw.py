"""What a LangChain tool returned, before LangChain makes a text of it."""

from __future__ import annotations

import copy
import functools
from typing import Any

from langchain_core.messages.tool import ToolOutputMixin
from langchain_core.tools import BaseTool

from .results import WithArtifact, to_text, unfailed


class Raw(ToolOutputMixin):
    """A result as it is: what has this base, LangChain hands over unchanged."""

    def __init__(self, value: Any) -> None:
        """Keep the result."""
        self.value = value

    def __str__(self) -> str:
        """Show to LangChain's callbacks what the model will read."""
        return to_text(self.value.content if isinstance(self.value, WithArtifact) else self.value)


def giving_raw(existing: BaseTool) -> BaseTool:
    """Return a tool with the same body, called in the same way, whose result is a `Raw`."""
    door = copy.copy(existing)
    run, arun = existing._run, existing._arun  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # what a tool is written by

    def kept(result: Any) -> Any:
        if isinstance(result, ToolOutputMixin):
            return result
        if existing.response_format == "content":
            return Raw(result)
        pair = WithArtifact.of(existing.name, result)
        return Raw(pair), pair.artifact

    @functools.wraps(run)
    def keep(*args: Any, **kwargs: Any) -> Any:
        return kept(run(*args, **kwargs))

    @functools.wraps(arun)
    async def akeep(*args: Any, **kwargs: Any) -> Any:
        return kept(await arun(*args, **kwargs))

    # Not by a field: LangChain calls these two, and the body keeps its own `self`.
    object.__setattr__(door, "_run", keep)
    object.__setattr__(door, "_arun", akeep)
    return door


def value_of(result: Any) -> Any:
    """Return what such a tool has brought.

    Raises:
        ToolException: If it handed over an error: nothing was done.
    """
    return result.value if isinstance(result, Raw) else unfailed(result)
