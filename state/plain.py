"""Plain data: one canonical JSON text, and digests over it."""

from __future__ import annotations

import hashlib
import json
from enum import Enum
from typing import Any, cast

from pydantic_core import to_jsonable_python


def canonical(value: object) -> str:
    """Return the one JSON text of a value: keys sorted, no blanks, `1.0` written as `1`.

    Two values that a tool could not tell apart give the same text, so that digests over it can be compared.
    """
    plain = to_jsonable_python(value, fallback=repr, inf_nan_mode="strings")
    return json.dumps(_whole(plain), sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(*parts: object) -> str:
    """Return 32 hexadecimal digits (128 bits of SHA-256) over the canonical text of the parts."""
    return hashlib.sha256(canonical(parts).encode()).hexdigest()[:32]


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {str(key): _whole(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # JSON from pydantic
    if isinstance(value, list):
        return [_whole(item) for item in value]  # pyright: ignore[reportUnknownVariableType]  # JSON from pydantic
    return value


def excerpt(text: str, limit: int = 200) -> str:
    """Cut a text to `limit` characters on one line, saying how much was left out."""
    line = " ".join(text.split())
    return line if len(line) <= limit else f"{line[:limit]}… ({len(line) - limit} more characters)"


def to_plain(value: Any) -> Any:
    """Return data without our enumerations, so that a checkpoint loads without importing them."""
    if isinstance(value, dict):
        return {key: to_plain(item) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [to_plain(item) for item in cast("list[Any]", value)]  # type: ignore[redundant-cast]  # pyright needs it
    return value.value if isinstance(value, Enum) else value
