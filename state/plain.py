"""Plain data: one canonical JSON text, and digests over it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, cast

from pydantic_core import to_jsonable_python

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def canonical(value: object) -> str:
    """Return the one JSON text of a value: keys sorted, no blanks, `1.0` written as `1`.

    Two values that a tool could not tell apart give the same text, so that digests over it can be compared.
    """
    plain = to_jsonable_python(value, fallback=repr, inf_nan_mode="strings")
    return _ENCODER.encode(_whole(plain))


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


_LEAVES = frozenset({str, int, float, bool, type(None)})
"""Exactly these types: an enumeration of ours is a `str` too."""


REPLACED = "\ufffd"
"""Stands for what no store can keep: a NUL character, or half of a surrogate pair."""


def storable(text: str) -> str:
    """Return a text that every store and every provider takes; what they refuse is replaced by `REPLACED`."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACED)
    try:
        text.encode()
    except UnicodeEncodeError:
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_data(value: Any) -> Any:
    """Return JSON-like data whose texts every store takes."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {storable(str(key)): storable_data(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [storable_data(item) for item in cast("list[Any]", value)]
    return value


MOST_DEPTH = 100
"""How deep data may be nested: what reads and writes JSON and checkpoints gives up at some hundreds."""


def is_too_deep(value: Any, most: int = MOST_DEPTH) -> bool:
    """Tell whether JSON-like data is nested deeper than that; so is what holds itself.

    >>> is_too_deep({"a": [1]}, 2), is_too_deep({"a": [[1]]}, 2)
    (False, True)
    """
    level = _containers([value])
    for _ in range(most):
        if not level:
            return False
        level = _containers(part for one in level for part in one)
    return bool(level)


def _containers(values: Iterable[object]) -> list[Iterable[object]]:
    """Return the parts of those that hold others, each one once: two lists that hold each other twice have no end."""
    found: dict[int, Iterable[object]] = {}
    for value in values:
        if isinstance(value, Mapping):
            found[id(cast("object", value))] = cast("Mapping[str, object]", value).values()
        elif isinstance(value, list | tuple):
            found[id(cast("object", value))] = cast("list[object]", value)
    return [*found.values()]


def to_plain(value: Any) -> Any:
    """Return data without our enumerations, so that a checkpoint loads without importing them."""
    if type(value) in _LEAVES:
        return value
    if isinstance(value, dict):
        # No `cast` here, nor a call for what is a leaf: every node's whole update goes through this.
        return {key: item if type(item) in _LEAVES else to_plain(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # plain data
    if isinstance(value, list):
        return [item if type(item) in _LEAVES else to_plain(item) for item in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # plain data
    return value.value if isinstance(value, Enum) else value
