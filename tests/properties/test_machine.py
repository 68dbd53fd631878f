"""Any order of starting, deciding, crashing, resuming, going back and pruning: what must hold all the while."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from langchain_core.messages import AIMessage
from langgraph.types import Command
from tests.world.bank import nothing
from tests.world.plans import planned

from loopwright import (
    Approval,
    Checkpoints,
    Effect,
    Limits,
    Person,
    Rate,
    Receipt,
    SyncRuns,
    allow,
    approve,
    ask,
    create_agent,
    deny,
    edit,
    open_checkpoints,
    reject,
    respond,
    tool,
)
from loopwright.errors import InvalidDecision
from loopwright.graphs import compile_agent
from loopwright.state import PersonDecision
from loopwright.testing import ManualClock, call, check_transcript

STEPS, CALLS = 6, 8
THREADS = ("t0", "t1")
EDITED = 9
BY_TWO, BY_A_LEAD, NEVER = 2, 3, 7
"""Amounts for which the rules want two people, or a lead, or say no."""
DAY = 86_400.0
HOUR = 3_600.0
RATE = Rate(calls=1, per_seconds=HOUR, when_exceeded="park")
PEOPLE = ("ana", "ben", Person("lea", roles=["lead"]))

TURN: Any = st.one_of(
    st.sampled_from([call("pay", amount=amount) for amount in (1, BY_TWO, BY_A_LEAD, NEVER)]),
    st.sampled_from([call("look", code="a"), call("look", code="b")]),
    st.just([call("look", code="a"), call("pay", amount=1)]),
    st.just([call("pay", amount=1), call("pay", amount=2)]),
    st.just([call("stamp", code="a"), call("stamp", code="b")]),
    st.just(AIMessage("")),
)
SAYS: Any = st.sampled_from(["approve", "approve", "edit", "reject", "respond"])


class Crash(BaseException):
    """The process ends here, as far as one that goes on can show it: its database is gone with it."""


class Shop:
    """What lies outside of the process, and what runs inside of it: tools that may not come back."""

    def __init__(self, folder: Path, turns: list[Any], clock: ManualClock) -> None:
        """Build the agent."""
        self.clock = clock
        self.url = f"sqlite:///{folder / 'runs.db'}"
        self.paid: list[tuple[str, int]] = []
        self.stamped_at: list[float] = []
        self.stamps: set[str] = set()
        self.crash_in = ""
        self.die: Callable[[], None] = nothing
        self.agent = self._build(turns)

    def _crash(self, place: str) -> None:
        if self.crash_in == place:
            self.die()
            raise Crash(place)

    def _build(self, turns: list[Any]) -> Any:
        @tool(effect="write")
        def pay(amount: int, handle: Effect) -> str:
            """Pay an amount to the customer, after a person has approved it."""
            self._crash("before")
            self.paid.append((handle.key, amount))
            self._crash("after")
            return f"paid {amount}"

        @tool(effect="idempotent", rate=RATE)
        def stamp(code: str, handle: Effect) -> str:
            """Stamp an order, by its code; a second time changes nothing."""
            self.stamps.add(f"{handle.key} {code}")
            self.stamped_at.append(self.clock())
            self._crash("after")
            return "stamped"

        @tool(effect="read")
        def look(code: str) -> str:
            """Look up an order by its code."""
            self._crash("read")
            return f"{code} is there"

        limits = Limits(max_steps=STEPS, max_tool_calls=CALLS)
        tools = [pay, stamp, look]
        rules = [
            allow("stamp"),
            ask("pay", expires_in=HOUR),
            ask("pay", when=lambda proposed: proposed.args["amount"] == BY_TWO, number=2),
            ask("pay", when=lambda proposed: proposed.args["amount"] == BY_A_LEAD, role="lead"),
            deny("pay", when=lambda proposed: proposed.args["amount"] == NEVER),
        ]
        return create_agent(planned([*turns, "The end."]), tools, limits=limits, permissions=rules)


class Machine(RuleBasedStateMachine):
    """A service over one database file, and a person who does anything at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.clock = ManualClock()
        self.checkpoints: Checkpoints | None = None
        self.runs_of: dict[str, list[str]] = {name: [] for name in THREADS}
        self.may_pay: Counter[int] = Counter()

    @initialize(turns=st.lists(TURN, min_size=1, max_size=4), write_behind=st.booleans())
    def open(self, turns: list[Any], write_behind: bool) -> None:  # noqa: FBT001 -- drawn
        """Open the service."""
        self.shop = Shop(self.folder, turns, self.clock)
        self.write_behind = write_behind
        self._reopen()

    def _reopen(self) -> None:
        self.is_dead, self.shop.crash_in, self.shop.die = False, "", self._die
        self.checkpoints = open_checkpoints(self.shop.url, clock=self.clock, write_behind=self.write_behind)
        self.ledger = self.checkpoints.ledger
        self.runs = SyncRuns(self.shop.agent, self.checkpoints)
        self.agent: Any = compile_agent(self.shop.agent.spec, self.checkpoints)

    def _die(self) -> None:
        """Lose the process: nothing that it still does reaches the database."""
        self.is_dead = True
        self.ledger.heart.stop()
        self.ledger.database.close()

    @contextmanager
    def _process(self) -> Generator[None]:
        """Do something in a process that may die of it; another one comes when what it held has run out."""
        try:
            yield
        except BaseException:
            if not self.is_dead:
                raise
        if self.is_dead:
            self.clock.advance(60)
            self._reopen()

    def _drive(self, run_id: str) -> None:
        with self._process():
            self.runs.wait(run_id)

    @rule(thread=st.sampled_from(THREADS))
    def start(self, thread: str) -> None:
        """A user writes."""
        run_id = f"{thread}-{len(self.runs_of[thread])}"
        self.runs_of[thread].append(run_id)
        self.runs.start("Do it.", thread_id=thread, run_id=run_id)
        self._drive(run_id)

    @rule(place=st.sampled_from(["before", "after", "read"]))
    def prepare_a_crash(self, place: str) -> None:
        """The next tool to come by there does not come back."""
        self.shop.crash_in = place

    @rule()
    def crash(self) -> None:
        """Lose the process between two calls."""
        with self._process():
            self._die()

    @rule()
    def resume(self) -> None:
        """Carry on what is left."""
        for row in self.ledger.runs.unfinished():
            self._drive(row.id)

    @rule(seconds=st.sampled_from([HOUR / 2, HOUR]), look=st.booleans())
    def wait(self, seconds: float, look: bool) -> None:  # noqa: FBT001 -- drawn
        """Let time pass, and look after what has expired, or leave that to whoever comes next."""
        self.clock.advance(seconds)
        if look:
            with self._process():
                self.runs.expire()

    @rule(
        say=SAYS,
        to=st.sampled_from([EDITED, BY_TWO, BY_A_LEAD, NEVER]),
        by=st.sampled_from(PEOPLE),
        drive=st.booleans(),
        data=st.data(),
    )
    def decide(self, say: str, to: int, by: str | Person, drive: bool, data: st.DataObject) -> None:  # noqa: FBT001 -- drawn
        """Answer one of the questions, twice; drive on now, or leave that to a later resume."""
        asked = self.ledger.approvals.list_open(limit=20)
        if not asked:
            return
        one = data.draw(st.sampled_from(asked))
        if one.question == "outcome_unknown":
            happened = any(key == self.ledger.effects.get(one.effect_id).key for key, _ in self.shop.paid)
            decision: Any = respond("looked it up") if happened else reject("looked it up")
        else:
            if say == "edit" and one.tool != "pay":
                say = "reject"
            decision = {"approve": approve(), "edit": edit(amount=to), "reject": reject(), "respond": respond("x")}[say]
        receipt = self._try(one, decision, by)
        assert receipt is not None or self._is_refusal(one, decision.type, to, by)
        if receipt is None:
            return
        if one.question == "tool_approval":
            assert not receipt.accepted or not self._is_refusal(one, decision.type, to, by)
            self._note(one, receipt, to)
        if not receipt.missing:
            assert not self.runs.decide(one.id, approve(), by=PEOPLE[2]).accepted
        if drive:
            self._drive(one.run_id)

    def _try(self, one: Approval, decision: PersonDecision, by: str | Person) -> Receipt | None:
        """Decide; None where it was refused, and the question is open as before."""
        try:
            return self.runs.decide(one.id, decision, by=by)
        except InvalidDecision:
            assert self.ledger.approvals.get(one.id).decision is None
            return None

    def _is_refusal(self, one: Approval, say: str, to: int, by: str | Person) -> bool:
        """Tell what must be refused: without the role, or an edit into what needs it, or what is never allowed."""
        is_lead = isinstance(by, Person)
        amount = one.args.get("amount")
        needs_lead = amount == BY_A_LEAD or (say == "edit" and to == BY_A_LEAD)
        return (needs_lead and not is_lead) or (say == "edit" and to == NEVER)

    def _note(self, one: Approval, receipt: Receipt, to: int) -> None:
        """Note what may be paid now: what was approved by as many as it takes, and what an edit made of it."""
        kind = receipt.decision["type"]
        if not receipt.accepted or receipt.missing:
            return
        if kind == "approve":
            assert one.args["amount"] != BY_TWO or len(set(receipt.votes)) == 2
            self.may_pay[one.args["amount"]] += 1
        elif kind == "edit" and to != BY_TWO:
            self.may_pay[to] += 1

    @rule(thread=st.sampled_from(THREADS), data=st.data(), say=SAYS, leave=st.booleans())
    def fork(self, thread: str, data: st.DataObject, say: str, leave: bool) -> None:  # noqa: FBT001 -- drawn
        """Go on from an older checkpoint; answer there if something is asked, or leave that to whoever decides."""
        config: Any = {"configurable": {"thread_id": thread}}
        history = [one for one in self.agent.get_state_history(config) if one.next and one.values.get("run")]
        if not history:
            return
        one = data.draw(st.sampled_from(history))
        with self._process():
            state = self.agent.invoke(None, one.config)
            if "__interrupt__" in state and leave:
                asked = state["__interrupt__"][0].value
                row = self.ledger.runs.find(asked["run_id"])
                assert row is not None
                assert row.status == "waiting"
                question = self.ledger.approvals.get(asked["approval_id"])
                assert question.decision is None or not question.used_at  # decided, and not yet carried out
            elif "__interrupt__" in state:
                self._answer(config, state["__interrupt__"][0].value, say)

    def _answer(self, config: Any, asked: Any, say: str) -> None:
        if asked["type"] != "tool_approval" or say != "approve":
            self.agent.invoke(Command(resume={"type": "reject", "message": "no"}), config)
            return
        is_for_anybody = asked["args"]["amount"] not in (BY_TWO, BY_A_LEAD)
        self.may_pay[asked["args"]["amount"]] += is_for_anybody
        state = self.agent.invoke(Command(resume={"type": "approve"}), config)
        assert is_for_anybody or "without a name" in state["__interrupt__"][0].value["error"]

    @rule()
    def prune(self) -> None:
        """Shrink what has ended."""
        self.clock.advance(DAY)
        assert self.checkpoints is not None
        self.checkpoints.prune(older_than=DAY / 2)

    @precondition(lambda self: self.checkpoints is not None)
    @invariant()
    def holds(self) -> None:
        """Nothing unapproved, nothing twice, no limit or rate overrun, valid transcripts, a whole log."""
        for earlier, later in pairwise(self.shop.stamped_at):
            assert later - earlier >= RATE.per_seconds
        assert Counter(amount for _, amount in self.shop.paid) <= self.may_pay
        assert NEVER not in self.may_pay
        assert len({key for key, _ in self.shop.paid}) == len(self.shop.paid)
        assert self.ledger.log.verify().is_whole
        for thread in THREADS:
            values: dict[str, Any] = self.agent.get_state({"configurable": {"thread_id": thread}}).values
            if not values.get("run"):
                continue
            messages = [*values["messages"]]
            while messages and messages[-1].type == "human":
                messages.pop()
            if messages and isinstance(messages[-1], AIMessage) and messages[-1].tool_calls:
                messages.pop()
            check_transcript(messages)
            assert values["usage"]["steps"] <= STEPS
            assert values["usage"]["tool_calls"] <= CALLS

    def teardown(self) -> None:
        """Close everything, and remove it."""
        if self.checkpoints is not None:
            self.checkpoints.close()
        shutil.rmtree(self.folder, ignore_errors=True)


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=30, stateful_step_count=15, suppress_health_check=[HealthCheck.too_slow], deadline=None
)
