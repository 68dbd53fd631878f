"""Anything can be stored (C56, C58): alike on every store, or marked, or refused before the effect; never lost."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import Enum, StrEnum
from typing import Any, Generic, TypeVar

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.types import Command
from pydantic import BaseModel
from tests.world.doors import DOORS, Desk, DoorName
from tests.world.plans import planned
from tests.world.till import Till

from loopwright import (
    Agent,
    Checkpoints,
    Effect,
    NotDone,
    RunResult,
    SyncRuns,
    allow,
    approve,
    ask,
    create_agent,
    edit,
    happened,
    reject,
    respond,
    tool,
)
from loopwright.errors import ApprovalNotFound, ConfigurationError, EffectNotFound, InvalidDecision, RunNotFound
from loopwright.graphs import change_agent
from loopwright.testing import call, check_transcript

T = TypeVar("T")
MARK = "\ufffd"
ODD_TEXTS = {
    "nul": ("a\x00b", f"a{MARK}b"),
    "lone surrogate": ("a\ud83db", f"a{MARK}b"),
    "reversed pair": ("\ude00\ud83d", MARK * 2),
    "a pair in two halves": ("\ud83d\ude00", "😀"),
    "emoji": ("😀👩‍👩‍👧", "😀👩‍👩‍👧"),
    "controls": ("\x01\x1f\x7f\x85\u2028", "\x01\x1f\x7f\x85\u2028"),
    "right to left": ("\u202eabc\ufeff", "\u202eabc\ufeff"),
}


class Colour(Enum):
    """An enumeration that is no text."""

    RED = 1


class Size(StrEnum):
    """One that is."""

    BIG = "big"


@dataclass
class Order:
    """What a tool of a user's may return."""

    id: str
    colour: Colour
    total: Decimal


ODD_RESULTS: dict[str, tuple[Any, str]] = {
    **ODD_TEXTS,
    "nan": ({"x": float("nan"), "y": [float("-inf")]}, '{"x": "NaN", "y": ["-Infinity"]}'),
    "big": (2**70, str(2**70)),
    "bytes": (b"\x00\xff", "base64:AP8="),
    "enum": (Colour.RED, "1"),
    "text enum": ([Size.BIG], '["big"]'),
    "dataclass": (Order("A\x001", Colour.RED, Decimal("1.50")), '{"id": "A\\u00001", "colour": 1, "total": "1.50"}'),
    "keys": ({("a", 1): {2}, "\x00": None}, '{"[\\"a\\", 1]": [2], "\\u0000": null}'),
}


def build_payer(*turns: Any) -> tuple[Agent, list[Any]]:
    """Build an agent that pays without asking; returns it with what the tool was given."""
    given: list[Any] = []

    @tool(effect="write")
    def pay(order: Any) -> Any:
        """Pay money back for an order."""
        given.append(order)
        return ODD_RESULTS[order][0] if isinstance(order, str) and order in ODD_RESULTS else "paid"

    return create_agent(planned(turns), [pay], permissions=[allow("pay")]), given


def same_when_read_again(result: RunResult, desk: Desk) -> None:
    """Require that the database brings back what the run returned."""
    assert result.status == "succeeded"
    check_transcript(result.messages)
    again = desk.wait(result.run_id)
    assert [message.model_dump() for message in result.messages] == [one.model_dump() for one in again.messages]
    assert (result.trail, result.answer) == (again.trail, again.answer)


@pytest.mark.parametrize("door", DOORS)
def test_c56_texts_of_the_user_and_the_model(checkpoints: Checkpoints, door: DoorName) -> None:
    """Kept, or marked: in the message, the answer, the list of runs and the log; the model sees the mark too."""
    for number, (text, kept) in enumerate(ODD_TEXTS.values()):
        agent, _ = build_payer(f"Answer {text}.")
        desk = Desk(agent, checkpoints, door)
        result = desk.run(f"Ask {text}.", thread_id=f"t{number}")
        assert [f"Ask {kept}.", f"Answer {kept}."] == [message.text for message in result.messages]
        row = checkpoints.ledger.runs.find(result.run_id)
        assert row is not None
        assert f"Answer {kept}." == result.answer
        same_when_read_again(result, desk)
    assert checkpoints.ledger.log.verify().is_whole


