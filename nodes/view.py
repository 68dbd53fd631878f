"""What stands in the place of a transcript that is sent compacted: which messages, and which of them short."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.policy import SHORT
from loopwright.state import NUDGE, CompactionRecord
from loopwright.tools import FULL_TEXT, full_text, reader_id, show, unmark

from .context import Fence, is_users
from .ladder import LOOP_NOTES

SUMMARY_ID = "summary-"
"""Begins the id of the message that brings a summary; it is never stored."""
_HEAD = "[What came before, in short. These are the assistant's own notes, not the user's words.]"
_GO_ON = "[The latest turns follow. Go on with the task.]"
_BEGIN = "[The conversation begins.]"
_MARK = "<untrusted "


@dataclass(frozen=True, slots=True)
class Places:
    """A compaction as places in a transcript."""

    left_out: int = 0
    """So many messages from the beginning, save for the pinned ones."""
    short: int = 0
    """Results among so many are short."""
    made_at: int = 0
    """How many messages there were when it was made: what was reported before is of another input."""


def pinned_of(messages: Sequence[AnyMessage]) -> tuple[int, int]:
    """Return the places of the user's first and newest message; -1 where there is none."""
    first = next((place for place, message in enumerate(messages) if is_users(message)), -1)
    newest = next((place for place in range(len(messages) - 1, -1, -1) if is_users(messages[place])), -1)
    return first, newest


def digest_of(messages: Sequence[AnyMessage]) -> str:
    """Return a short fingerprint of which messages these are, and how long; cheap enough for each step."""
    named = "\n".join(f"{message.id} {len(message.content)}" for message in messages)
    return hashlib.sha256(named.encode(errors="replace")).hexdigest()[:32]


def place_behind(messages: Sequence[AnyMessage], message_id: str) -> int:
    """Return the place behind a message; 0 where it is none, or is not there any more."""
    if not message_id:
        return 0
    return next((n + 1 for n in range(len(messages) - 1, -1, -1) if messages[n].id == message_id), 0)


def places_in(messages: Sequence[AnyMessage], record: CompactionRecord) -> Places | None:
    """Find a record's places in the transcript; None where what is left out is not what it was."""
    left_out = place_behind(messages, record["until"])
    if digest_of(messages[:left_out]) != record["digest"]:
        return None
    short = max(left_out, place_behind(messages, record["shortened"]))
    return Places(left_out, short, place_behind(messages, record["at"]))


def summary_message(record: CompactionRecord) -> AnyMessage:
    """Return what is sent in the place of what is left out: in the assistant's voice, since it is not the user's word.

    Text by strangers that may be in it stays between marks.
    """
    notes = record["summary"]
    if notes and record["tainted"]:
        notes = Fence("summary", f"{record['run']}/{record['step']}").around(notes)
    text = "\n".join(filter(None, [_HEAD, notes, record["gap"]]))
    return AIMessage(text, id=f"{SUMMARY_ID}{record['run']}-{record['step']}"[:64])


def is_summary(message: AnyMessage) -> bool:
    """Tell whether a message brings a summary."""
    return isinstance(message, AIMessage) and str(message.id).startswith(SUMMARY_ID)


def view_of(messages: Sequence[AnyMessage], record: CompactionRecord, places: Places) -> list[AnyMessage]:
    """Return what is sent of a transcript by a compaction; what is stored is not changed."""
    head: list[AnyMessage] = []
    if places.left_out:
        first, newest = pinned_of(messages)
        early = messages[: places.left_out]
        head = [message for n, message in enumerate(early) if isinstance(message, SystemMessage) or n == first]
        head.append(summary_message(record))
        if first < newest < places.left_out:
            head.append(messages[newest])
        elif places.left_out == len(messages) or isinstance(messages[places.left_out], AIMessage):
            head.append(HumanMessage(_GO_ON, id=f"{NUDGE}go-on"))
    tail = enumerate(messages[places.left_out :], places.left_out)
    return [*head, *(_sent(message, place, record["shares"], places) for place, message in tail)]


def begun_by_user(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return what is sent of a history that the assistant began, say with a greeting: Anthropic refuses it as it is."""
    first = next((place for place, message in enumerate(messages) if not isinstance(message, SystemMessage)), None)
    if first is None or not isinstance(messages[first], AIMessage):
        return [*messages]
    return [*messages[:first], HumanMessage(_BEGIN, id=f"{NUDGE}begin"), *messages[first:]]


def _sent(message: AnyMessage, place: int, shares: Mapping[str, int], places: Places) -> AnyMessage:
    if isinstance(message, ToolMessage):
        share = SHORT if place < places.short else shares.get(str(message.id))
        return message if share is None else short_result(message, share)
    if isinstance(message, AIMessage) and place < places.made_at and message.usage_metadata:
        return message.model_copy(update={"usage_metadata": None})
    return message


def is_shortenable(message: AnyMessage) -> bool:
    """Tell whether a message is a result of text alone."""
    if not isinstance(message, ToolMessage):
        return False
    blocks = message.content if isinstance(message.content, list) else []
    return all(isinstance(block, str) or block.get("type") == "text" for block in blocks)


def short_result(message: ToolMessage, share: int) -> ToolMessage:
    """Return a result of which so many characters are shown; it says how to read on, and keeps its marks."""
    if not is_shortenable(message) or len(message.text) <= share:
        return message
    note = next((note for note in LOOP_NOTES.values() if message.text.endswith(note)), "")
    full = full_text(message)
    whole = unmark(message.text.removesuffix(note).rstrip()) if full is None else full
    shown = show(whole, share, reader_id(str(message.id)))
    if not shown.notice:
        return message
    is_foreign = message.text.startswith(_MARK)
    text = Fence(message.name or "", str(message.id)).around(shown.text) if is_foreign else shown.text
    content = text + shown.notice + (f"\n\n{note}" if note else "")
    return message.model_copy(update={"content": content, "artifact": {"type": FULL_TEXT, "text": whole}})
