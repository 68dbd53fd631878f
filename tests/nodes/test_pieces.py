"""What each message takes of the context window."""

from __future__ import annotations

import gc

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from loopwright.models import size_of
from loopwright.nodes.pieces import known_pieces, piece_of


def test_a_message_is_measured_once() -> None:
    """Whatever the transcript that it is in; measured anew when it holds something else."""
    message = HumanMessage("A short one.")
    first = piece_of(message)
    assert first is piece_of(message)
    assert size_of(message) == first.tokens
    message.content = "A longer one, with much more in it than before."
    assert size_of(message) == piece_of(message).tokens > first.tokens


def test_it_is_forgotten_with_the_message() -> None:
    """A service would else keep what was said in every run."""
    gc.collect()
    before = known_pieces()
    messages: list[AnyMessage] = [HumanMessage("Look."), AIMessage(""), ToolMessage("x" * 5_000, tool_call_id="a")]
    assert [None, None, 5_000] == [piece.shown and piece.characters for piece in map(piece_of, messages)]
    assert before + len(messages) == known_pieces()
    messages.clear()
    gc.collect()
    assert before == known_pieces()
