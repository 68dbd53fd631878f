"""A model that goes round in circles: told, held back, stopped or decided about, at the documented call."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import (
    Agent,
    Checkpoints,
    Limits,
    Loops,
    RunResult,
    RunStatus,
    StopReason,
    allow,
    approve,
    create_agent,
    edit,
    open_checkpoints,
    reject,
    respond,
    tool,
)
from loopwright.testing import ScriptedModel, call, check_transcript

ASKING = Loops(then="ask")
LOOK = call("look", order_id="A1")
WANDERING = "abcacbabcbacabcacbaca"
"""An order without any round: no part of it comes twice in a row."""


class Shelf:
    """Tools that answer as they are told to, and count how often they ran."""

    def __init__(self) -> None:
        """Nothing ran yet."""
        self.ran: list[str] = []
        self.jobs = iter(range(1000))

    def tools(self) -> list[Any]:
        """Build the tools."""

        @tool(effect="read")
        def find(what: str) -> str:
            """Find something on the shelf, by its name. Says the same each time."""
            self.ran.append(what)
            return f"found {what}"

        @tool(effect="read")
        def fetch(what: str) -> str:
            """Fetch something that is not there, by its name. Always fails."""
            self.ran.append(what)
            raise ValueError(f"there is no {what}, tried {len(self.ran)} times")

        @tool(effect="read")
        def status(job: str) -> str:
            """Read the status of a job by its name. Says how far it is."""
            self.ran.append(job)
            return f"{next(self.jobs)} percent"

        @tool(effect="read")
        def pending(job: str) -> str:
            """Read whether a job is done, by its name. Says 'pending' until it is."""
            self.ran.append(job)
            return "pending"

        return [find, fetch, status, pending]


def find(*names: str) -> list[Any]:
    """Write down calls that find each of these, one a turn."""
    return [call("find", what=name) for name in names]


SCRIPTS: dict[str, tuple[list[Any], Loops, int, int]] = {
    "one call": (find("a"), Loops(), 3, 5),
    "a cycle of two": (find("a", "b"), Loops(), 4, 6),
    "a cycle of three": (find("a", "b", "c"), Loops(), 6, 8),
    "a cycle of four": (find("a", "b", "c", "d"), Loops(), 8, 10),
    "failures": ([call("fetch", what=f"x{n}") for n in range(40)], Loops(), 8, 10),
    "nothing new": (find(*WANDERING), Loops(), 11, 13),
    "one call, earlier": (find("a"), Loops(repeats=2), 2, 4),
    "a cycle, later": (find("a", "b"), Loops(rounds=3), 6, 8),
    "failures, earlier": ([call("fetch", what=f"x{n}") for n in range(40)], Loops(failures=2), 4, 6),
    "nothing new, earlier": (find(*WANDERING), Loops(no_news=3), 6, 8),
    "polling beyond its allowance": ([call("pending", job="j")], Loops(allow={"pending": 6}), 6, 8),
    "arguments that do not fit": ([call("find", wrong=f"x{n}") for n in range(40)], Loops(), 0, 10),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize(("script", "loops", "ran", "steps"), SCRIPTS.values(), ids=SCRIPTS.keys())
def test_every_kind_is_stopped_at_its_call(
    script: list[Any], loops: Loops, ran: int, steps: int, door: DoorName
) -> None:
    """After so many calls that ran, and so many model calls, for ever the same script."""
    shelf = Shelf()
    turns: list[Any] = [script[number % len(script)] for number in range(60)]
    agent = create_agent(ScriptedModel(turns), shelf.tools(), loops=loops, limits=Limits(max_steps=40))
    with open_checkpoints("memory:") as checkpoints:
        result = Desk(agent, checkpoints, door).run()
    assert ("stopped", StopReason.LOOP) == (result.status, result.stop_reason)
    assert (ran, steps) == (len(shelf.ran), result.usage.steps)
    assert ["not_run", "not_run"] == [entry["outcome"] for entry in result.trail[-2:]]
    assert {"the loop guard"} == {entry["by"] for entry in result.trail[-2:]}
    check_transcript(result.messages)


HEALTHY: dict[str, tuple[list[Any], Loops]] = {
    "polling with a changing result": ([call("status", job="j")] * 20, Loops()),
    "polling within its allowance": ([call("pending", job="j")] * 19, Loops(allow={"pending": 20})),
    "always something new": (find(*[f"x{n}" for n in range(20)]), Loops()),
    "switched off": ([call("fetch", what="x")] * 20, Loops(repeats=None, rounds=None, failures=None, no_news=None)),
}


@pytest.mark.parametrize(("script", "loops"), HEALTHY.values(), ids=HEALTHY.keys())
def test_what_is_no_loop_goes_on(script: list[Any], loops: Loops) -> None:
    """Nothing is said, and nothing held back."""
    shelf = Shelf()
    with open_checkpoints("memory:") as checkpoints:
        result = Desk(create_agent(ScriptedModel([*script, "Done."]), shelf.tools(), loops=loops), checkpoints).run()
    assert ("succeeded", len(script)) == (result.status, len(shelf.ran))
    assert not any("loop" in entry or entry["by"] == "the loop guard" for entry in result.trail)


def test_switched_off_the_other_bounds_stay() -> None:
    """A run without the loop guard ends at its limit of steps."""
    loops = Loops(repeats=None, rounds=None, failures=None, no_news=None)
    agent = create_agent(planned([LOOK]), [Till().look()], loops=loops, limits=Limits(max_steps=30))
    with open_checkpoints("memory:") as checkpoints:
        result = Desk(agent, checkpoints).run()
    assert (StopReason.MAX_STEPS, 30) == (result.stop_reason, result.usage.steps)


def test_the_model_is_told_and_can_do_better(checkpoints: Checkpoints) -> None:
    """The note stands in the result and in the trail; what is new lifts the ban."""
    till = Till()
    other = call("look", order_id="A2")

    @tool(effect="read")
    def hint() -> str:
        """Return a hint for whoever does not know what to do."""
        return "try A2"

    turns: list[Any] = [LOOK, LOOK, LOOK, LOOK, call("hint"), LOOK, other, "Done."]
    result = Desk(create_agent(ScriptedModel(turns), [till.look(), hint]), checkpoints).run()
    assert (RunStatus.SUCCEEDED, ["A1", "A1", "A1", "A1", "A2"]) == (result.status, till.looked)
    assert [None, None, "repeat", None, None, None, None] == [entry.get("loop") for entry in result.trail]
    assert ("DELIVERED", "not_run") == (result.trail[2]["observation"], result.trail[3]["outcome"])
    told = [message.text for message in result.messages if "[loop guard]" in message.text]
    assert ["DELIVERED\n\n[loop guard] This call keeps bringing the same result"] == [
        text.partition(",")[0] for text in told
    ]
    check_transcript(result.messages)


def test_a_new_task_begins_at_zero(checkpoints: Checkpoints) -> None:
    """What one task repeated does not count against the next."""
    till = Till()
    agent = create_agent(ScriptedModel([LOOK, LOOK, "Done."] * 3), [till.look()])
    desk = Desk(agent, checkpoints)
    for number in range(1, 4):
        assert (RunStatus.SUCCEEDED, 2 * number) == (desk.run(run_id=f"r{number}").status, len(till.looked))


def test_the_rest_of_the_turn_runs(checkpoints: Checkpoints) -> None:
    """Only the repeated call is held back; a turn that brings something new does not climb the ladder."""
    till = Till()
    turns = [[LOOK, call("look", order_id=f"B{number}")] for number in range(9)]

    @tool(effect="read", name="look")
    def look(order_id: str) -> str:
        """Look up an order by its code. Returns its status."""
        till.looked.append(order_id)
        return f"{order_id} DELIVERED"

    result = Desk(create_agent(ScriptedModel([*turns, "Done."]), [look]), checkpoints).run()
    assert (RunStatus.SUCCEEDED, 3, 9) == (result.status, till.looked.count("A1"), len({*till.looked}) - 1)
    check_transcript(result.messages)


def asked_about(
    checkpoints: Checkpoints, turns: Sequence[Any], door: DoorName = "sync"
) -> tuple[Desk, Till, RunResult]:
    """Drive a run to where the loop guard asks."""
    till = Till()
    desk = Desk(create_agent(ScriptedModel([*turns]), [till.look()], loops=ASKING), checkpoints, door)
    result = desk.run()
    assert (RunStatus.WAITING, 5, 3) == (result.status, result.usage.steps, len(till.looked))
    return desk, till, result


@pytest.mark.parametrize("door", DOORS)
def test_a_person_is_asked_and_approves(checkpoints: Checkpoints, door: DoorName) -> None:
    """It runs once more; in vain, it is asked about again. The question says why."""
    desk, till, result = asked_about(checkpoints, [LOOK] * 6, door)
    (question,) = result.approvals
    assert "the loop guard" == question.payload["rule"]
    assert "it is part of a loop that brought nothing new" in question.payload["why"]
    again = desk.answer(result, approve())
    assert (RunStatus.WAITING, 6, 4) == (again.status, again.usage.steps, len(till.looked))
    assert "repeat" == again.trail[-1].get("loop")
    check_transcript(again.messages[:-1])


def test_a_person_rejects(checkpoints: Checkpoints) -> None:
    """The run goes on without the call; asked for once more, it ends."""
    desk, till, result = asked_about(checkpoints, [LOOK] * 6)
    ended = desk.answer(result, reject("leave it"))
    assert (StopReason.LOOP, 6, 3) == (ended.stop_reason, ended.usage.steps, len(till.looked))
    assert ["rejected", "not_run"] == [entry["outcome"] for entry in ended.trail[-2:]]
    check_transcript(ended.messages)


def test_a_person_answers_in_its_place(checkpoints: Checkpoints) -> None:
    """What a person says is news: the ladder begins anew."""
    desk, till, result = asked_about(checkpoints, [LOOK] * 6 + ["It was lost."])
    ended = desk.answer(result, respond("It was lost."))
    assert (RunStatus.SUCCEEDED, 4) == (ended.status, len(till.looked))


def test_a_person_changes_the_call(checkpoints: Checkpoints) -> None:
    """The changed one runs; the model's own call, which it asked for, stays on the ladder while nothing is new."""
    desk, till, result = asked_about(checkpoints, [LOOK] * 6)
    again = desk.answer(result, edit(order_id="A2"))
    assert (RunStatus.WAITING, "A2", 4) == (again.status, till.looked[-1], len(till.looked))


