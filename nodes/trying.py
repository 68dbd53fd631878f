"""Running a tool, with another try where that can help: all tries within the call's time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from langgraph.errors import ParentCommand

from loopwright.state import Call, excerpt
from loopwright.tools import ASTRAY, Contract, Effect, Late, Output, call_aside, safe_str, to_output

from .channels import OpenChannels
from .pacing import keep_pace
from .pausing import within_tool
from .port import Port


async def run_tool(
    contract: Contract,
    call: Call,
    effect: Effect,
    *,
    seconds: float,
    tries: list[str],
    port: Port,
    late: Late | None = None,
) -> Output:
    """Return what the tool brought.

    Args:
        contract: The tool's.
        call: With canonical arguments, and what people answered when the tool asked.
        effect: The same for each try: so is the idempotency key.
        seconds: For all tries together.
        tries: Gets a line for each try that failed and was followed by another.
        port: Runs it, and waits.
        late: Gets a call that is given up, and goes on: its future has an output in the end.

    Raises:
        Exception: Whatever the last try raised; `OutOfTime` if there was no time left.
    """
    until, channels, leave = port.elapsed() + seconds, port.spec.open_channels, port.leaving(late)
    doors = _giving_output(contract, effect.around.call_id, channels, leave)
    while True:
        left = until - port.elapsed() if tries else seconds
        try:
            with within_tool(call.get("resumes", ())):
                output: Output = await port.tool(doors, call["args"], effect, left, leave)
        except ParentCommand:  # of a graph within the tool: LangGraph would carry it out on this one
            return Output("", refused=ASTRAY)
        except Exception as error:
            wait = _wait(contract, error, len(tries) + 1, port)
            if wait is None or wait >= until - port.elapsed():
                raise
            await port.sleep(wait)
            pace = await keep_pace(f"tool:{contract.name}", contract.rate, until, port, can_park=False)
            if pace.refusal or pace.is_late:
                raise
            tries.append(excerpt(f"{type(error).__name__}: {safe_str(error)}"))
        else:
            return _taken(output, effect, channels)


_AT_ONCE = (str, int, float, bool, type(None))
"""Results of exactly these types hold nothing that could take its time."""


def _giving_output(contract: Contract, call_id: str, channels: OpenChannels, leave: Late) -> Contract:
    """Return the contract with doors that give an output: an iterator in a result is read within the call's time.

    That must not hold up the event loop either.
    """
    awaited = contract.arun

    def take(value: object) -> Output:
        return to_output(value, call_id=call_id, channels=channels.names)

    async def arun(args: dict[str, Any], effect: Effect) -> Output:
        assert awaited is not None  # noqa: S101 -- else this door is none
        value = await awaited(args, effect)
        return take(value) if type(value) in _AT_ONCE else await call_aside(lambda: take(value), leave)

    def run(args: dict[str, Any], effect: Effect) -> Output:
        return take(contract.run(args, effect))

    return replace(contract, run=run, arun=None if awaited is None else arun)


def _taken(output: Output, effect: Effect, channels: OpenChannels) -> Output:
    """Return the output, or why its update cannot be taken in: its effect is not settled yet, so it can still be told.

    Other calls of the turn may update the same channels: what comes of all of them together is seen by `observe`.
    """
    refused = channels.refuse(output.update, effect.around.read()) if output.update else ""
    return Output("", refused=refused) if refused else output


def _wait(contract: Contract, error: Exception, tried: int, port: Port) -> float | None:
    """Return the seconds before the next try; None where there is none."""
    retry = contract.retry
    if not contract.is_repeatable or tried >= retry.tries or not retry.can_pass(error):
        return None
    return retry.pause(tried, error, port.chance)
