"""What a model is sent for a run's last words: the transcript told without calls, and short enough for what is left."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from loopwright.policy import Room
from loopwright.state import CallTools, Decision, FinalAnswer, Malformed, StopReason, canonical, excerpt

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


def shortened(
    messages: list[AnyMessage], room_for: Callable[[list[AnyMessage]], Room | StopReason]
) -> tuple[list[AnyMessage], Room | StopReason]:
    """Leave out the oldest messages, except system prompt and task, until the rest fits; returns it with its room."""
    first = 2 if isinstance(messages[0], SystemMessage) else 1

    def without(gone: int) -> list[AnyMessage]:
        return [*messages[:first], *messages[first + gone :]]

    def fits(gone: int) -> int:
        return 0 if isinstance(room_for(without(gone)), StopReason) else 1

    most = max(0, len(messages) - first - 1)
    kept = without(bisect_left(range(most), 1, key=fits))  # one by one, a long transcript would take minutes
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
