"""Cassettes: recorded once from a real client, replayed offline, without a secret, and strict."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from tests.world.till import Till
from tests.world.wires import KEY, every_wire, opened

from loopwright import RunResult, RunStatus, SyncRuns, create_agent, open_checkpoints, open_model
from loopwright.errors import ConfigurationError
from loopwright.models import known_price, model_name
from loopwright.testing import CassetteMismatch, Failure, Reply, ScriptedModel, call, record, replay

SAID = "My key is sk-another-key-0123456789 and Bearer abc.def."


def run(model: Any, task: str = "Where is A1?") -> RunResult:
    """Run one task."""
    agent = create_agent(model, [Till().look()])
    with open_checkpoints("memory:") as checkpoints:
        return SyncRuns(agent, checkpoints).run(task, thread_id="t")


def common(result: RunResult) -> Any:
    """What a run and its replay share."""
    trail = [(entry["tool"], entry["args"], entry["outcome"]) for entry in result.trail]
    usage = (result.usage.input_tokens, result.usage.output_tokens, result.usage.cost, result.usage.estimated)
    return result.status, result.answer, trail, usage


@every_wire
def test_a_recording_replays_the_same_run_without_the_server(wire: dict[str, Any], tmp_path: Path) -> None:
    """The same calls, answer, usage and cost; no key is in the file, and each line is JSON that a person can read."""
    path = tmp_path / "cassette.jsonl"
    turns = [Reply("Let me look.", [("look", '{"order_id": "A1"}')]), Reply("It is there.", cached=50)]
    with wire["server"](turns) as server:
        recorded = run(record(opened(wire, server, default_headers={"x-team": "a-secret-of-ours"}), path))
    model = replay(path)
    replayed = run(model)
    model.assert_done()
    assert common(recorded) == common(replayed)
    text = path.read_text()
    assert KEY not in text
    assert "a-secret-of-ours" not in text
    header, first, second = [json.loads(line) for line in text.splitlines()]
    assert 1 == header["cassette"]
    assert "Where is A1?" == first["request"]["messages"][0]["content"]
    assert "call 1" == second["request"]["messages"][2]["tool_call_id"]
    assert (model_name(model), True) == (wire["name"].partition(":")[2], known_price(model) is not None)


@every_wire
def test_an_error_is_recorded_without_the_key_and_replayed(wire: dict[str, Any], tmp_path: Path) -> None:
    """The run fails as it did then."""
    path = tmp_path / "cassette.jsonl"
    with wire["server"]([Failure(401, f"Incorrect API key: {KEY}")]) as server:
        recorded = run(record(opened(wire, server), path))
    model = replay(path)
    replayed = run(model)
    model.assert_done()
    assert RunStatus.FAILED == recorded.status == replayed.status
    assert "401" in replayed.error
    assert KEY not in path.read_text()


def test_a_changed_request_fails_with_what_differs(tmp_path: Path) -> None:
    """Also when the run has swallowed what the model raised."""
    path = tmp_path / "cassette.jsonl"
    run(record(ScriptedModel(["There."]), path))
    model = replay(path)
    assert RunStatus.FAILED == run(model, "Where is B2?").status
    with pytest.raises(CassetteMismatch, match=r'(?s)-.*"Where is A1\?".*\+.*"Where is B2\?"'):
        model.assert_done()


def test_a_call_too_many_and_a_call_too_few(tmp_path: Path) -> None:
    """Both fail."""
    path = tmp_path / "cassette.jsonl"
    recorded = record(ScriptedModel(["one", "two"]), path)
    asyncio.run(recorded.ainvoke("a"))
    recorded.invoke("b")
    model = replay(path)
    assert "one" == model.invoke("a").text
    with pytest.raises(CassetteMismatch, match="1 of the 2 calls"):
        model.assert_done()
    model.invoke("b")
    with pytest.raises(CassetteMismatch, match="call 3 was made"):
        model.invoke("c")


def test_what_looks_like_a_secret_is_left_out_and_still_compares(tmp_path: Path) -> None:
    """In texts and in options."""
    path = tmp_path / "cassette.jsonl"
    secret: Any = {"extra_headers": {"authorization": "hush-hush"}, "api_key": "hush-hush"}
    record(ScriptedModel([SAID]), path).invoke(SAID, **secret)
    text = path.read_text()
    assert not [word for word in ("hush", "another-key", "abc.def") if word in text]
    assert replay(path).invoke(SAID, **secret).text.startswith("My key is ***")


def test_the_protocol_can_be_recorded_from_either_side(tmp_path: Path) -> None:
    """Around the model, or around the protocol that is spoken with it."""
    turns = ['{"type": "tool", "tool": "look", "input": {"order_id": "A1"}}', '{"type": "final", "answer": "There."}']
    for path in (tmp_path / "outer", tmp_path / "inner"):
        is_outer, model = path.name == "outer", ScriptedModel(turns)
        spoken = open_model(model if is_outer else record(model, path), protocol="json")
        assert "There." == run(record(spoken, path) if is_outer else spoken).answer
        replayed = replay(path)
        assert "There." == run(replayed if is_outer else open_model(replayed, protocol="json")).answer
        replayed.assert_done()


def test_files_that_will_not_do(tmp_path: Path) -> None:
    """A recording is never written over, and another file is none."""
    path = tmp_path / "notes.txt"
    path.write_text("{}\n")
    with pytest.raises(ConfigurationError, match="is there already"):
        record(ScriptedModel([]), path)
    for other in (path, tmp_path / "none"):
        with pytest.raises(ConfigurationError, match="is no cassette"):
            replay(other)


def test_a_scripted_model_streams_waits_and_reports() -> None:
    """Pieces of the text, then the calls; what was used with each reply."""
    model = ScriptedModel(["It is there.", call("look", order_id="A1")], tokens=(7, 3), chunk=6, latency=0.001)
    pieces = [*model.stream("a")]
    assert ["It is ", "there.", ""] == [piece.text for piece in pieces[:3]]
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    assert whole.usage_metadata is not None
    assert (7, 3) == (whole.usage_metadata["input_tokens"], whole.usage_metadata["output_tokens"])
    reply = asyncio.run(model.ainvoke("b"))
    assert ("look", {"order_id": "A1"}) == (reply.tool_calls[0]["name"], reply.tool_calls[0]["args"])
