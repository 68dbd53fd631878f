"""A run's context: it reaches tools, comes back in another process, and its secrets are stored nowhere."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from langgraph.prebuilt import ToolRuntime
from pydantic import BaseModel, SecretStr
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.stores import Store, open_store

from loopwright import (
    Checkpoints,
    ProposedCall,
    Run,
    Runs,
    SyncRuns,
    allow,
    approve,
    create_agent,
    deny,
    edit,
    open_checkpoints,
    tool,
)
from loopwright.errors import ConfigurationError, InvalidDecision, RunError
from loopwright.testing import call

KEY = b"k" * 32
THREAD: Any = {"configurable": {"thread_id": "t"}}


class Customer(BaseModel):
    """Who is served."""

    name: str
    token: SecretStr


class Shop:
    """Keeps what its tools were given."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.seen: list[tuple[str, str]] = []

    def agent(self, **options: Any) -> Any:
        """Build an agent whose tools look into the context, before and after a pause."""

        def note(runtime: ToolRuntime[Customer, Any]) -> str:
            self.seen.append((runtime.context.name, runtime.context.token.get_secret_value()))
            return "noted"

        @tool(effect="read")
        def look(runtime: ToolRuntime[Customer, Any]) -> str:
            """Look the customer up. Use it first; it changes nothing."""
            return note(runtime)

        @tool(effect="write")
        def pay(runtime: ToolRuntime[Customer, Any]) -> str:
            """Pay the customer back. Use it only when asked to."""
            return note(runtime)

        turns = [call("look"), call("pay"), "Done."]
        return create_agent(planned(turns), [look, pay], context_schema=Customer, **options)


