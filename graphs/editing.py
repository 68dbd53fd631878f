"""What a caller may write into a thread by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langgraph.types import StateUpdate

from loopwright.errors import ConfigurationError
from loopwright.nodes import AgentSpec


def check_edits(spec: AgentSpec, supersteps: Sequence[Sequence[StateUpdate]]) -> None:
    """Let `update_state` write messages and the user's own channels, and nothing that the guard goes by.

    A verdict, a counter or a run's record that is written by hand would lead around the guard, also over LangGraph's
    server, whose clients may write a thread's state.

    Raises:
        ConfigurationError: If an update names another channel, or is no mapping.
    """
    for values, as_node, *_ in (update for updates in supersteps for update in updates):
        written: Any = values
        if as_node == "__copy__" and isinstance(written, list):  # a copied checkpoint brings its own updates along
            for item in cast("list[Sequence[Any]]", written):
                _check(spec, item[0])
        else:
            _check(spec, written)


def _check(spec: AgentSpec, values: Any) -> None:
    if values is None:
        return
    free = ("messages", *spec.open_channels.names)
    if not isinstance(values, Mapping):
        text = f"update_state takes a mapping of {', '.join(free)}, not a {type(values).__name__}"
        raise ConfigurationError(text)
    closed = sorted({str(name) for name in cast("Any", values)} - set(free))
    if closed:
        text = f"update_state cannot write {', '.join(closed)}: the guard goes by it; what can be written is "
        raise ConfigurationError(text + ", ".join(free), closed=closed, free=list(free))
