"""Which requests Anthropic's messages refuse. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_REQUIRED = ("model", "max_tokens", "messages")
_SAMPLING = ("stream", "temperature", "top_p", "top_k", "stop_sequences", "thinking")
_OTHERS = ("system", "tools", "tool_choice", "metadata", "service_tier", "output_config", "context_management")
_KNOWN = (*_REQUIRED, *_SAMPLING, *_OTHERS, "container", "mcp_servers", "cache_control")

Said = Iterator[str]
Block = Mapping[str, Any]


def refuse_request(body: Mapping[str, Any]) -> str:
    """Say why a request would be refused, with status 400; empty when it would not."""
    return next((why for check in (_parameters, _tools, _messages) for why in check(body)), "")


def _parameters(body: Mapping[str, Any]) -> Said:
    for name in body:
        if name not in _KNOWN:
            yield f"{name}: Extra inputs are not permitted"
    for name in _REQUIRED:
        if not body.get(name):
            yield f"{name}: Field required"
    if "tool_choice" in body and not body.get("tools"):
        yield "tool_choice: may only be specified while providing `tools`"
    if "system" in body and not body["system"]:
        yield "system: text content blocks must be non-empty"


def _tools(body: Mapping[str, Any]) -> Said:
    names: list[str] = []
    for place, tool in enumerate(body.get("tools") or ()):
        name = str(tool.get("name"))
        if not _NAME.fullmatch(name):
            yield f"tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
        schema: Mapping[str, Any] = tool.get("input_schema") or {}
        if schema.get("type") != "object":
            yield f"tools.{place}.custom.input_schema.type: Field required"
        if name in names:
            yield "tools: Tool names must be unique."
        names.append(name)


def _messages(body: Mapping[str, Any]) -> Said:
    turns: list[tuple[str, list[Block]]] = []
    for place, message in enumerate(body.get("messages") or ()):
        role, blocks = message.get("role"), _blocks(message.get("content"))
        if role not in ("user", "assistant"):
            yield f"messages.{place}: Unexpected role {role!r}. Allowed roles are 'user' or 'assistant'"
        is_last = place == len(body["messages"]) - 1
        yield from _content(role, blocks, place, is_last=is_last)
        if turns and turns[-1][0] == role:
            turns[-1][1].extend(blocks)  # the provider joins turns of one side
        else:
            turns.append((str(role), blocks))
    if turns and turns[0][0] != "user":
        yield "messages: first message must use the 'user' role"
    yield from _pairs(turns)


def _blocks(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) and content else [*(content or ())]


def _content(role: Any, blocks: Sequence[Block], place: int, *, is_last: bool) -> Said:
    if not blocks and not (is_last and role == "assistant"):
        text = "all messages must have non-empty content except for the optional final assistant message"
        yield f"messages.{place}: {text}"
    for block in blocks:
        if block["type"] == "text" and not str(block.get("text")).strip():
            yield f"messages.{place}: text content blocks must contain non-whitespace text"
        if block["type"] == "tool_use":
            yield from _tool_use(block, place)
    if is_last and role == "assistant" and blocks and str(blocks[-1].get("text", "")).endswith((" ", "\n")):
        yield "messages: final assistant content cannot end with trailing whitespace"


def _tool_use(block: Block, place: int) -> Said:
    if not _ID.fullmatch(str(block.get("id") or "")):
        yield f"messages.{place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    if not _NAME.fullmatch(str(block.get("name") or "")):
        yield f"messages.{place}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
    if not isinstance(block.get("input"), dict):
        yield f"messages.{place}.tool_use.input: Input should be a valid dictionary"


def _pairs(turns: Sequence[tuple[str, Sequence[Block]]]) -> Said:
    """Results stand at the beginning of the turn right behind their calls, each once."""
    known: list[str] = []
    asked: list[str] = []
    for place, (_, blocks) in enumerate(turns):
        results = [block for block in blocks if block["type"] == "tool_result"]
        answered = [str(block.get("tool_use_id")) for block in results]
        if left := [own for own in asked if own not in answered]:
            text = "`tool_use` ids were found without `tool_result` blocks immediately after"
            yield f"messages.{place}: {text}: {', '.join(left)}"
        if strays := [own for own in answered if own not in asked]:
            yield f"messages.{place}: unexpected `tool_use_id` found in `tool_result` blocks: {', '.join(strays)}"
        if len(answered) != len(set(answered)):
            yield f"messages.{place}: each `tool_use` must have a single result"
        if results and [*blocks[: len(results)]] != results:
            yield f"messages.{place}: `tool_result` blocks must come first"
        asked = [str(block.get("id")) for block in blocks if block["type"] == "tool_use"]
        if len({*known, *asked}) < len(known) + len(asked):
            yield f"messages.{place}: `tool_use` ids must be unique"
        known.extend(asked)
    if asked:
        yield f"messages: `tool_use` ids were found without `tool_result` blocks after: {', '.join(asked)}"
