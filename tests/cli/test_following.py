"""How a run is shown while it goes on."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from tests.world.till import Till

from loopwright import Checkpoints, SyncRuns, create_agent
from loopwright.cli.finding import find_run
from loopwright.cli.following import Speech, follow
from loopwright.cli.screen import Screen
from loopwright.testing import ScriptedModel, call


@pytest.mark.parametrize("pieces", [["It is on ", "its way."], ["It is on its way.\n"]])
def test_what_follows_a_streamed_text_is_set_off(pieces: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """By one empty line, as behind a text that comes whole; the end of the text's own line is none."""
    screen = Screen(streams=True)
    speech = Speech(screen)
    for piece in pieces:
        speech.say(piece)
    speech.end()
    screen.gap()
    screen.line("succeeded")
    assert "It is on its way.\n\nsucceeded\n" == capsys.readouterr().out


@pytest.mark.parametrize("checkpoints", ["memory"], indirect=True)
def test_a_reader_that_goes_away_is_told_how_the_run_goes_on(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As under `head -1`, and as after Ctrl-C; the run goes on from where it was left."""
    turns: list[Any] = [call("look", order_id="A1"), call("look", order_id="A2"), "Both are there."]
    agent = create_agent(ScriptedModel(turns), [Till().look()])
    runs = SyncRuns(agent, checkpoints)
    started = runs.start("Look.", thread_id="t", run_id="look")
    reading, writing = os.pipe()
    os.close(reading)
    row = find_run(checkpoints.ledger, started.id)
    pipe = os.fdopen(writing, "w")
    monkeypatch.setattr(sys, "stdout", pipe)
    with pytest.raises(BrokenPipeError):
        follow(agent, runs, row, checkpoints, Screen())
    monkeypatch.undo()
    with pytest.raises(BrokenPipeError):
        pipe.close()
    told = " ".join(capsys.readouterr().err.split())
    assert "nobody reads the output any more; run look is kept as it stands" in told
    assert told.endswith("loopwright resume look")
    assert "Both are there." == runs.wait("look").answer
