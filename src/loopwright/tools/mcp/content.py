"""What a server sends back, as text and pictures that every provider takes."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from mcp import types

from loopwright.tools.results import MAX_KEPT, NOTHING, WithArtifact, to_text

Block = dict[str, Any]
"""A content block, as LangChain's messages hold it."""

_PICTURES = {b"\x89PNG\r\n\x1a\n": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
"""How those begin that every provider takes; WebP, below, too."""


def to_result(result: types.CallToolResult, hide: Callable[[Any], Any]) -> WithArtifact:
    """Return what the model reads, with the structured content as the artifact.

    A picture stays one if it really is what it says, and not too large to be kept. Sound and files become a line that
    says what was left out: most models take neither, and a transcript that a provider refuses would end the thread.

    Args:
        result: Of a call.
        hide: Takes the secrets out of texts.
    """
    structured = hide(result.structuredContent)
    blocks = [_block(part, hide) for part in result.content]
    if all(block["type"] == "text" for block in blocks):
        text = "\n".join(block["text"] for block in blocks)
        return WithArtifact(text if blocks else NOTHING if structured is None else structured, _kept(structured))
    return WithArtifact(blocks, _kept(structured))


def _kept(structured: Any) -> Any:
    """Return the structured content, unless it is too large to be kept in each checkpoint."""
    return structured if len(json.dumps(structured)) <= MAX_KEPT else None


def to_words(result: types.CallToolResult, hide: Callable[[Any], Any]) -> str:
    """Return the texts alone, or else the structured content: what an error says."""
    texts = [block["text"] for block in (_block(part, hide) for part in result.content) if block["type"] == "text"]
    if said := "\n".join(texts).strip():
        return said
    return to_text(hide(result.structuredContent)) if result.structuredContent else "without a word"


def _block(part: types.ContentBlock, hide: Callable[[Any], Any]) -> Block:
    match part:
        case types.TextContent():
            return _text(hide(part.text))
        case types.ImageContent():
            return _picture(part.data, part.mimeType)
        case types.AudioContent():
            return _text(_left_out("sound", part.mimeType, len(part.data)))
        case types.ResourceLink():
            about = [one for one in (part.title or part.name, part.description) if one]
            return _text(hide(f"(a link to {part.uri}: {'; '.join(about)})"))
        case types.EmbeddedResource():
            return _resource(part.resource, hide)


def _resource(held: types.TextResourceContents | types.BlobResourceContents, hide: Callable[[Any], Any]) -> Block:
    if isinstance(held, types.TextResourceContents):
        return _text(hide(f"{held.uri}:\n{held.text}"))
    kind = held.mimeType or "application/octet-stream"
    if kind.startswith("image/"):
        return _picture(held.blob, kind)
    return _text(hide(f"{held.uri}: {_left_out('a file', kind, len(held.blob))}"))


def _text(text: str) -> Block:
    return {"type": "text", "text": text}


def _picture(data: str, claimed: str) -> Block:
    """Return a picture, if that is what the data is; its kind is told by its first bytes."""
    kind = _kind_of(data)
    if not kind or len(data) > MAX_KEPT:
        return _text(_left_out("a picture", claimed, len(data)))
    return {"type": "image", "base64": data, "mime_type": kind}


def _kind_of(data: str) -> str:
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return ""
    if content[:4] == b"RIFF" and content[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for begin, kind in _PICTURES.items() if content.startswith(begin)), "")


def _left_out(what: str, kind: str, characters: int) -> str:
    return f"({what}, {kind}, about {characters * 3 // 4:,} bytes, is left out)"