@pytest.fixture(name="kept", params=["sqlite", "postgres"])
def lend_kept_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store that outlives its process."""
    return open_store(request, tmp_path)


@pytest.mark.parametrize("door", DOORS)
def test_it_comes_back_without_having_been_stored(
    kept: Store, door: DoorName, caplog: pytest.LogCaptureFixture
) -> None:
    """Another process has its plain fields, and asks the hook for the secret; nothing of that is in the database."""
    caplog.set_level(logging.DEBUG)
    shop, word = Shop(), secrets.token_hex(20)
    asked: list[tuple[dict[str, Any], str]] = []

    def restore(stored: Mapping[str, Any], run: Run) -> object:
        asked.append((dict(stored), run.thread_id))
        return {"token": word}

    async def arestore(stored: Mapping[str, Any], run: Run) -> object:
        return restore(stored, run)

    def begin(checkpoints: Checkpoints) -> Any:
        context = {"name": "Ana", "token": word}
        if door == "sync":
            return SyncRuns(shop.agent(), checkpoints).run("Pay.", thread_id="t", context=context)

        async def main() -> Any:
            async with Runs(shop.agent(), checkpoints) as runs:
                return await runs.run("Pay.", thread_id="t", context=Customer.model_validate(context))

        return asyncio.run(main())

    def go_on(checkpoints: Checkpoints, approval_id: str, run_id: str) -> Any:
        if door == "sync":
            runs = SyncRuns(shop.agent(), checkpoints, restore_context=restore)
            runs.decide(approval_id, approve(), by="ana")
            return runs.wait(run_id)

        async def main() -> Any:
            async with Runs(shop.agent(), checkpoints, restore_context=arestore) as runs:
                await runs.decide(approval_id, approve(), by="ana")
                return await runs.wait(run_id)

        return asyncio.run(main())

    with open_checkpoints(kept.url) as checkpoints:
        waiting = begin(checkpoints)
        assert [("Ana", word)] == shop.seen
        assert word not in kept.text()
    with open_checkpoints(kept.url) as checkpoints:
        result = go_on(checkpoints, waiting.approvals[0].id, waiting.run_id)
        assert word not in kept.text()
    assert ("succeeded", [("Ana", word)] * 2) == (result.status, shop.seen)
    assert ({"name": "Ana"}, "t") == asked[0]
    assert word not in kept.text() + repr(result) + repr(waiting) + caplog.text
    assert "Ana" in kept.text()


def test_without_a_hook_the_run_stays_as_it_is(kept: Store, caplog: pytest.LogCaptureFixture) -> None:
    """What is missing is named, and who has it carries the run on; a hook that brings too little is told so."""
    shop = Shop()
    with open_checkpoints(kept.url) as checkpoints:
        context = {"name": "Ana", "token": "hunter2"}
        waiting = SyncRuns(shop.agent(), checkpoints).run("Pay.", thread_id="t", context=context)
    with open_checkpoints(kept.url) as checkpoints:
        without = SyncRuns(shop.agent(), checkpoints)
        without.decide(waiting.approvals[0].id, approve(), by="ana")
        with pytest.raises(RunError, match=r"token \(missing\); secrets are not stored, give Runs or create_agent"):
            without.wait(waiting.run_id)
        assert [] == without.recover()
        assert "waiting" == without.get(waiting.run_id).status
        too_little = SyncRuns(shop.agent(), checkpoints, restore_context=lambda _stored, _run: {})
        with pytest.raises(RunError, match="let restore_context return it"):
            too_little.wait(waiting.run_id)
        whole = SyncRuns(
            shop.agent(), checkpoints, restore_context=lambda stored, _run: Customer(**stored, token=SecretStr("new"))
        )
        assert ["succeeded"] == [result.status for result in whole.recover()]
    assert [("Ana", "hunter2"), ("Ana", "new")] == shop.seen
    assert "hunter2" not in caplog.text


def test_in_the_same_process_it_is_kept(checkpoints: Checkpoints) -> None:
    """No hook is needed where the run was started."""
    shop = Shop()
    runs = SyncRuns(shop.agent(), checkpoints)
    waiting = runs.run("Pay.", thread_id="t", context={"name": "Ana", "token": "hunter2"})
    runs.decide(waiting.approvals[0].id, approve(), by="ana")
    assert "succeeded" == runs.wait(waiting.run_id).status
    assert [("Ana", "hunter2")] * 2 == shop.seen


@pytest.mark.parametrize("context", [None, {"name": "Ana"}, {"name": 5, "token": "hunter2"}, 5])
def test_a_context_that_does_not_fit_starts_nothing(checkpoints: Checkpoints, context: Any) -> None:
    """Not even a row; the message tells no value."""
    runs = SyncRuns(Shop().agent(), checkpoints)
    with pytest.raises(ConfigurationError) as caught:
        runs.run("Pay.", thread_id="t", context=context)
    assert "hunter2" not in str(caught.value)
    assert [] == runs.list()


def test_an_agent_without_a_type_takes_none(checkpoints: Checkpoints) -> None:
    """What could not be checked, nor kept, is refused."""
    with pytest.raises(ConfigurationError, match="context_schema"):
        SyncRuns(create_agent(planned(["Done."]), []), checkpoints).run("Go.", thread_id="t", context={"a": 1})


def test_a_plain_invoke_has_langgraphs_own(checkpoints: Checkpoints) -> None:
    """Given with each call; one that does not fit is refused without its values."""
    shop = Shop()
    agent = shop.agent(checkpoints=checkpoints)
    task = {"messages": [("user", "Pay.")]}
    with pytest.raises(ConfigurationError) as caught:
        agent.invoke(task, THREAD, context={"name": "Ana", "token": ["hunter2"]})
    assert "hunter2" not in str(caught.value)
    agent.invoke(task, THREAD, context={"name": "Ana", "token": "hunter2"})
    assert [("Ana", "hunter2")] == shop.seen


def test_an_encrypted_ledger_hides_it_all(tmp_path: Path) -> None:
    """The plain fields of a context are somebody's data, too."""
    store = Store("sqlite", f"sqlite:///{tmp_path / 'runs.db'}", path=tmp_path / "runs.db")
    with open_checkpoints(store.url, encryption=[KEY]) as checkpoints:
        runs = SyncRuns(Shop().agent(), checkpoints)
        runs.start("Pay.", thread_id="t", context={"name": "Anabella", "token": "hunter2"})
        assert "Anabella" not in store.text()


class Clerk(BaseModel):
    """On whose behalf it pays."""

    tier: int
    pin: SecretStr = SecretStr("")


