"""The contexts of the runs that are driven here: given by their caller, or restored from what was stored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, cast

from loopwright.checkpoints import RunRow
from loopwright.errors import ConfigurationError, RunError
from loopwright.nodes import ContextShape
from loopwright.state import canonical

from .doors import Door
from .results import Run, run_of

RestoreContext = Callable[[Mapping[str, Any], Run], object]
"""Called with the stored fields of a context and the run; returns the fields that were not stored, or a whole context.
May be async under `Runs`."""


class Contexts:
    """Finds the context of a run.

    What its caller gave is kept in memory until the run rests; while a run waits, only where no hook could bring the
    context back.
    """

    def __init__(self, shape: ContextShape | None, door: Door, restore: RestoreContext | None) -> None:
        """Take the type of the contexts, None for none, and the hook."""
        self._shape = shape
        self._door = door
        self._restore = restore
        self._given: dict[str, Any] = {}

    def taken(self, given: object) -> Any:
        """Return a context as tools get it.

        Raises:
            ConfigurationError: If it does not fit the agent, before anything is stored.
        """
        if self._shape is not None:
            return self._shape.taken(given)
        if given is not None:
            text = "a context was given, and the agent has no type for it; create_agent(…, context_schema=…)"
            raise ConfigurationError(text, option="context")
        return None

    def kept(self, context: Any) -> str:
        """Return what is stored of it."""
        return "" if self._shape is None else canonical(self._shape.kept(context))

    def remember(self, run_id: str, context: Any) -> None:
        """Keep what the caller gave, until the run rests."""
        if self._shape is not None:
            self._given[run_id] = context

    def rest(self, run_id: str, *, is_final: bool) -> None:
        """Forget a context that is not needed any more, or that the hook brings back."""
        if is_final or self._restore is not None:
            self._given.pop(run_id, None)

    async def of(self, row: RunRow) -> Any:
        """Return the context of a run that is to be driven.

        Raises:
            RunError: If it lacks what was not stored; nothing of the run is changed.
        """
        if self._shape is None:
            return None
        if row.id in self._given:
            return self._given[row.id]
        stored = cast("dict[str, Any]", json.loads(row.context)) if row.context else {}
        more: object = {}
        if self._restore is not None:
            more = await self._door.call(self._restore, stored, run_of(row))
        whole = {**stored, **cast("Mapping[str, Any]", more)} if isinstance(more, Mapping) else more
        try:
            return self._shape.taken(whole)
        except ConfigurationError as error:
            way_out = (
                "let restore_context return it" if self._restore else "give Runs or create_agent restore_context=…"
            )
            text = f"run {row.id} cannot be carried on: {error}; secrets are not stored, {way_out}"
            raise RunError(text, run_id=row.id, thread_id=row.thread_id) from None
