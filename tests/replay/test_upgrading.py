"""States that another release would have written (C60): a pause is carried on, or refused with all intact."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph.types import Command
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.stores import Store, open_store
from tests.world.stories import ANSWER, build_shop, wait_at_question
from tests.world.till import Till

from loopwright import Checkpoints, RunResult, approve, open_checkpoints
from loopwright.checkpoints import Ledger
from loopwright.errors import StorageCorrupt, VersionUnsupported
from loopwright.graphs import compile_agent
from loopwright.state import SCHEMA_VERSION, new_call, new_thread, no_usage
from loopwright.testing import check_transcript

Values = dict[str, Any]
CONFIG: Any = {"configurable": {"thread_id": "waiting", "checkpoint_ns": ""}}


@pytest.fixture(name="store", params=["sqlite", "postgres"])
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store that outlives a release."""
    return open_store(request, tmp_path)


@pytest.fixture(name="checkpoints")
def open_store_once(store: Store) -> Generator[Checkpoints]:
    """Opened for the whole test."""
    with open_checkpoints(store.url) as checkpoints:
        yield checkpoints


def rewrite(checkpoints: Checkpoints, change: Callable[[Values], None]) -> None:
    """Store the newest state of the thread as a release that wrote it otherwise would have."""
    found = checkpoints.saver.get_tuple(CONFIG)
    assert found is not None
    writes = found.pending_writes or []
    checkpoints.saver.squash("waiting")  # one whole checkpoint, with its pause, without history
    squashed = checkpoints.saver.get_tuple(CONFIG)
    assert squashed is not None
    values: Values = {**squashed.checkpoint["channel_values"]}
    change(values)
    checkpoints.saver.delete_thread("waiting")
    stored: Any = {**squashed.checkpoint, "channel_values": values}
    checkpoints.saver.put(CONFIG, stored, squashed.metadata, stored["channel_versions"])
    place: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_id": stored["id"]}}
    for task_id, channel, value in writes:
        checkpoints.saver.put_writes(place, [(channel, value)], task_id)


def answer(checkpoints: Checkpoints, desk: Desk, waiting: RunResult) -> RunResult:
    """Approve what is asked, once or again, as long as something is asked."""
    result = waiting
    for _ in range(3):
        open_ = checkpoints.ledger.approvals.list_open()
        if not open_:
            return desk.wait(waiting.run_id)
        desk.decide(open_[0].id, approve())
        result = desk.wait(waiting.run_id)
    return result


def check_carried_on(checkpoints: Checkpoints, change: Callable[[Values], None], door: DoorName = "sync") -> None:
    """The question is decided, the effect happens once, the run ends, and the thread takes a new task."""
    till = Till()
    agent = build_shop(till)
    waiting = wait_at_question(agent, checkpoints)
    rewrite(checkpoints, change)
    desk = Desk(agent, checkpoints, door)
    result = answer(checkpoints, desk, waiting)
    assert ("succeeded", ANSWER, [("A1", 5)]) == (result.status, result.answer, till.paid)
    check_transcript(result.messages)
    again = answer(checkpoints, desk, desk.run("Once more.", thread_id="waiting"))
    assert ("waiting" if again.approvals else "succeeded") == again.status
    checkpoints.ledger.log.verify()


RUN = ("task_id", "task", "began", "status", "reason", "answer", "error")
FIELDS = [
    *[("run", name) for name in RUN],
    *[("usage", name) for name in no_usage()],
    *[("thread", name) for name in new_thread()],
    *[("turn", name) for name in new_call("", "", {}) if name not in ("id", "name", "args")],
]


def lacking(channel: str, names: list[str]) -> Callable[[Values], None]:
    """Written before these fields were there."""

    def change(values: Values) -> None:
        records: list[Values] = values[channel] if channel == "turn" else [values[channel]]
        values[channel] = cut = [{k: v for k, v in one.items() if k not in names} for one in records]
        if channel != "turn":
            values[channel] = cut[0]

    return change


@pytest.mark.parametrize("channel", ["run", "usage", "thread", "turn"])
def test_every_field_of_a_record_may_be_missing(checkpoints: Checkpoints, channel: str) -> None:
    """All at once, but the verdict on the table: what is left is who it is about."""
    names = [name for of, name in FIELDS if of == channel and name != "verdict"]
    check_carried_on(checkpoints, lacking(channel, names))


@pytest.mark.parametrize(("channel", "name"), FIELDS)
def test_one_field_may_be_missing(channel: str, name: str) -> None:
    """Each by itself; a call without a verdict does not run, and the model is told."""
    with open_checkpoints("memory:") as checkpoints:
        if name != "verdict":
            check_carried_on(checkpoints, lacking(channel, [name]))
            return
        till = Till()
        agent = build_shop(till)
        waiting = wait_at_question(agent, checkpoints)
        rewrite(checkpoints, lacking(channel, [name]))
        desk = Desk(agent, checkpoints)
        desk.decide(waiting.approvals[0].id, approve())
        assert ("succeeded", []) == (desk.wait(waiting.run_id).status, till.paid)


def lack_channels(values: Values) -> None:
    """Written before these channels were there."""
    for name in ("usage", "thread", "decision"):
        values.pop(name, None)


