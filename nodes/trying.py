"""Running a tool, with another try where that can help: all tries within the call's time."""

from __future__ import annotations

from loopwright.state import Call, excerpt
from loopwright.tools import Contract, Effect, Late, Output, safe_str, to_output

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
        late: Gets what the tool returns when nobody waits for it any more.

    Raises:
        Exception: Whatever the last try raised; `OutOfTime` if there was no time left.
    """
    until, channels = port.elapsed() + seconds, port.spec.open_channels
    while True:
        left = until - port.elapsed() if tries else seconds
        try:
            with within_tool(call.get("resumes", ())):
                value = await port.tool(contract, call["args"], effect, left, late)
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
            return _taken(to_output(value, call_id=effect.around.call_id, channels=channels.names), effect, channels)


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
