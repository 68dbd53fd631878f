"""The attempts at one reply: the same model again where that can help, another one where it cannot, or the end."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from loopwright.models import Cure, asked_pause, is_too_long
from loopwright.policy import seconds_left
from loopwright.state import AgentState, FailedAttempt, RunRecord, UsageRecord
from loopwright.tools import Retry

from .port import Port

logger = logging.getLogger(__name__)

FAILED_ATTEMPT = "failed_attempt"
"""The `type` of a failed attempt that another one follows, on LangGraph's `custom` stream."""
MODEL_TEXT = "model_text"
"""The same, of a piece of the model's text."""
LONGEST_PAUSE = 60.0
"""Seconds: a provider that asks to be left alone for longer is not asked again in this step."""
COOLDOWN = 60.0
"""Seconds for which a model that had to be left for another one is asked last; longer if its provider asks for that."""
MOST_KEPT = 20
"""Failed attempts that a run remembers: the newest."""
LOOK_SECONDS = 1.0
"""How often a longer pause looks whether the run was cancelled."""


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that brought no reply."""

    error: BaseException
    said: str
    """What is shown of the error: bounded, without keys."""
    cure: Cure
    usage: UsageRecord
    """With this attempt counted."""
    number: int
    """Of the attempt, in its step."""


@dataclass(frozen=True, slots=True)
class Where:
    """Where a step stands that is parked between two attempts."""

    left: list[int]
    """Which of the agent's models may still be asked, by their places; the first one is asked next."""
    tried: int
    """How often that one was asked in this step."""
    counted: int
    """The number of the step's newest attempt that the usage holds already."""


def wait_before_next(  # noqa: PLR0917 -- the figures of one decision
    retry: Retry, failed: Failed, tried: int, asked: float, left: float | None, chance: float
) -> float | None:
    """Return the seconds before the same model is asked again; None where it is not.

    Args:
        retry: The agent's.
        failed: What has just failed.
        tried: How often this model was asked in this step.
        asked: For how many seconds the provider wants to be left alone.
        left: The active seconds that are left; None for any.
        chance: From 0 to 1; spreads those who wait.
    """
    can_pass = failed.cure is Cure.AGAIN or isinstance(failed.error, retry.on)
    if not can_pass or tried >= retry.tries or asked > LONGEST_PAUSE:
        return None
    wait = max(retry.pause(tried, failed.error, lambda: chance), asked)
    return None if left is not None and wait >= left else wait


def order_of(cooldowns: Sequence[float], count: int, now: float) -> list[int]:
    """Return the places of an agent's models in the order in which a step asks them.

    Those with a cooldown come last, the one whose ends first before the others: none is left out, since one that was
    down may be the only one that is up again. What was noted for another number of models says nothing.

    >>> order_of([160.0, 0.0, 130.0], 3, now=100.0), order_of([160.0, 0.0, 130.0], 3, now=160.0)
    ([1, 2, 0], [0, 1, 2])
    """
    until = [*cooldowns] if len(cooldowns) == count else [0.0] * count
    return sorted(range(count), key=lambda place: (max(0.0, until[place] - now), place))


