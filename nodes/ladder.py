"""The loop guard's word about a proposed call, and what the model is told. Pure."""

from __future__ import annotations

from loopwright.policy import Kind, Loops, Rung, call_key, rung_of
from loopwright.state import AgentState, Call, Verdict

from .spec import AgentSpec

LOOP_GUARD = "the loop guard"

_WAY_OUT = "use what you have, take another way, or give the final answer"
LOOP_NOTES = {
    Kind.REPEAT: f"[loop guard] This call keeps bringing the same result, and will not run again now: {_WAY_OUT}.",
    Kind.CYCLE: f"[loop guard] These calls go round in a circle with the same results, and will not run again now: "
    f"{_WAY_OUT}.",
    Kind.FAILURES: f"[loop guard] This tool keeps failing the same way: {_WAY_OUT}.",
    Kind.NO_NEWS: f"[loop guard] The latest calls brought nothing that was not known before, and will not run "
    f"again now: {_WAY_OUT}.",
}
"""Put behind the result of the call that closes a loop, by its kind."""
_FORBIDDEN = f"not run: it is part of a loop that brought nothing new; {_WAY_OUT}"
_ASKED = "it is part of a loop that brought nothing new, and the model asks for it once more"


def climb(call: Call, state: AgentState, spec: AgentSpec, *, can_ask: bool) -> Call:
    """Return a screened call as the loop guard lets it pass: as it is, not run, or asked about.

    What is denied or invalid is never asked about.
    """
    tool = call["name"] if call["name"] in spec.tools else ""
    match rung_of(state["thread"]["window"], call_key(call["name"], call["args"]), tool):
        case Rung.NONE:
            return call
        case Rung.TOLD | Rung.REJECTED | Rung.ENDED:
            return _forbidden(call)
        case Rung.FORBIDDEN:
            return _asked(call) if _is_to_ask(call, spec.loops, can_ask=can_ask) else _forbidden(call)


def _forbidden(call: Call) -> Call:
    return {**call, "verdict": Verdict.NOT_RUN, "why": _FORBIDDEN, "by": LOOP_GUARD}


def _is_to_ask(call: Call, loops: Loops, *, can_ask: bool) -> bool:
    return can_ask and loops.then == "ask" and call["verdict"] in (Verdict.ALLOW, Verdict.ASK)


def _asked(call: Call) -> Call:
    """Let a person decide; where a rule asks anyway, one question holds both reasons."""
    if call["verdict"] == Verdict.ASK:
        return {**call, "why": f"{call['why']}; {_ASKED}"}
    return {**call, "verdict": Verdict.ASK, "why": _ASKED, "by": LOOP_GUARD}