@pytest.mark.parametrize("door", DOORS)
def test_c56_results_of_tools(checkpoints: Checkpoints, door: DoorName) -> None:
    """Text with marks, or JSON: the tool runs once, its effect is settled with the same text that the model reads."""
    agent, given = build_payer([call("pay", order=name) for name in ODD_RESULTS], "Done.")
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    texts = {name: text for name, (_, text) in ODD_RESULTS.items()}
    assert [*texts.values()] == [message.text for message in result.messages if message.type == "tool"]
    assert sorted(ODD_RESULTS) == sorted(given)
    effects = checkpoints.ledger.effects.of_run(result.run_id)
    assert sorted(("done", text) for text in texts.values()) == sorted((row.status, row.result) for row in effects)
    same_when_read_again(result, desk)


ODD_ARGS: dict[str, Any] = {
    "nul": "a\x00b",
    "nul in a key": {"a\x00b": 1},
    "lone surrogate": "a\ud83db",
    "nan": float("nan"),
    "infinity": [float("inf")],
    "above 64 bits": 2**64,
    "below 64 bits": {"x": -(2**63) - 1},
    "bytes": b"\x00",
    "enum": Colour.RED,
    "object": object(),
}


@pytest.mark.parametrize("door", DOORS)
def test_c56_arguments_that_cannot_be_kept(checkpoints: Checkpoints, door: DoorName) -> None:
    """The tool gets them exactly as they were said, or never runs and the model reads why; alike on every store."""
    agent, given = build_payer([call("pay", order=odd) for odd in ODD_ARGS.values()], "Done.")
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    told = [message.text for message in result.messages if message.type == "tool"]
    ran = [odd for odd, text in zip(ODD_ARGS.values(), told, strict=True) if text == "paid"]
    assert sorted(map(repr, ran)) == sorted(map(repr, given))
    assert ["done"] * len(ran) == [row.status for row in checkpoints.ledger.effects.of_run(result.run_id)]
    assert [] == [text for text in told if text != "paid" and "arguments" not in text]
    same_when_read_again(result, desk)


@pytest.mark.parametrize("door", DOORS)
def test_arguments_at_the_edge(checkpoints: Checkpoints, door: DoorName) -> None:
    """What is storable reaches the tool as it was said."""
    args: Mapping[str, Any] = {
        "largest": 2**63 - 1,
        "smallest": -(2**63),
        "deep": [[[[[{"a": None}]]]]],
        "float": 1e300,
        "text": "😀\n\t",
    }
    agent, given = build_payer(call("pay", order=args), "Done.")
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    assert [args] == given
    same_when_read_again(result, desk)


@pytest.mark.parametrize("door", DOORS)
def test_a_tool_that_raises_odd_texts(checkpoints: Checkpoints, door: DoorName) -> None:
    """An exception's text goes through the same door: the run goes on, the effect is asked about."""

    @tool(effect="read")
    def fail(order: str) -> str:
        """Fail."""
        raise ValueError(f"no {order} \x00 \ud800 {2**70}")

    agent = create_agent(planned([call("fail", order="A1"), "Done."]), [fail])
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    assert f"{2**70}" in result.messages[2].text
    same_when_read_again(result, desk)


