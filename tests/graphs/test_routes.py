"""Where the ring goes next, as tables."""

from __future__ import annotations

from typing import Any, cast

import pytest
from langgraph.graph import END

from loopwright import Limits
from loopwright.graphs.routes import Routes
from loopwright.nodes import Moment, moment_of
from loopwright.state import AgentState, Verdict, instant_result, new_call, no_usage
from loopwright.state import Outcome as Became

RUN = {
    "id": "r",
    "task_id": "t",
    "task": "",
    "began": 0.0,
    "status": "running",
    "reason": "",
    "answer": "",
    "error": "",
}
TOTALS = dict.fromkeys(("runs", "steps", "tool_calls", "tokens", "cost_nano"), 0)
THREAD: dict[str, Any] = {**TOTALS, "version": 1, "window": {}}
PARKED: dict[str, Any] = {
    "name": "model:m",
    "why": "",
    "until": 9.0,
    "approval": "",
    "left": [0],
    "tried": 0,
    "counted": 0,
    "is_over": False,
}
IS_PARKED = {**RUN, "parked": PARKED}
IS_TOLD = {**RUN, "parked": {**PARKED, "approval": "q"}}
IS_OVER = {**RUN, "parked": {**PARKED, "approval": "q", "is_over": True}}
ROUTES = Routes(Limits(max_steps=3))


def state(*verdicts: Verdict, **channels: Any) -> AgentState:
    """A state with calls of these verdicts on the table."""
    turn = [{**new_call(f"c{number}", "f", {}), "verdict": verdict} for number, verdict in enumerate(verdicts)]
    whole: dict[str, Any] = {
        "run": RUN,
        "thread": THREAD,
        "usage": no_usage(),
        "turn": turn,
        "messages": [],
        **channels,
    }
    return cast("AgentState", whole)


def used(steps: int) -> dict[str, Any]:
    """Usage with so many steps."""
    return {**no_usage(), "steps": steps}


@pytest.mark.parametrize(
    ("given", "route"),
    [
        (state(), "reason"),
        (state(usage=used(3)), "guard"),
        (state(run={**RUN, "stop": "escalated"}), "guard"),
        (state(Verdict.UNKNOWN), "guard"),
    ],
)
def test_after_observe(given: AgentState, route: str) -> None:
    """Reason while all is well; else the guard."""
    assert route == ROUTES.after_observe(given)


@pytest.mark.parametrize(
    ("given", "route"),
    [
        (state(run={**RUN, "status": "succeeded"}), END),
        (state(run={**RUN, "status": "stopped"}), END),
        (state(Verdict.ASK), "guard"),
        (state(Verdict.ALLOW, Verdict.ASK), "guard"),
        (state(Verdict.DENY, Verdict.INVALID, Verdict.NOT_RUN, Verdict.ANSWERED), "observe"),
        (state(), "reason"),
        (state(usage=used(3)), "guard"),
        (state(run=IS_PARKED), "guard"),
        (state(run=IS_TOLD), "guard"),
        (state(run={**IS_TOLD, "purpose": "wrap_up"}), "guard"),
        (state(run=IS_OVER), "reason"),
        (state(run={**IS_OVER, "purpose": "wrap_up"}), "reason"),
        (state(run={**RUN, "stop": "cancelled"}), "guard"),
    ],
)
def test_after_guard(given: AgentState, route: str) -> None:
    """End, ask, go on without a call, or reason again."""
    assert route == ROUTES.after_guard(given)


def test_what_may_run_runs() -> None:
    """One task a call; not what was denied, and not what has a result already."""
    done = {**new_call("old", "f", {}), "verdict": Verdict.ALLOW, "result": instant_result("old", Became.DONE, "x")}
    given = state(Verdict.ALLOW, Verdict.DENY, Verdict.ALLOW)
    given["turn"].append(cast("Any", done))
    sends = ROUTES.after_guard(given)
    assert isinstance(sends, list)
    assert ["act", "act"] == [send.node for send in sends]
    assert ["c0", "c2"] == [send.arg["call"]["id"] for send in sends]


CALLS: dict[str, Any] = {"kind": "call_tools", "calls": [], "thought": ""}


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        (state(decision=CALLS), Moment.SCREEN),
        (state(decision={"kind": "final_answer", "text": "x"}), Moment.CONCLUDE),
        (state(decision={"kind": "malformed", "why": "empty", "text": ""}), Moment.CONCLUDE),
        (state(Verdict.ASK), Moment.ASK),
        (state(Verdict.ASK, answers=[{"approval": "q", "value": 1, "by": ""}]), Moment.JUDGE),
        (state(Verdict.UNKNOWN, Verdict.ASK), Moment.OPEN),
        (state(Verdict.HELD, Verdict.ASK), Moment.OPEN),
        (state(run=IS_PARKED), Moment.OPEN),
        (state(run=IS_TOLD), Moment.ASK),
        (state(run=IS_TOLD, answers=[{"call": "", "value": 1, "by": ""}]), Moment.JUDGE),
        (state(run={**IS_OVER, "stop": "cancelled"}), Moment.STOP),
        (state(), Moment.STOP),
    ],
)
def test_the_guards_moments(given: AgentState, moment: Moment) -> None:
    """What it is there for follows from the state alone."""
    assert moment is moment_of(given)
