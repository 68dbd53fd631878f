"""A hundred recorded conversations of a real model, replayed through the whole ring: nothing is lost or held back.

Each message of the user is a task on the thread, the recorded replies are the model's, the recorded results the tools'.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolCall
from langchain_core.tools import StructuredTool
from pydantic import create_model
from tests.world.doors import DOORS, Desk, DoorName

from loopwright import Checkpoints, Limits, StopReason, allow, annotate, create_agent, open_checkpoints
from loopwright.testing import ScriptedModel, check_transcript
from loopwright.tools.results import EMPTY

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "data" / "airline" / "transcripts.jsonl"
"""Three of them, without the system prompt."""
ALL = ROOT.parent / "shared" / "data" / "airline" / "transcripts.jsonl"
"""The hundred, where they lie beside the checkout."""

LOOKING: dict[str, dict[str, Any]] = {
    "get_user_details": {"user_id": str},
    "get_reservation_details": {"reservation_id": str},
    "search_direct_flight": {"origin": str, "destination": str, "date": str},
    "search_onestop_flight": {"origin": str, "destination": str, "date": str},
    "list_all_airports": {},
    "calculate": {"expression": str},
    "think": {"thought": str},
}
CHANGING: dict[str, dict[str, Any]] = {
    "book_reservation": {
        **dict.fromkeys(("user_id", "origin", "destination", "flight_type", "cabin", "insurance"), str),
        **dict.fromkeys(("flights", "passengers", "payment_methods"), list[dict[str, Any]]),
        **dict.fromkeys(("total_baggages", "nonfree_baggages"), int),
    },
    "update_reservation_flights": {
        **dict.fromkeys(("reservation_id", "cabin", "payment_id"), str),
        "flights": list[dict[str, Any]],
    },
    "update_reservation_baggages": {
        **dict.fromkeys(("reservation_id", "payment_id"), str),
        **dict.fromkeys(("total_baggages", "nonfree_baggages"), int),
    },
    "cancel_reservation": {"reservation_id": str},
    "send_certificate": {"user_id": str, "amount": int},
}
HANDING_OVER: dict[str, dict[str, Any]] = {"transfer_to_human_agents": {"summary": str}}


LAST_WORDS = "The recording ends here."
"""What the model says where a recording breaks off behind a result."""


class Recording:
    """One conversation as it was recorded, without the system prompt and without what nobody answered."""

    def __init__(self, messages: list[dict[str, Any]]) -> None:
        """Take the messages."""
        self.said = [message for message in messages if message["role"] != "system"]
        while self.said[-1]["role"] == "user":
            self.said.pop()
        if self.said[-1]["role"] == "tool" and self.said[-1]["name"] not in HANDING_OVER:
            self.said.append({"role": "assistant", "content": LAST_WORDS})

    def tasks(self) -> list[str]:
        """Return what the user said."""
        return [message["content"] for message in self.said if message["role"] == "user"]

    def turns(self) -> list[AIMessage]:
        """Return what the model said, with the very call ids, which repeat."""
        return [
            AIMessage(message["content"] or "", tool_calls=[*_calls(message)])
            for message in self.said
            if message["role"] == "assistant"
        ]

    def calls(self) -> list[tuple[str, dict[str, Any]]]:
        """Return what was called, in order."""
        return [(call["name"], call["args"]) for message in self.said for call in _calls(message)]

    def results(self) -> list[str]:
        """Return what came back, in order."""
        return [message["content"] for message in self.said if message["role"] == "tool"]


class Airline:
    """The recorded tools: they answer as they did in the conversation that is replayed."""

    def __init__(self) -> None:
        """Build the tools."""
        self.called: list[tuple[str, dict[str, Any]]] = []
        self.results: deque[str] = deque()
        self.tools = [
            *(annotate(self._tool(name, args), effect="read") for name, args in LOOKING.items()),
            *(annotate(self._tool(name, args), effect="write") for name, args in CHANGING.items()),
            *(annotate(self._tool(name, args), effect="write", hands_over=True) for name, args in HANDING_OVER.items()),
        ]
        self.permissions = [allow(name) for name in (*CHANGING, *HANDING_OVER)]

    def _tool(self, name: str, args: dict[str, Any]) -> StructuredTool:
        fields: dict[str, Any] = {field: (type_, ...) for field, type_ in args.items()}

        def answer(**given: Any) -> str:
            self.called.append((name, given))
            return self.results.popleft()

        about = f"{name.replace('_', ' ').capitalize()}, as the airline's system did."
        schema = create_model(name, **fields)
        return StructuredTool.from_function(answer, name=name, description=about, args_schema=schema)


def _calls(message: dict[str, Any]) -> Iterator[ToolCall]:
    for asked in message.get("tool_calls") or ():
        function = asked["function"]
        yield ToolCall(name=function["name"], args=json.loads(function["arguments"]), id=asked["id"], type="tool_call")


def read(path: Path) -> list[Recording]:
    """Read recordings, one a line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Recording(json.loads(line)["messages"]) for line in lines]


