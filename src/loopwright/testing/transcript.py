"""Whether a transcript is one that every provider takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

Provider = Literal["openai", "anthropic"]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_LONGEST_ID = 40


def check_transcript(messages: Sequence[BaseMessage], /, *, provider: Provider | None = None) -> None:
    """Fail if a provider would refuse the transcript.

    For all of them: system messages come first; each call has its result right behind the message that asked for it,
    exactly once and in order; the ids of messages differ, where they have any, and those of calls, over the whole
    transcript; names are legal; arguments are whole; no content is null, no reply is empty.

    Args:
        messages: What is sent, or what a run has left behind.
        provider: Whose rules hold besides. `"openai"`: ids of at most 40 characters, results that are text.
            `"anthropic"`: ids of letters, digits, `_` and `-`, no empty or blank text block, and the first message
            behind the system's is the user's. None: everybody's, save for who begins: a greeting may be kept, and is
            sent behind a word of the user's.

    Raises:
        AssertionError: Naming the first message that is wrong, by its place from 0.
    """
    ids = [message.id for message in messages if message.id is not None]
    _require(len(ids) == len(set(ids)), f"message ids repeat: {ids}")
    _check_beginning(messages, provider)
    known: set[str | None] = set()
    place = 0
    while place < len(messages):
        message = messages[place]
        where = f"message {place} ({message.type})"
        _check_message(message, where)
        for check in _checks(provider):
            check(message, where)
        place += 1
        if isinstance(message, AIMessage):
            asked = [call["id"] for call in message.tool_calls]
            _require(known.isdisjoint(asked), f"{where} uses ids of earlier calls again: {asked}")
            known.update(asked)
            answered = _answers(messages[place:], provider)
            _require(answered == asked, f"{where} asks for {asked}; behind it come the results {answered}")
            place += len(answered)


def _check_beginning(messages: Sequence[BaseMessage], provider: Provider | None) -> None:
    kinds = [message.type for message in messages]
    others = [place for place, kind in enumerate(kinds) if kind != "system"]
    late = [place for place, kind in enumerate(kinds) if kind == "system" and others and place > others[0]]
    _require(not late, f"system messages stand behind others: {late}")
    is_users = provider != "anthropic" or not others or kinds[others[0]] == "human"
    _require(is_users, "the first message behind the system's is not the user's")


def _check_message(message: BaseMessage, where: str) -> None:
    """Look at one message by itself, by the rules that all share."""
    _require(cast("object", message.content) is not None, f"{where} has no content")
    _require(not isinstance(message, ToolMessage), f"{where} is a result without a call before it")
    if isinstance(message, AIMessage):
        asked = [call["id"] for call in message.tool_calls]
        names = [call["name"] for call in message.tool_calls]
        _require(all(asked), f"{where} holds a call without an id")
        _require(len(asked) == len(set(asked)), f"{where} uses an id twice: {asked}")
        _require(all(_NAME.fullmatch(name) for name in names), f"{where} calls by names that are not legal: {names}")
        _require(not message.invalid_tool_calls, f"{where} holds calls that no server can read back")
        raw = [name for name in ("tool_calls", "function_call") if name in message.additional_kwargs]
        _require(not raw, f"{where} holds raw {raw}, which clients send again")
        _require(bool(message.text.strip() or asked), f"{where} is empty")
    else:
        _require(bool(message.content), f"{where} is empty")


def _answers(messages: Sequence[BaseMessage], provider: Provider | None) -> list[str | None]:
    """Return the ids that the results at the beginning answer."""
    found: list[str | None] = []
    for message in messages:
        if not isinstance(message, ToolMessage):
            break
        where = f"the result for {message.tool_call_id}"
        _require(bool(message.content), f"{where} is empty")
        for check in _checks(provider):
            check(message, where)
        found.append(message.tool_call_id)
    return found


def _for_openai(message: BaseMessage, where: str) -> None:
    if isinstance(message, AIMessage):
        long = [call["id"] for call in message.tool_calls if len(call["id"] or "") > _LONGEST_ID]
        _require(not long, f"{where} holds ids of more than {_LONGEST_ID} characters: {long}")
    if isinstance(message, ToolMessage):
        kinds = [kind for kind in _kinds(message) if kind != "text"]
        _require(not kinds, f"{where} holds {kinds}; in a tool's role only text is taken")
    if message.name is not None:
        _require(_NAME.fullmatch(message.name) is not None, f"{where} has a name that is not legal: {message.name!r}")


def _for_anthropic(message: BaseMessage, where: str) -> None:
    if isinstance(message, AIMessage):
        odd = [call["id"] for call in message.tool_calls if not _ID.fullmatch(call["id"] or "")]
        _require(not odd, f"{where} holds ids with characters that are not taken: {odd}")
        own = {block.get("id") for block in _blocks(message) if block.get("type") == "tool_use"}
        strays = sorted(map(str, own - {call["id"] for call in message.tool_calls}))
        _require(not strays, f"{where} holds blocks of calls that are not among its calls: {strays}")
        is_blank = isinstance(message.content, str) and bool(message.content) and not message.content.strip()
        _require(not is_blank, f"{where} holds a blank text beside its calls")
    else:
        texts = [message.content] if isinstance(message.content, str) else _texts(message)
        _require(all(text.strip() for text in texts), f"{where} holds a blank text")


def _checks(provider: Provider | None) -> Sequence[Callable[[BaseMessage, str], None]]:
    every = {"openai": _for_openai, "anthropic": _for_anthropic}
    return [*every.values()] if provider is None else [every[provider]]


def _blocks(message: BaseMessage) -> list[dict[str, Any]]:
    parts = message.content if isinstance(message.content, list) else []
    return [part for part in parts if isinstance(part, dict)]


def _kinds(message: BaseMessage) -> list[str]:
    return [str(block.get("type")) for block in _blocks(message)]


def _texts(message: BaseMessage) -> list[str]:
    return [str(block.get("text")) for block in _blocks(message) if block.get("type") == "text"]


def _require(holds: bool, text: str) -> None:  # noqa: FBT001 -- reads as an assertion
    if not holds:
        raise AssertionError(text)