class Payments:
    """An agent whose rules look at the context, and what they saw."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.seen: list[tuple[int, str]] = []
        self.paid: list[int] = []

    def agent(self, **options: Any) -> Any:
        """Build it: clerks of tier 2 pay by themselves, others ask, and nobody edits above their tier."""

        @tool(effect="write")
        def pay(amount: int) -> str:
            """Pay an amount back. Use it when asked to."""
            self.paid.append(amount)
            return "paid"

        def is_senior(proposed: ProposedCall) -> bool:
            clerk: Clerk = proposed.context
            self.seen.append((clerk.tier, str(clerk.pin)))
            return clerk.tier >= 2

        def is_too_much(proposed: ProposedCall) -> bool:
            amount: int = proposed.args["amount"]
            tier: int = proposed.context.tier
            return amount > tier * 100

        rules = [allow("pay", when=is_senior), deny("pay", when=is_too_much)]
        return create_agent(
            planned([call("pay", amount=50), "Done."]), [pay], permissions=rules, context_schema=Clerk, **options
        )


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("tier", "status"), [(1, "waiting"), (2, "succeeded")])
def test_rules_see_it(checkpoints: Checkpoints, tier: int, status: str, door: DoorName) -> None:
    """As its type has it, secrets hidden; by `Runs` and by a plain invoke."""
    payments = Payments()
    result = Desk(payments.agent(), checkpoints, door).run(context={"tier": tier, "pin": "hunter2"})
    assert (status, [(tier, "**********")]) == (result.status, payments.seen)
    agent = payments.agent(checkpoints=checkpoints)
    agent.invoke({"messages": [("user", "Pay.")]}, {"configurable": {"thread_id": "u"}}, context=Clerk(tier=tier))
    assert [50] * 2 * (tier - 1) == payments.paid


@pytest.mark.parametrize("door", DOORS)
def test_what_was_shown_counts_whatever_the_context_has_become(checkpoints: Checkpoints, door: DoorName) -> None:
    """Approved, nothing is judged again; an edit is, under the context that was brought back."""
    payments = Payments()

    def restore(_stored: Mapping[str, Any], _run: Run) -> object:
        return {"tier": 3}

    desk = Desk(payments.agent(restore_context=restore), checkpoints, door)
    waiting = desk.run(context={"tier": 1})
    assert "succeeded" == desk.answer(waiting, approve()).status
    assert ([(1, "")], [50]) == (payments.seen, payments.paid)
    waiting = desk.run("Again.", context={"tier": 1})
    with pytest.raises(InvalidDecision, match="deny"):
        desk.decide(waiting.approvals[0].id, edit(amount=301))
    assert "succeeded" == desk.answer(waiting, edit(amount=300)).status
    assert [50, 300] == payments.paid


def test_a_hook_of_the_agents_own(tmp_path: Path) -> None:
    """Whoever loads the agent has it; one that `Runs` is given takes its place."""
    shop, url = Shop(), f"sqlite:///{tmp_path / 'runs.db'}"
    with open_checkpoints(url) as checkpoints:
        runs = SyncRuns(shop.agent(), checkpoints)
        first = runs.run("Pay.", thread_id="t", context={"name": "Ana", "token": "hunter2"})
        second = runs.run("Pay.", thread_id="u", context={"name": "Bo", "token": "hunter2"})

    def mine(_stored: Mapping[str, Any], _run: Run) -> object:
        return {"token": "mine"}

    def theirs(_stored: Mapping[str, Any], _run: Run) -> object:
        return {"token": "theirs"}

    with open_checkpoints(url) as checkpoints:
        agent = shop.agent(restore_context=mine)
        for waiting, hook in ((first, None), (second, theirs)):
            runs = SyncRuns(agent, checkpoints, restore_context=hook)
            runs.decide(waiting.approvals[0].id, approve(), by="ana")
            assert "succeeded" == runs.wait(waiting.run_id).status
    assert [("Ana", "mine"), ("Bo", "theirs")] == shop.seen[2:]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"restore_context": 3, "context_schema": Clerk}, "restore_context is 3"),
        ({"restore_context": dict}, "give context_schema= too"),
    ],
)
def test_a_hook_that_could_bring_nothing_back(options: Any, said: str) -> None:
    """Is refused when the agent is built."""
    with pytest.raises(ConfigurationError, match=said):
        create_agent(planned(["Done."]), [], **options)
