"""Where the ring goes next: pure functions over the state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.graph import END
from langgraph.types import Send

from loopwright.nodes import ActTask, waits_for_model
from loopwright.policy import Bounds, bounds_of, limit_met, seconds_left
from loopwright.state import AgentState, Call, Limits, Purpose, RunStatus, Verdict


@dataclass(frozen=True, slots=True)
class Routes:
    """The ring's two forks."""

    limits: Limits
    wrap_up: bool = False
    key_of: Callable[[Call], str] = lambda _call: ""
    """Names what a call must not run at once with; empty for nothing."""

    def after_observe(self, state: AgentState) -> str:
        """Reason while all is well; else the guard asks about an outcome, or ends the run."""
        if state.get("turn") or self._is_at_limit(state):
            return "guard"
        return "reason"

    def after_guard(self, state: AgentState) -> str | list[Send]:
        """Ask, act, observe, reason again, or end.

        The whole turn waits for its questions; then all that may run, runs, one task a call.
        """
        if RunStatus(state["run"]["status"]).is_final:
            return END
        turn = state["turn"]
        if any(call["verdict"] == Verdict.ASK for call in turn) or waits_for_model(state["run"]):
            return "guard"
        if turn:
            return self._acts(state) or "observe"
        if state["run"].get("purpose", Purpose.DECIDE) != Purpose.DECIDE:
            return "reason"
        return "guard" if self._is_at_limit(state) else "reason"

    def _is_at_limit(self, state: AgentState) -> bool:
        return limit_met(self._bounds(state), state["usage"], state["run"], state["thread"]) is not None

    def _bounds(self, state: AgentState) -> Bounds:
        return bounds_of(self.limits, state["run"], state["thread"], keeps_last_words=self.wrap_up)

    def _acts(self, state: AgentState) -> list[Send]:
        calls = [call for call in state["turn"] if call["verdict"] == Verdict.ALLOW and not call.get("result")]
        return [Send("act", self._task(call, state)) for call in _in_turns(calls, self.key_of)]

    def _task(self, call: Call, state: AgentState) -> ActTask:
        run, usage = state["run"], state["usage"]
        return ActTask(
            call=call,
            run_id=run["id"],
            step=usage["steps"],
            usage=usage,
            seconds_left=seconds_left(self._bounds(state), usage),
            branch=run.get("branch", ""),
            labels=run.get("labels", {}),
        )


def _in_turns(calls: list[Call], key_of: Callable[[Call], str]) -> list[Call]:
    """Return calls in an order in which those with one key do not hold up the others: each key's first, and so on.

    As many run at once as may; calls that wait for each other would take the places of those that need not.
    """
    ranks: dict[str, int] = {}
    ranked: list[tuple[int, Call]] = []
    for call in calls:
        key = key_of(call)
        ranked.append((ranks.get(key, 0), call))
        if key:
            ranks[key] = ranks.get(key, 0) + 1
    return [call for _, call in sorted(ranked, key=lambda one: one[0])]


class Route(Runnable[AgentState, str | list[Send]]):
    """A route as LangGraph takes it.

    LangGraph would wrap a plain function so that each decision is traced as a run of its own and, under `ainvoke`,
    made in another thread: a quarter of what an awaited super-step costs.
    """

    def __init__(self, function: Callable[[AgentState], str | list[Send]]) -> None:
        """Take a pure function, and its name."""
        self.name = function.__name__
        self._function = function

    def invoke(self, input: AgentState, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:  # noqa: A002, ARG002 -- LangChain's signature
        """Decide."""
        return self._function(input)

    async def ainvoke(self, input: AgentState, config: RunnableConfig | None = None, **kwargs: Any) -> str | list[Send]:  # noqa: A002, ARG002 -- LangChain's signature
        """Decide; nothing in it waits."""
        return self._function(input)