def test_a_person_rejects_and_the_model_gives_in(checkpoints: Checkpoints) -> None:
    """A final answer ends the run as any other."""
    desk, _, result = asked_about(checkpoints, [LOOK] * 5 + ["Then not."])
    ended = desk.answer(result, reject("no"))
    assert (RunStatus.SUCCEEDED, "Then not.") == (ended.status, ended.answer)


def test_without_anybody_to_ask_it_ends() -> None:
    """An agent without checkpoints cannot pause."""
    agent = create_agent(ScriptedModel([LOOK] * 5), [Till().look()], loops=ASKING)
    messages: Any = [("user", "Look.")]
    state: Any = agent.invoke({"messages": messages})  # pyright: ignore[reportUnknownMemberType]  # LangGraph's
    assert ("stopped", "loop") == (state["run"]["status"], state["run"]["reason"])


def test_what_is_denied_is_never_asked_about(checkpoints: Checkpoints) -> None:
    """A loop of invalid calls ends the run: no person can let them run."""
    agent = create_agent(ScriptedModel([call("look", wrong=1)] * 5), [Till().look()], loops=ASKING)
    result = Desk(agent, checkpoints).run()
    assert (StopReason.LOOP, ()) == (result.stop_reason, result.approvals)


def paying(till: Till, turns: int) -> Agent:
    """Build an agent whose every payment is asked about, and which pays the same for ever."""
    return create_agent(planned([call("pay", order_id="A1", amount=5)], calls=turns), [till.pay()])


