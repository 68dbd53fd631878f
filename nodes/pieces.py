"""What each message takes of the context window: worked out once, and known for as long as the message lives."""

from __future__ import annotations

from functools import partial
from weakref import ref

from langchain_core.messages import AIMessage, AnyMessage, SystemMessage, ToolMessage

from loopwright.models import count_text, size_of
from loopwright.policy import Piece

from .context import is_users
from .view import is_shortenable

ROOM_FOR_MARKS = 80
"""Tokens that the notice and the marks of a shortened result take at most."""

_KNOWN: dict[int, tuple[ref[AnyMessage], object, Piece]] = {}
"""By the message's identity: the message, what it held, and its piece. A step would cost more with each one before it
otherwise: the whole transcript is measured before each call of the model."""


def piece_of(message: AnyMessage) -> Piece:
    """Return a message by its size; pinned for what it is, not for its place."""
    key = id(message)
    known = _KNOWN.get(key)
    if known is not None and known[0]() is message and known[1] is message.content:
        return known[2]
    piece = _measured(message)
    _KNOWN[key] = ref(message, partial(_forget, key)), message.content, piece
    return piece


def known_pieces() -> int:
    """Return of how many messages the size is known."""
    return len(_KNOWN)


def _forget(key: int, gone: ref[AnyMessage]) -> None:
    if (known := _KNOWN.get(key)) is not None and known[0] is gone:
        del _KNOWN[key]


def _measured(message: AnyMessage) -> Piece:
    tokens = size_of(message)
    if isinstance(message, ToolMessage) and is_shortenable(message):
        text = message.text

        def shown(share: int) -> int:
            return count_text(text[:share]) + ROOM_FOR_MARKS

        return Piece(tokens, shown=shown, characters=len(text))
    return Piece(
        tokens,
        is_pinned=isinstance(message, SystemMessage),
        is_reply=isinstance(message, AIMessage),
        is_users=is_users(message),
    )
