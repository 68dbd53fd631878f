"""One refund, as any process finds it again: a folder with a bank and a database, and an agent with a plan."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from langchain_core.messages import AnyMessage

from loopwright import Limits, create_agent
from loopwright.testing import call

from .bank import Bank, build_pay, look_up, nothing
from .plans import planned

TASK = "Refund order A100, please."
THREAD = "customer-7"
ANSWER = "It is paid."
PAID = "paid 250 for A100"
PLAN = (call("look_up", order_id="A100"), call("pay", order_id="A100", amount=250), ANSWER)


def later() -> float:
    """A clock by which every lease of a dead process has run out."""
    return time.time() + 3600


def build_limits(given: Mapping[str, Any]) -> Limits:
    """Build limits from what another process was told."""
    return Limits(**given)


def die() -> None:
    """End this process as the kernel would."""
    os.kill(os.getpid(), signal.SIGKILL)


def interrupted(turn: Any, by: Callable[[], None]) -> Callable[[list[AnyMessage]], Any]:
    """Make a turn in the middle of whose model call something happens to the process."""

    def say(_messages: list[AnyMessage]) -> Any:
        by()
        return turn

    return say


class Refund:
    """The agent, and where its things lie."""

    def __init__(
        self,
        folder: Path,
        *,
        effect: Literal["idempotent", "write"] = "write",
        verify: bool = False,
        die_in: str = "",
        by: Callable[[], None] = die,
        url: str = "",
        plan: Sequence[Any] = PLAN,
        limits: Mapping[str, int] | None = None,
    ) -> None:
        """Build it.

        Args:
            folder: Exists.
            effect: Of the paying tool.
            verify: Whether it can find out what happened.
            die_in: Kills the process in a place: `model:1` (the turn), `tool:before`, `tool:after` (its row).
            by: What happens to the process there, if it is not killed.
            url: Of the database, if it is not a file in the folder.
            plan: What the model says, turn by turn.
            limits: The agent's, where they are not the default.
        """
        self.bank = Bank(folder / "bank.db")
        self.url = url or f"sqlite:///{folder / 'runs.db'}"
        place, _, which = die_in.partition(":")
        turns = [interrupted(turn, by) if (place, which) == ("model", str(n)) else turn for n, turn in enumerate(plan)]
        self.model = planned(turns)
        pay = build_pay(
            self.bank,
            effect=effect,
            verify=verify,
            before=by if die_in == "tool:before" else nothing,
            after=by if die_in == "tool:after" else nothing,
        )
        self.agent = create_agent(self.model, [look_up, pay], limits=build_limits(limits or {}))