class Attempts:
    """Which model is asked next, and when.

    What it learns of a run's models stands in the run's record: so it holds over pauses, crashes and processes, and
    ends with the run.
    """

    def __init__(self, state: AgentState, port: Port) -> None:
        """Begin with the agent's first model that has no cooldown; or where the step was parked for its rate."""
        self._state = state
        self._ports = [port.speaking(spec) for spec in port.spec.by_model]
        self._cooldowns = [*state["run"].get("cooldowns", ())]
        parked = state["run"].get("parked")
        left = [place for place in parked["left"] if place < len(self._ports)] if parked else []
        self._order = left or order_of(self._cooldowns, len(self._ports), port.now())
        self._at = 0
        self._tried = parked["tried"] if parked else 0
        self.counted_before = parked["counted"] if parked else 0
        """The number of this step's newest attempt that the state's usage holds already."""
        self._counted = self.counted_before
        self.usage = state["usage"]
        """With all failed attempts so far."""
        self.failures: list[FailedAttempt] = []
        self.was_too_long = False
        """Whether a model has refused what was sent, since there is too much of it."""

    @property
    def port(self) -> Port:
        """Of the model that is asked now."""
        return self._ports[self._order[self._at]]

    def where(self) -> Where:
        """Return where the step stands, so that it can be carried on from there."""
        return Where(self._order[self._at :], self._tried, self._counted)

    def begin_anew(self) -> None:
        """Ask the models once more, for something else: in the order that holds by now."""
        self._order = order_of(self._cooldowns, len(self._ports), self.port.now())
        self._at = self._tried = 0
        self.was_too_long = False

    def noted(self, run: RunRecord) -> RunRecord:
        """Return a run's record with what failed, and with the cooldowns."""
        noted: RunRecord = {**run}
        if self.failures:
            noted["failures"] = [*self._state["run"].get("failures", ()), *self.failures][-MOST_KEPT:]
        if self._cooldowns:
            noted["cooldowns"] = self._cooldowns
        return noted

    @property
    def last_error(self) -> str:
        """What is shown of the newest failure; empty for none."""
        return self.failures[-1]["error"] if self.failures else ""

    async def goes_on(self, failed: Failed) -> bool:
        """Tell whether there is another attempt; waits until it is time for it."""
        self.usage, self._counted = failed.usage, failed.number
        self.was_too_long = self.was_too_long or is_too_long(failed.error)
        self._tried += 1
        spec, asked = self.port.spec, asked_pause(failed.error, self.port.now())
        wait = wait_before_next(spec.retry, failed, self._tried, asked, self._seconds_left(), self.port.chance())
        name, is_last = spec.model_name, self._at + 1 == len(self._order)
        if wait is None and (failed.cure is Cure.NONE or is_last or self._seconds_left() == 0):
            self._note(failed, name, "", 0.0)
            return False
        if wait is None:
            self._cool_down(asked)
            self._at += 1
            self._tried = 0
        self._note(failed, name, self.port.spec.model_name, wait or 0.0)
        await self._rest(wait or 0.0)
        return True

    def _cool_down(self, asked: float) -> None:
        """Ask the model that failed last for a while."""
        count = len(self._ports)
        until = self._cooldowns if len(self._cooldowns) == count else [0.0] * count
        until[self._order[self._at]] = self.port.now() + max(COOLDOWN, asked)
        self._cooldowns = until

    def _seconds_left(self) -> float | None:
        spec, state = self.port.spec, self._state
        left = seconds_left(spec.bounds(state["run"], state["thread"]), state["usage"])
        return None if left is None else max(0.0, left - self.port.elapsed())

    def _note(self, failed: Failed, model: str, after: str, wait: float) -> None:
        """Keep what failed, and tell whoever follows or reads the log."""
        run, step = self._state["run"], self._state["usage"]["steps"] + 1
        noted = FailedAttempt(
            step=step, model=model, error=failed.said, next=after, wait=round(wait, 3), at=self.port.now()
        )
        self.failures.append(noted)
        extra = {"action": FAILED_ATTEMPT, "run_id": run["id"], "step": step, "model": model, "next": after}
        logger.warning("run %s: %s failed: %s; %s", run["id"], model, failed.said, told_next(noted), extra=extra)
        if after:
            self.port.tell({"type": FAILED_ATTEMPT, **noted})

    async def _rest(self, seconds: float) -> None:
        """Wait; no longer than until the run is cancelled, which the next attempt finds out when it is opened."""
        until = self.port.elapsed() + seconds
        while (left := until - self.port.elapsed()) > 0:
            await self.port.sleep(min(left, LOOK_SECONDS))
            if left > LOOK_SECONDS and await self._is_cancelled():
                return

    async def _is_cancelled(self) -> bool:
        ledger = await self.port.ledger()
        row = await self.port.ask(ledger, ledger.runs.find, self._state["run"]["id"])
        return row is not None and bool(row.cancel_by)


def told_next(failed: FailedAttempt) -> str:
    """Say what follows a failed attempt."""
    if not failed["next"]:
        return "no other attempt"
    if failed["next"] != failed["model"]:
        return f"now {failed['next']}"
    return f"again in {failed['wait']:.3g} s"
