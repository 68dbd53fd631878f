"""Anything that a tool returns becomes text."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from loopwright.state import storable

NOTHING = "(no result)"
"""What the model reads when a tool returned None."""
EMPTY = "(empty text)"
"""What the model reads when a tool returned an empty string: some providers refuse empty content."""
MAX_CHARACTERS = 20_000
"""An observation longer than this is cut, and says so."""


def to_text(value: object) -> str:
    """Return what the model reads of a tool's result; always a non-empty string.

    Text stays as it is; all else becomes JSON: dates in ISO form, a `Decimal` with its digits, enumerations by value,
    sets in order, dataclasses and pydantic models by field, an exception as its type and message, and what has no JSON
    form as its `repr`. What no store can keep (NUL, half a surrogate pair) is replaced by U+FFFD.
    """
    if value is None:
        return NOTHING
    text = value if isinstance(value, str) and type(value) is str else _json_or_name(value)
    return _shorten(storable(text)) if text else EMPTY


def _json_or_name(value: object) -> str:
    """Never raises: the tool has run, and its effect must not become unknown for want of a text."""
    try:
        return _json(value)
    except Exception:  # noqa: BLE001 -- a cycle, or whatever a foreign __repr__ does
        return f"(a {type(value).__name__} that has no text)"


def _json(value: object) -> str:
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    """Turn the containers into lists and dicts; leave the single values to pydantic."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {safe_str(value)}"
    if isinstance(value, BaseModel):
        return _plain(value.model_dump())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {_key(key): _plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]  # anything
    if isinstance(value, set | frozenset):
        return sorted((_plain(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))  # pyright: ignore[reportUnknownVariableType]  # anything
    if isinstance(value, list | tuple | Iterator):
        return [_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType]  # anything
    return to_jsonable_python(value, fallback=repr, inf_nan_mode="strings", bytes_mode="base64")


def _key(key: Any) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _shorten(text: str) -> str:
    if len(text) <= MAX_CHARACTERS:
        return text
    return f"{text[:MAX_CHARACTERS]}\n… shortened: {len(text) - MAX_CHARACTERS} more characters were left out"


def safe_str(error: BaseException) -> str:
    """Return an exception's text, also when its `__str__` raises."""
    try:
        return str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 -- whatever a foreign __str__ does, the run goes on
        return type(error).__name__


def mark_untrusted(text: str, source: str) -> str:
    """Fence text written by strangers, so that the model can tell it from instructions.

    A closing fence inside the text is broken up, so that the text cannot end its own fence.
    """
    inside = text.replace("</untrusted", "<\u200b/untrusted")
    return f'<untrusted source="{source}">\n{inside}\n</untrusted>'
