"""What of a long transcript is sent, so that it fits the model's context window. Pure functions over sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from loopwright.errors import ConfigurationError

SHORT = 500
"""Characters to which old results are shortened, their notice included; what is shown of any result at least."""
LEAST_WINDOW = 4_000
REPLY_PART = 4
"""The reply takes at most one part in so many of the context window."""
SUMMARY_PART = 10
"""A summary takes at most one part in so many of what may be sent."""
LONGEST_SUMMARY = 2_000
"""Tokens of a summary at most."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """When a transcript that outgrows the model's context window is compacted, and to what.

    What is sent is counted whole: instructions, tools, transcript, and the room for a reply. Once that is more than the
    context window, old results are sent short (the model can read on in them); if that brings too little, old turns are
    left out, and a summary that the model wrote takes their place. The instructions, the user's first and newest
    message and the latest turns always stay. The stored transcript keeps everything.

    Raises:
        ConfigurationError: If a number is none, or out of its range.
    """

    window: int | None = None
    """Tokens of the context window; None: what LangChain's list says of the model, else 128,000."""
    keep_turns: int = 6
    """So many of the latest turns (a reply with its results) are sent as they are, if they fit into `target`."""
    target: float = 0.5
    """The part of what may be sent that a compaction leaves at most, so that the next one is far off."""
    reply: int = 4_096
    """Tokens that are kept free for the reply; of a small context window at most a quarter."""

    def __post_init__(self) -> None:
        """Refuse what leaves no room."""
        if self.window is not None and (not _is_whole(self.window) or self.window < LEAST_WINDOW):
            text = f"window is {self.window!r}; give the model's context window in tokens, at least {LEAST_WINDOW:,}"
            raise ConfigurationError(text, option="window")
        if not _is_whole(self.keep_turns) or self.keep_turns < 1:
            text = f"keep_turns is {self.keep_turns!r}; give a whole number, at least 1"
            raise ConfigurationError(text, option="keep_turns")
        if not _is_whole(self.reply) or self.reply < 1:
            text = f"reply is {self.reply!r}; give a whole number of tokens, at least 1"
            raise ConfigurationError(text, option="reply")
        if not _is_part(self.target):
            text = f"target is {self.target!r}; give a part, more than 0 and less than 1, such as 0.5"
            raise ConfigurationError(text, option="target")

    def most(self, window: int) -> int:
        """Return the tokens that may be sent into a context window of so many."""
        return window - min(self.reply, window // REPLY_PART)


def longest_summary(most: int) -> int:
    """Return the tokens that a summary takes at most, where so many may be sent."""
    return min(LONGEST_SUMMARY, most // SUMMARY_PART)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_part(value: object) -> bool:
    return isinstance(value, float) and 0 < value < 1


def check_compaction(compaction: object) -> Compaction | None:
    """Refuse what is neither None nor a `Compaction`.

    Raises:
        ConfigurationError: With the way out.
    """
    if compaction is not None and not isinstance(compaction, Compaction):
        text = f"compaction is {compaction!r}; give Compaction(…), or None to send every transcript whole"
        raise ConfigurationError(text, option="compaction")
    return compaction


@dataclass(frozen=True, slots=True)
class Piece:
    """One message of the transcript, by its size."""

    tokens: int
    """Whole, estimated."""
    is_pinned: bool = False
    """Whether it is never left out."""
    is_reply: bool = False
    """Whether it begins a turn: the model's reply, of which the results are parts."""
    is_users: bool = False
    shown: Callable[[int], int] | None = None
    """Of a result: its tokens where so many characters of it are shown. Showing less never takes more."""
    characters: int = 0
    """Of a result."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How pieces are sent; numbers are places among the pieces."""

    cut: int = 0
    """Pieces before it are left out, save for the pinned ones."""
    short: int = 0
    """Results before it are shortened."""
    shares: Mapping[int, int] = field(default_factory=dict[int, int])
    """Other results that are shortened: how many characters are shown."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What the pieces must fit into, in estimated tokens."""

    limit: int
    """All that may be sent."""
    target: int
    """What a compaction leaves at most, where it can."""
    fixed: int
    """What is sent besides the pieces: instructions, tools, messages that stay of what is left out already."""
    summary: int
    """The summary that stands already."""
    longest_summary: int
    keep_turns: int


@dataclass(frozen=True, slots=True)
class TooLong:
    """What must be sent does not fit."""

    tokens: int
    """What it takes, with all shortened that can be."""


def size_of_layout(pieces: Sequence[Piece], layout: Layout, frame: Frame) -> int:
    """Return what is sent by a layout, in estimated tokens."""
    summary = max(frame.summary, frame.longest_summary) if is_left_out(pieces, layout.cut) else frame.summary
    is_whole = not (layout.cut or layout.short or layout.shares)
    sent = [piece.tokens for piece in pieces] if is_whole else _sizes(pieces, layout)
    return frame.fixed + summary + sum(sent)


def _sizes(pieces: Sequence[Piece], layout: Layout) -> Iterator[int]:
    for place, piece in enumerate(pieces):
        if place >= layout.cut or piece.is_pinned:
            yield _size(piece, layout, place)


def _size(piece: Piece, layout: Layout, place: int) -> int:
    share = SHORT if place < layout.short else layout.shares.get(place)
    if piece.shown is None or share is None or share >= piece.characters:
        return piece.tokens
    return min(piece.tokens, piece.shown(share))


def is_left_out(pieces: Sequence[Piece], cut: int) -> bool:
    """Tell whether a cut leaves anything out."""
    return any(not piece.is_pinned for piece in pieces[:cut])


def plan_layout(pieces: Sequence[Piece], layout: Layout, frame: Frame) -> Layout | TooLong:
    """Return the layout by which the pieces fit: the very same one while it does.

    One that has to change is brought down to the target, so that this happens once in a while and not at every step:
    old results short; else the fewest old turns left out. The newest turn is shortened only if it would not fit alone.
    Cuts are made in front of replies, and so never between a call and its result. No place moves back.

    Args:
        pieces: Those that are not left out yet, oldest first.
        layout: The one that stands.
        frame: What they must fit into.
    """
    if size_of_layout(pieces, layout, frame) <= frame.limit:
        return layout
    starts = _starts(pieces, frame.keep_turns)
    newest = starts[-1]
    fitted = _fitted(pieces, layout, newest, frame)
    if isinstance(fitted, TooLong) or size_of_layout(pieces, fitted, frame) <= frame.limit:
        return fitted
    least = _cut_at(fitted, newest)
    goal = frame.target if size_of_layout(pieces, least, frame) <= frame.target else frame.limit
    aged = [starts[0]] if goal == frame.target else [starts[0], newest]
    options = [*(_shortened_to(fitted, start) for start in aged), *(_cut_at(fitted, start) for start in starts)]
    return next((option for option in options if size_of_layout(pieces, option, frame) <= goal), least)


def _starts(pieces: Sequence[Piece], keep_turns: int) -> list[int]:
    """Return where what is kept may begin: from the most turns to the fewest.

    The newest turn always stays, unless the user spoke after it.
    """
    replies = [place for place, piece in enumerate(pieces) if piece.is_reply]
    starts = replies[-keep_turns:] if len(replies) > keep_turns else [0, *replies]
    behind = replies[-1] + 1 if replies else 0
    spoken = [place for place in range(behind, len(pieces)) if pieces[place].is_users]
    return [*starts, spoken[-1]] if spoken else starts


def _cut_at(layout: Layout, start: int) -> Layout:
    return replace(_shortened_to(layout, start), cut=max(layout.cut, start))


def _shortened_to(layout: Layout, start: int) -> Layout:
    short = max(layout.short, start)
    return replace(layout, short=short, shares={place: n for place, n in layout.shares.items() if place >= short})


def _fitted(pieces: Sequence[Piece], layout: Layout, newest: int, frame: Frame) -> Layout | TooLong:
    """Shorten the newest turn where it would not fit although all else was left out; its long results share evenly.

    Half of the way from the target to the limit is left to older turns.
    """
    if size_of_layout(pieces, _cut_at(layout, newest), frame) <= frame.limit:
        return layout

    def at_most(share: int) -> Layout:
        """Return the layout with no result of the newest turn longer than that."""
        held = {place: min(share, layout.shares.get(place, share)) for place in _results(pieces, newest)}
        return replace(layout, shares={**layout.shares, **held})

    def size(share: int) -> int:
        return size_of_layout(pieces, _cut_at(at_most(share), newest), frame)

    if size(SHORT) > frame.limit:
        return TooLong(size(SHORT))
    fits, too_long = SHORT, max([SHORT, *(pieces[place].characters for place in _results(pieces, newest))]) + 1
    room = (frame.target + frame.limit) // 2
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if size(middle) <= room:
            fits = middle
        else:
            too_long = middle
    return at_most(fits)


def _results(pieces: Sequence[Piece], start: int) -> list[int]:
    """Return the places, from `start` on, of results that can be shortened."""
    return [place for place in range(start, len(pieces)) if pieces[place].shown and pieces[place].characters > SHORT]
