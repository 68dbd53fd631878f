"""Runs that spend from one budget, from threads or from processes."""

from __future__ import annotations

import threading
from decimal import Decimal
from typing import Any

from langchain_core.messages import AIMessage

from loopwright import Agent, Budget, Price, SyncRuns, create_agent, open_checkpoints
from loopwright.testing import ScriptedModel, call

from .nursery import Channel

INPUT = 5
"""Tokens of each call, fewer than are reserved for its message: what is reserved bounds what is billed."""
PRICE = Price(Decimal(1), Decimal(10))
DOLLAR = Budget(name="support", by="tenant", max_cost=Decimal(1), per="day")


class Meter:
    """Adds up what the provider would bill."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.dollars = Decimal(0)
        self._lock = threading.Lock()

    def say(self, turn: Any, tokens_in: int, tokens_out: int) -> AIMessage:
        """Return a reply, and note what it costs."""
        with self._lock:
            self.dollars += (tokens_in * PRICE.input + tokens_out * PRICE.output) / 10**6
        usage: Any = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
        calls: list[Any] = [] if isinstance(turn, str) else [{**turn, "id": "c"}]
        return AIMessage("" if calls else str(turn), tool_calls=calls, usage_metadata=usage)


class Spender(ScriptedModel):
    """Two turns a run, each as long as it may be: it takes its cap to the last token, else ten thousand."""

    max_tokens: int = 2_000
    meter: Any = None

    def __init__(self, meter: Meter) -> None:
        """Bill to a meter."""
        super().__init__([], meter=meter)

    def _generate(self, messages: list[Any], *args: Any, **kwargs: Any) -> Any:
        most = min(self.max_tokens, kwargs.get("max_tokens", self.max_tokens))
        first = messages[-1].type == "human"
        turn = call("unknown") if first else "Done."
        self._turns = [self.meter.say(turn, INPUT, most)]
        self._used = 0
        return super()._generate(messages, *args)


def build(meter: Meter) -> Agent:
    """An agent whose runs cost four cents each, as long as they may."""
    return create_agent(Spender(meter), [], price=PRICE, budgets=[DOLLAR])


def spend(channel: Channel, *, url: str, numbers: list[int]) -> None:
    """Drive runs of these numbers one after the other, as soon as a message comes.

    Sends what was billed, what the runs say that they cost, and how each ended.
    """
    meter = Meter()
    with open_checkpoints(url) as checkpoints:
        runs = SyncRuns(build(meter), checkpoints)
        channel.send("ready")
        channel.receive()
        results = [runs.run("Do it.", thread_id=f"t{number}", labels={"tenant": "acme"}) for number in numbers]
    cost = sum((result.usage.cost for result in results), Decimal(0))
    channel.send([str(meter.dollars), str(cost), [result.stop_reason for result in results]])
