"""Arguments that arrive as text although the schema wants a list or an object."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from typing_extensions import TypeIs

_WANT_LIST = ("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type")
_WANT_OBJECT = ("dict_type", "mapping_type", "model_type", "model_attributes_type", "dataclass_type")


def decode_nested(schema: type[BaseModel], args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments, with such texts decoded that stand where the schema takes nothing but a list or an object.

    Some models encode a nested argument twice: `items='[1, 2]'`. A text is decoded only if it is JSON of the kind that
    is wanted there; where the schema takes a text, it stays as it is, whatever it holds. The schema checks the outcome.
    """
    decoded = {**args}
    try:
        schema.model_validate(decoded)
    except ValidationError as error:
        for place, kinds in _by_place(error, decoded).items():
            _decode_at(decoded, place, kinds)
    return decoded


def _by_place(error: ValidationError, args: Mapping[str, Any]) -> dict[tuple[int | str, ...], set[str]]:
    """Return, for each text that was refused, the kinds of refusal; a union refuses once for each of its members."""
    found: dict[tuple[int | str, ...], set[str]] = {}
    for item in error.errors(include_url=False, include_context=False):
        place = _place_of_text(item["loc"], args)
        if place:
            found.setdefault(place, set()).add(item["type"])
    return found


def _place_of_text(path: tuple[int | str, ...], args: Mapping[str, Any]) -> tuple[int | str, ...]:
    """Follow a path until it meets a text; what comes behind names a member of a union. Empty: it meets none."""
    value: Any = args
    for depth, key in enumerate(path):
        if not _has(value, key):
            return ()
        value = value[key]
        if isinstance(value, str):
            return path[: depth + 1]
    return ()


def _has(value: object, key: int | str) -> bool:
    if isinstance(value, dict):
        return key in value
    return _is_list(value) and isinstance(key, int) and key < len(value)


def _is_list(value: object) -> TypeIs[list[Any]]:
    return isinstance(value, list)


def _decode_at(args: dict[str, Any], place: Sequence[int | str], kinds: set[str]) -> None:
    """Put the decoded value in the text's place, in copies of what lies around it."""
    holder: Any = args
    for key in place[:-1]:
        holder[key] = [*holder[key]] if _is_list(holder[key]) else {**holder[key]}
        holder = holder[key]
    try:
        value = cast("object", json.loads(holder[place[-1]]))
    except (ValueError, RecursionError):
        return
    wanted = _WANT_LIST if isinstance(value, list) else _WANT_OBJECT if isinstance(value, dict) else ()
    if kinds <= {*_WANT_LIST, *_WANT_OBJECT} and kinds & {*wanted}:
        holder[place[-1]] = value