def test_a_pause_and_another_process_reset_nothing(tmp_path: Path) -> None:
    """Each payment is approved over a store opened anew: the fourth is not asked about, the fifth ends the run."""
    till, stands = Till(), list[RunResult]()
    for opened in range(4):
        with open_checkpoints(f"sqlite:///{tmp_path / 'runs.db'}") as checkpoints:
            desk = Desk(paying(till, 9), checkpoints)
            stands.append(desk.run(run_id="r") if opened == 0 else desk.answer(desk.wait("r"), approve()))
    expected = [("waiting", 1), ("waiting", 2), ("waiting", 3), ("stopped", 5)]
    assert expected == [(result.status, result.usage.steps) for result in stands]
    assert (StopReason.LOOP, 3) == (stands[-1].stop_reason, len(till.paid))
    check_transcript(stands[-1].messages)


def test_one_question_holds_both_reasons(checkpoints: Checkpoints) -> None:
    """Where a rule asks anyway: the rule's roles and times stay, and the loop is named beside it."""
    till = Till()
    agent = create_agent(planned([call("pay", order_id="A1", amount=5)]), [till.pay()], loops=ASKING)
    desk = Desk(agent, checkpoints)
    result = desk.run()
    for _ in range(3):
        result = desk.answer(result, approve())
    payload = result.approvals[0].payload
    assert ("default", True) == (payload["rule"], payload["why"].startswith("no rule allows this write; it is part"))
    assert (5, 3) == (result.usage.steps, len(till.paid))


def test_the_same_change_counts(checkpoints: Checkpoints) -> None:
    """A write that says the same each time is held back too, unless it has an allowance."""
    for loops, paid in ((Loops(), 3), (Loops(allow={"pay": 10}), 6)):
        till = Till()
        turns = [*[call("pay", order_id="A1", amount=5)] * 6, "Done."]
        agent = create_agent(planned(turns), [till.pay()], permissions=[allow("pay")], loops=loops)
        Desk(agent, checkpoints).run(thread_id=paid)
        assert paid == len(till.paid)