def as_recorded(message: dict[str, Any]) -> tuple[str, str, list[tuple[str, Any]]]:
    """Return what a recorded message says, without the ids."""
    kind = {"user": "human", "assistant": "ai", "tool": "tool"}[message["role"]]
    empty = EMPTY if kind == "tool" else ""
    return kind, message["content"] or empty, [(call["name"], call["args"]) for call in _calls(message)]


def plain(message: AnyMessage) -> tuple[str, str, list[tuple[str, Any]]]:
    """Return what a message of the transcript says, without the ids."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return message.type, message.text, [(call["name"], call["args"]) for call in calls]


def replay(recording: Recording, airline: Airline, checkpoints: Checkpoints, thread_id: str, door: DoorName) -> None:
    """Run the conversation as it was recorded, and fail at whatever differs."""
    airline.called, airline.results = [], deque(recording.results())
    model = ScriptedModel([*recording.turns()])
    agent = create_agent(model, airline.tools, permissions=airline.permissions, limits=Limits(max_steps=40))
    desk = Desk(agent, checkpoints, door)
    results = [desk.run(task, thread_id=thread_id) for task in recording.tasks()]
    model.assert_done()
    assert recording.calls() == airline.called
    assert [as_recorded(message) for message in recording.said] == [plain(m) for m in results[-1].messages]
    entries = [entry for result in results for entry in result.trail]
    assert len(recording.calls()) == len(entries)
    assert {("allow", "done", None)} >= {(entry["verdict"], entry["outcome"], entry.get("loop")) for entry in entries}
    reasons = [result.stop_reason for result in results]
    assert {StopReason.ANSWERED} >= {*reasons[:-1]}
    is_handed_over = bool(recording.calls()) and recording.said[-1]["role"] == "tool"
    assert (StopReason.ESCALATED if is_handed_over else StopReason.ANSWERED) == reasons[-1]
    for sent in [*model.seen, results[-1].messages]:
        check_transcript(sent)


@pytest.fixture(scope="module", name="airline")
def open_airline() -> Airline:
    """The same tools for all: building them takes longer than a conversation."""
    return Airline()


@pytest.mark.parametrize("door", DOORS)
def test_a_sample_is_replayed_as_it_was_recorded(airline: Airline, checkpoints: Checkpoints, door: DoorName) -> None:
    """Repeated ids, text beside calls, empty results, one failure three times, a hand-over; both stores and doors."""
    for number, recording in enumerate(read(SAMPLE)):
        replay(recording, airline, checkpoints, str(number), door)


@pytest.mark.in_full
def test_all_recordings_are_replayed_as_they_were_recorded(airline: Airline) -> None:
    """The same calls in the same order, each answered by its result; valid at each model call, and no false alarm."""
    recordings = read(ALL if ALL.exists() else SAMPLE)
    with open_checkpoints("memory:") as checkpoints:
        for number, recording in enumerate(recordings):
            replay(recording, airline, checkpoints, str(number), "sync")
