"""How a run is shown while it goes on."""

from __future__ import annotations

import pytest

from loopwright.cli.following import Speech
from loopwright.cli.screen import Screen


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