@pytest.mark.parametrize("door", DOORS)
def test_c56_metadata_and_tags(checkpoints: Checkpoints, door: DoorName) -> None:
    """What a caller says about a run is kept with marks; what has no JSON form never breaks it."""
    config: Any = {
        "configurable": {"thread_id": "t"},
        "tags": ["a\x00b", "\ud800"],
        "metadata": {"n\x00": "v\x00", "s": "\ud800", "nan": float("nan"), "big": 2**70, "bytes": b"\x00"}
        | {"enum": Colour.RED, "order": Order("A", Colour.RED, Decimal(1)), "inf": [float("inf")]},
    }
    agent: Any = create_agent(planned(["Done."]), [], checkpoints=checkpoints)
    given: Any = {"messages": [("user", "Hi.")]}
    result: Any = agent.invoke(given, config) if door == "sync" else asyncio.run(agent.ainvoke(given, config))
    assert "Done." == result["messages"][-1].text
    metadata: Any = next(checkpoints.saver.list(config)).metadata
    assert (f"v{MARK}", MARK) == (metadata[f"n{MARK}"], metadata["s"])


@pytest.mark.parametrize("door", DOORS)
def test_what_people_say(checkpoints: Checkpoints, door: DoorName) -> None:
    """Reasons, edits, responses and names with odd characters are kept, as they are or marked, and the run goes on."""

    @tool(effect="write")
    def pay(order: str) -> str:
        """Pay money back for an order."""
        return f"paid {order}"

    agent = create_agent(planned([call("pay", order="A1"), "Done."]), [pay])
    desk = Desk(agent, checkpoints, door)
    text = "a\x00b\ud83d!\x1f😀"
    marked = [text.replace("\ud83d", mark).replace("\x00", nul) for mark in (MARK, "?") for nul in (MARK, "\x00")]
    said: list[Any] = [
        {"type": "reject", "message": f"no {text}"},
        {"type": "respond", "message": f"yes {text}"},
        {"type": "edit", "edited_action": {"name": "pay", "args": {"order": text}}},
    ]
    for decision in said:
        waiting = desk.run(thread_id=decision["type"])
        result = desk.answer(waiting, decision)
        assert any(one in result.messages[2].text for one in marked), result.messages[2].text
        same_when_read_again(result, desk)


