"""What calls of priced tools cost: a row in the ledger before each, settled by what it really was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from loopwright.checkpoints import GiveBack, Opened
from loopwright.models import to_nano
from loopwright.state import Share, Tokens
from loopwright.tools import Contract

from .port import Port

NOTHING = Tokens(0, 0)


@dataclass(frozen=True, slots=True)
class Bill:
    """One try at a priced call, reserved and not yet settled."""

    run_id: str
    step: int
    reserved: int
    """Nano-dollars."""
    opened: Opened
    shares: tuple[Share, ...]

    @property
    def refusal(self) -> str:
        """Why the call may not run; empty when it may."""
        if self.opened.full is not None:
            return f"not run: {self.opened.full} has no money left for it"
        return "not run: the run was cancelled" if self.opened.cancelled_by else ""


async def open_bill(
    contract: Contract, port: Port, *, place: str, run_id: str, step: int, labels: Mapping[str, str]
) -> Bill | None:
    """Reserve the price of a call; None for a tool without one, which costs nothing here either.

    Args:
        contract: The tool's.
        port: Of the `act` task.
        place: Names the call, the same when it is run again.
        run_id: Of its run.
        step: Of its run.
        labels: Of its run.
    """
    if contract.price is None:
        return None
    shares = tuple(budget.share(labels, port.now()) for budget in port.spec.budgets)
    reserved, ledger = contract.price_nano, await port.ledger()
    opened = await port.ask(
        ledger,
        ledger.spend.open,
        run_id,
        step,
        model=contract.name,
        estimate=NOTHING,
        cost_nano=reserved,
        shares=shares,
        call=place,
    )
    return Bill(run_id, step, reserved, opened, shares)


async def close_bill(bill: Bill | None, contract: Contract, port: Port) -> int:
    """Settle a bill; returns what the call has cost, tries whose process died included, in nano-dollars."""
    if bill is None:
        return 0
    cost = 0
    if port.has_begun:
        cost = contract.price_nano + sum(to_nano(dollars) for dollars in port.costs)
    lost = sum(attempt.cost_nano for attempt in bill.opened.lost)
    if bill.opened.number:
        ledger = await port.ledger()
        back = GiveBack(bill.shares, 0, bill.reserved) if bill.shares else None
        ledger.spend.settle(bill.run_id, bill.step, bill.opened.number, tokens=NOTHING, cost_nano=cost, back=back)
    return cost + lost
