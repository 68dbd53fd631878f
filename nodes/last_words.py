"""What a model is sent for a run's last words: the transcript told without calls, and short enough for what is left."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.policy import Room
from loopwright.state import CallTools, Decision, FinalAnswer, Malformed, StopReason, canonical, excerpt

from .view import is_summary, pinned_of

LAST_WORDS = 500
"""Output tokens that are kept from the start for the last words."""
CALL_CHARACTERS = 500
RESULT_CHARACTERS = 4000
_MARK = re.compile(r'<untrusted id="([^"]*)"')


def order_to_stop(limit: str) -> str:
    """Return what a model is told at its end; `limit` is what was met, in words."""
    return (
        f"Stop here: {limit or 'a limit'} is reached, and no tool can be called any more. "
        "Say briefly what was found out and done so far, and what is still open."
    )


def told_without_calls(messages: Sequence[AnyMessage], order: str) -> list[AnyMessage]:
    """Tell the transcript as text, since providers refuse calls where no tools are offered; the order comes last.

    Args:
        messages: The transcript, with the system prompt.
        order: What the model shall do with it.
    """
    return [*(_told(message) for message in messages), HumanMessage(order)]


def _told(message: AnyMessage) -> AnyMessage:
    if isinstance(message, AIMessage):
        calls = [f"(called {call['name']} with {_arguments(call['args'])})" for call in message.tool_calls]
        return AIMessage("\n".join(filter(None, [message.text, *calls])))
    if isinstance(message, ToolMessage):
        return HumanMessage(f"(result of {message.name}: {_cut(message.text)})")
    return message


def _cut(text: str) -> str:
    """Cut a result; text by strangers stays between its marks."""
    cut, opened = excerpt(text, RESULT_CHARACTERS), _MARK.match(text)
    end = f'</untrusted id="{opened[1]}">' if opened else ""
    return cut if end in cut else f"{cut} {end}"


def _arguments(args: object) -> str:
    return excerpt(canonical(args), CALL_CHARACTERS)


def leaving_of(messages: Sequence[AnyMessage]) -> list[int]:
    """Return the places of what can be left out of a request, what goes first before the rest.

    Plain messages from the oldest on; then the newest task, and last the summary, which stands for all that is gone
    already. System prompts, and what they are followed by, never.
    """
    head = next((n for n, message in enumerate(messages) if not isinstance(message, SystemMessage)), 0)
    _, newest = pinned_of(messages)
    late = {newest, *(n for n, message in enumerate(messages) if is_summary(message))}
    others = [n for n, message in enumerate(messages) if n > head and not isinstance(message, SystemMessage)]
    return [*(n for n in others if n not in late), *sorted((n for n in others if n in late), reverse=True)]


def shortened(
    messages: Sequence[AnyMessage], leaving: Sequence[int], room_for: Callable[[list[AnyMessage]], Room | StopReason]
) -> tuple[list[AnyMessage], Room | StopReason]:
    """Leave out as few messages as it takes for the rest to fit; returns it with its room.

    Args:
        messages: What is sent, the order last.
        leaving: The places of what can go, by `leaving_of`.
        room_for: Says whether messages fit.
    """

    def without(gone: int) -> list[AnyMessage]:
        left_out = {*leaving[:gone]}
        return [message for place, message in enumerate(messages) if place not in left_out]

    def fits(gone: int) -> int:
        return 0 if isinstance(room_for(without(gone)), StopReason) else 1

    kept = without(bisect_left(range(len(leaving)), 1, key=fits))  # one by one, a long transcript would take minutes
    return kept, room_for(kept)


def taken_as_words(decision: Decision) -> Decision:
    """Return the decision without calls: no tool was offered, and none will run."""
    match decision:
        case CallTools():
            return FinalAnswer(decision.thought) if decision.thought else Malformed("empty")
        case Malformed():
            return FinalAnswer(decision.text) if decision.text else decision
        case _:
            return decision