ODD_DECISIONS: dict[str, tuple[Any, str]] = {
    "reject": (reject("no \x00 \ud800"), f"rejected by ana: no {MARK} {MARK}"),
    "respond": (respond("done \x00 \ud800"), f"done {MARK} {MARK}"),
    "wire": ({"type": "reject", "message": "no \x00 \ud800"}, f"rejected by ana: no {MARK} {MARK}"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("kind", ODD_DECISIONS)
def test_decisions(checkpoints: Checkpoints, kind: str, door: DoorName) -> None:
    """Marked before they are taken: the receipt, the model and the log have one text; a name like that is refused."""
    decision, told = ODD_DECISIONS[kind]
    agent = create_agent(planned([call("pay", order_id="A1", amount=5), "Done."]), [Till().pay()])
    desk = Desk(agent, checkpoints, door)
    waiting = desk.run()
    with pytest.raises(InvalidDecision, match="name"):
        desk.decide(waiting.approvals[0].id, decision, by="an\x00a")
    receipt = desk.decide(waiting.approvals[0].id, decision)
    assert receipt.decision is not None
    assert MARK in receipt.decision["message"]
    result = desk.wait(waiting.run_id)
    assert told in result.messages[2].text
    same_when_read_again(result, desk)
    assert checkpoints.ledger.log.verify().is_whole


@pytest.mark.parametrize("value", [float("nan"), -(2**70), "\ud800", {"a\x00": float("inf")}])
def test_edits(checkpoints: Checkpoints, value: Any) -> None:
    """Edited arguments reach the tool as they were given, or are refused with the question open."""
    agent, given = build_payer(call("pay", order="x"), "Done.")
    asks = create_agent(agent.spec.model, agent.spec.offered, permissions=[ask("pay")])
    desk = Desk(asks, checkpoints)
    waiting = desk.run()
    try:
        desk.decide(waiting.approvals[0].id, edit(order=value))
    except InvalidDecision:
        assert ("waiting", []) == (desk.wait(waiting.run_id).status, given)
        return
    assert "succeeded" == desk.wait(waiting.run_id).status
    assert [value] == given


@pytest.mark.parametrize("message", ["no \x00", "no \ud800"])
@pytest.mark.parametrize("kind", ["reject", "respond"])
def test_raw_answers(checkpoints: Checkpoints, kind: str, message: str) -> None:
    """What a client resumes with may be anything: the run goes on with the mark, and can be read again."""
    till = Till()
    plan = planned([call("pay", order_id="A1", amount=5), "Done."])
    agent: Any = create_agent(plan, [till.pay()], checkpoints=checkpoints)
    config: Any = {"configurable": {"thread_id": "t", "langgraph_auth_user_id": "an\x00a"}}
    agent.invoke({"messages": [("user", "Hi.")]}, config)
    state = agent.invoke(Command(resume={"type": kind, "message": message}), config)
    assert ("succeeded", []) == (state["run"]["status"], till.paid)
    assert f"no {MARK}" in state["messages"][2].text
    (asked,) = checkpoints.ledger.approvals.of_run(state["run"]["id"])
    assert f"an{MARK}a" == asked.decided_by
    assert state["messages"] == agent.get_state(config).values["messages"]


@pytest.mark.parametrize("error", [NotDone("not \x00 \ud800"), ValueError("odd \x00 \ud800")])
def test_a_write_that_raises_odd_texts(checkpoints: Checkpoints, error: Exception) -> None:
    """A plain failure, or an outcome to be asked about: settled, shown and answered alike."""

    @tool(effect="write")
    def pay(order: str) -> str:
        """Pay money back for an order."""
        raise error if order else ValueError

    agent = create_agent(planned([call("pay", order="A1"), "Done."]), [pay], permissions=[allow("pay")])
    desk = Desk(agent, checkpoints)
    result = desk.run()
    if result.approvals:
        assert f"{MARK} {MARK}" in result.approvals[0].description
        result = desk.answer(result, respond("it \x00 happened"))
    assert MARK in result.messages[2].text
    same_when_read_again(result, desk)


@pytest.mark.parametrize("door", DOORS)
def test_c56_tools_that_nobody_has(checkpoints: Checkpoints, door: DoorName) -> None:
    """A name, or an id of a call, that no store can keep: the model reads that there is no such tool, and goes on."""
    calls = [call(name, order="nul") | {"id": f"c{name}"} for name in ODD_NAMES]
    agent, given = build_payer(AIMessage("", tool_calls=calls), "Done.")
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    assert ([], "Done.") == (given, result.answer)
    told = [message.text for message in result.messages if message.type == "tool"]
    assert [True] * len(ODD_NAMES) == ["no tool" in text for text in told], told
    same_when_read_again(result, desk)


ODD_NAMES = ("pa\x00y", "\x00", "pay\ud800")


class Holder:
    """Holds an enumeration of its own."""

    class Inner(Enum):
        """That one."""

        RED = "red"


@dataclass
class Late:
    """A field of it is no argument."""

    a: int
    b: int = field(init=False, default=3)


class Box(BaseModel, Generic[T]):
    """Something generic."""

    value: T


FOREIGN: dict[str, tuple[Any, Any]] = {
    "enum in a class": (Holder.Inner.RED, "red"),
    "text enum": (Size.BIG, "big"),
    "late field": (Late(1), {"a": 1, "b": 3}),
    "generic": (Box[int](value=1), {"value": 1}),
    "defaultdict": (defaultdict(list, {"x": [1]}), {"x": [1]}),
    "bounded deque": (deque([1, 2], maxlen=2), [1, 2]),
    "tuple": ((1, "a"), [1, "a"]),
    "tuple as a key": ({("a", 1): 2}, {'["a", 1]': 2}),
    "money": (Decimal("1.50"), "1.50"),
}


@pytest.mark.parametrize("door", DOORS)
def test_c58_types_of_others(checkpoints: Checkpoints, door: DoorName) -> None:
    """An artifact is plain data before it is stored: who ran the tool sees what whoever reads it later will see."""

    @tool(effect="read", response_format="content_and_artifact")
    def look(name: str) -> Any:
        """Look something up."""
        return "seen", {"found": FOREIGN[name][0]}

    agent = create_agent(planned([[call("look", name=name) for name in FOREIGN], "Done."]), [look])
    desk = Desk(agent, checkpoints, door)
    result = desk.run()
    same_when_read_again(result, desk)
    for seen in (result, desk.wait(result.run_id)):
        found = [message.artifact["found"] for message in seen.messages if isinstance(message, ToolMessage)]
        plain = [kept for _, kept in FOREIGN.values()]
        assert (plain, [*map(type, plain)]) == (found, [*map(type, found)])


ODD_EXTRAS: dict[str, Any] = {"big": 2**70, "nan": float("nan"), "object": object(), "half": "a\ud83db", "nul": "\x00"}


@pytest.mark.parametrize("door", DOORS)
def test_what_comes_beside_a_reply_or_a_result(checkpoints: Checkpoints, door: DoorName) -> None:
    """A paid reply and a settled effect are not lost by metadata or an artifact that cannot be stored."""

    @tool(effect="write", response_format="content_and_artifact")
    def pay(order: str) -> Any:
        """Pay money back for an order."""
        return "paid", {"odd": ODD_EXTRAS[order]}

    for number, (name, odd) in enumerate(ODD_EXTRAS.items()):
        turns = [
            call("pay", order=name),
            AIMessage("Done.", response_metadata={"x": odd}, additional_kwargs={"y": odd}),
        ]
        agent = create_agent(planned(turns), [pay], permissions=[allow("pay")])
        desk = Desk(agent, checkpoints, door)
        result = desk.run(thread_id=f"t{number}")
        assert ["Done.", "paid"] == [result.answer, result.messages[-2].text]
        check_transcript(result.messages)


def test_a_key_that_cannot_be_kept(checkpoints: Checkpoints) -> None:
    """What the model wrote into a tool's own key is marked there; the call runs, once."""
    paid: list[str] = []

    @tool(effect="write", key="pay:{order}")
    def pay(order: str, effect: Effect) -> str:
        """Pay money back for an order."""
        paid.append(effect.key)
        return f"paid {order}"

    agent = create_agent(planned([call("pay", order="a\x00b")]), [pay], permissions=[allow("pay")])
    for number in range(2):
        runs = SyncRuns(change_agent(agent, model=planned([call("pay", order="a\x00b"), "Done."])), checkpoints)
        assert "Done." == runs.run("Pay.", thread_id=f"t{number}").answer
    assert [f"pay:pay:a{MARK}b"] == paid


@pytest.mark.parametrize("name", ["a\x00b", "a\ud83db"])
def test_names_that_cannot_be_kept(checkpoints: Checkpoints, name: str) -> None:
    """One that is to be kept is refused, and what is looked for by one is not found; alike on every store."""
    agent = create_agent(planned([]), [])
    runs = SyncRuns(agent, checkpoints)
    with pytest.raises(ConfigurationError, match="run_id"):
        runs.start("Look.", thread_id="t", run_id=name)
    with pytest.raises(ConfigurationError, match="reference"):
        SyncRuns(agent, checkpoints, reference=name)
    with pytest.raises(ConfigurationError, match="name is"):
        create_agent(planned([]), [], name=name)
    with pytest.raises(RunNotFound):
        runs.get(name)
    with pytest.raises(ApprovalNotFound):
        runs.decide(name, approve(), by="ana")
    with pytest.raises(EffectNotFound):
        runs.resolve(name, happened("x"), by="ana")
    assert [] == [*runs.list(thread_id=name), *runs.approvals(name)]