def have_more(values: Values) -> None:
    """Written by a release that kept more."""
    for name in ("run", "usage", "thread"):
        values[name] = {**values[name], "from_elsewhere": {"x": 1}}
    values["turn"] = [{**call, "from_elsewhere": None} for call in values["turn"]]
    values["unknown_channel"] = [1]


def count_in_floats(values: Values) -> None:
    """Written with another type of number."""
    for name in ("usage", "thread"):
        record = {key: float(number) if type(number) is int else number for key, number in values[name].items()}
        values[name] = record
    values["usage"]["by_tool"] = {tool: float(count) for tool, count in values["usage"]["by_tool"].items()}
    values["turn"] = [{**call, "ordinal": 0.0, "attempt": 0.0} for call in values["turn"]]


def be_older(values: Values) -> None:
    """Written by a release before the first."""
    values["thread"] = {**values["thread"], "version": 0}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("change", [lack_channels, have_more, count_in_floats, be_older])
def test_a_state_of_another_shape(checkpoints: Checkpoints, change: Callable[[Values], None], door: DoorName) -> None:
    """With channels less, fields more, floats for whole numbers, or an older version."""
    check_carried_on(checkpoints, change, door)


def lack_the_turn(values: Values) -> None:
    """Nothing says what is on the table."""
    del values["turn"]


def test_a_pause_without_its_turn(checkpoints: Checkpoints) -> None:
    """What was asked is lost with it: nothing runs, the model is told, and the run goes on."""
    till = Till()
    agent = build_shop(till)
    waiting = wait_at_question(agent, checkpoints)
    rewrite(checkpoints, lack_the_turn)
    result = Desk(agent, checkpoints).wait(waiting.run_id)
    assert ("succeeded", []) == (result.status, till.paid)
    assert "not run: what was known of it is lost" == result.messages[-2].text
    check_transcript(result.messages)


def test_counters_are_whole_again(checkpoints: Checkpoints) -> None:
    """Limits count on, in whole numbers, and an upgraded thread carries this release's version."""
    agent = build_shop(Till())
    waiting = wait_at_question(agent, checkpoints)
    rewrite(checkpoints, count_in_floats)
    rewrite(checkpoints, be_older)
    values: Any = compile_agent(agent.spec, checkpoints).get_state(CONFIG).values
    assert (waiting.usage.steps, SCHEMA_VERSION) == (values["usage"]["steps"], values["thread"]["version"])
    counts = [*values["usage"].values(), *values["thread"].values(), *values["usage"]["by_tool"].values()]
    assert {int, bool, float, dict} == {type(count) for count in counts}
    assert float is type(values["usage"]["seconds"])


def snapshot(store: Store) -> list[Any]:
    """Return the rows of every checkpoint."""
    tables = ("checkpoints", "writes") if store.kind == "sqlite" else ("checkpoints", "checkpoint_writes")
    return [sorted(map(str, store.execute(f"select * from {table}"))) for table in tables]  # noqa: S608 -- ours


def be_newer(values: Values) -> None:
    """Written by a release that knows more."""
    values["thread"] = {**values["thread"], "version": 99}


def lack_the_run(values: Values) -> None:
    """Nothing says whose state it is."""
    del values["run"]


def lack_the_run_id(values: Values) -> None:
    """Likewise."""
    del values["run"]["id"]


def lack_the_arguments(values: Values) -> None:
    """Nothing says what was asked."""
    del values["turn"][0]["args"]


def be_no_record(values: Values) -> None:
    """Something else in its place."""
    values["usage"] = 7


def be_no_number(values: Values) -> None:
    """A counter that counts nothing."""
    values["usage"]["steps"] = "many"


UNREADABLE: dict[Callable[[Values], None], type[Exception]] = {
    be_newer: VersionUnsupported,
    lack_the_run: StorageCorrupt,
    lack_the_run_id: StorageCorrupt,
    lack_the_arguments: StorageCorrupt,
    be_no_record: StorageCorrupt,
    be_no_number: StorageCorrupt,
}


@pytest.mark.parametrize("change", UNREADABLE)
@pytest.mark.parametrize("door", DOORS)
def test_what_cannot_be_read_is_refused(
    store: Store, checkpoints: Checkpoints, change: Callable[[Values], None], door: DoorName
) -> None:
    """By whatever carries the thread on, with nothing changed; a prune leaves it alone."""
    error = UNREADABLE[change]
    till = Till()
    agent = build_shop(till)
    waiting = wait_at_question(agent, checkpoints)
    rewrite(checkpoints, change)
    before = snapshot(store)
    desk = Desk(agent, checkpoints, door)
    ledger: Ledger = checkpoints.ledger
    ledger.decide(waiting.approvals[0].id, {"type": "approve"}, "ana")
    with pytest.raises(error):
        desk.wait(waiting.run_id)
    compiled = cast("Any", compile_agent(agent.spec, checkpoints))
    with pytest.raises(error):
        compiled.invoke(Command(resume={"type": "approve"}), CONFIG)
    assert ([], "waiting") == (till.paid, ledger.runs.list()[0].status)
    assert before == snapshot(store)
    assert 0 == checkpoints.prune(older_than=0).threads
