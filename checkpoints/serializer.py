"""LangGraph's serializer, reading messages without judging them again."""

from __future__ import annotations

from typing import Any

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_PYDANTIC_V2, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name
from langgraph.types import Send
from pydantic import BaseModel

from loopwright.state import storable

DEEPEST = 100
"""Levels that are kept of what cannot be stored as a whole; a value that holds itself has no end."""
SMALLEST, LARGEST = -(2**63), 2**64 - 1
"""Of the integers that msgpack has."""
_OPTIONS = ormsgpack.OPT_NON_STR_KEYS


def _head(kind: type[BaseMessage]) -> bytes:
    """Return what a stored message of this class begins with: an array of four, then its module and name."""
    return b"\x94" + ormsgpack.packb(kind.__module__) + ormsgpack.packb(kind.__name__)


class _Shape:
    """What a complete message of a class has, as this release of LangChain knows it."""

    __slots__ = ("fields", "has_extra", "kind")

    def __init__(self, kind: type[BaseMessage]) -> None:
        """Look at the class."""
        self.kind = kind
        self.fields = set(kind.model_fields)
        self.has_extra = kind.model_config.get("extra") == "allow"


_KINDS = (AIMessage, ToolMessage, HumanMessage, SystemMessage)
_HEADS = tuple(_head(kind) for kind in _KINDS)
_SHAPES = {kind.__name__: _Shape(kind) for kind in _KINDS}


class Serializer(JsonPlusSerializer):
    """What it writes is LangGraph's; what it reads is the same, sooner.

    Reading a long thread is validating its messages, one by one. They were valid when they were stored: a message
    that has all the fields of its class, as this release of LangChain knows it, is put together as it is. Any other one
    is built, and judged, as LangGraph does it.
    """

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize a value. What cannot be stored in it is replaced, and all else kept: a run does not end by it.

        An integer above 64 bits becomes its digits, half of a surrogate pair U+FFFD, and an object that nobody knows
        how to write a text that says what it was.
        """
        try:
            return super().dumps_typed(obj)
        except (TypeError, ValueError, RecursionError):
            return super().dumps_typed(self._fitting(obj, DEEPEST))

    def _fitting(self, value: Any, levels: int) -> Any:
        """Return what can be stored of a value, as deep as `levels`; what lies deeper would fail the whole of it."""
        if type(value) is str:
            return storable(value)
        if type(value) is int:
            return value if SMALLEST <= value <= LARGEST else _digits(value)
        if levels > 0 and (fitting := self._parts(value, levels - 1)) is not None:
            return fitting
        is_kept = levels > 0 or type(value) not in (dict, list, tuple)
        try:
            super().dumps_typed(value if is_kept else None)
        except (TypeError, ValueError, RecursionError):
            is_kept = False
        return value if is_kept else f"(a {type(value).__name__} that cannot be stored)"

    def _parts(self, value: Any, levels: int) -> Any:
        """Return the same with what can be stored of each of its parts; None for what has none."""
        match value:
            case dict():
                return {self._fitting(key, levels): self._fitting(item, levels) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]  # of anything
            case _DeltaSnapshot():  # a tuple, too
                return _DeltaSnapshot(self._fitting(value.value, levels))
            case list() | tuple() if type(value) in (list, tuple):  # pyright: ignore[reportUnknownArgumentType]  # of anything
                return [self._fitting(item, levels) for item in value]  # pyright: ignore[reportUnknownVariableType]  # likewise
            case BaseMessage():
                fields = {name: getattr(value, name) for name in type(value).model_fields}
                return value.model_copy(update=self._fitting(fields, levels))
            case Send():
                return Send(value.node, self._fitting(value.arg, levels))
            case _:
                return None

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value."""
        kind, packed = data
        if kind != "msgpack":
            return super().loads_typed(data)
        return ormsgpack.unpackb(packed, ext_hook=self._build, option=_OPTIONS)

    def _build(self, code: int, packed: bytes) -> Any:
        """Build what msgpack has no type for."""
        if code == EXT_PYDANTIC_V2:
            if packed.startswith(_HEADS):
                _, name, fields, _ = ormsgpack.unpackb(packed, ext_hook=self._build, option=_OPTIONS)
                shape = _SHAPES[name]
                if fields.keys() == shape.fields:
                    return _message(shape, fields)
        elif code == EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(ormsgpack.unpackb(packed, ext_hook=self._build, option=_OPTIONS))
        return self._unpack_ext_hook(code, packed)


def _digits(number: int) -> str:
    try:
        return str(number)
    except ValueError:  # of more digits than Python writes out
        return hex(number)


def _message(shape: _Shape, fields: dict[str, Any]) -> BaseMessage:
    """Put a message together, as unpickling does."""
    message = _new(shape.kind)
    _set_fields(message, fields)
    _set_names(message, shape.fields.copy())
    _set_extra(message, {} if shape.has_extra else None)
    _set_private(message, None)
    return message


_new = object.__new__
# The slots of a model, as pydantic's own `__setstate__` sets them; without the look-up by name, thousands of times.
_set_fields = BaseModel.__dict__["__dict__"].__set__
_set_names = BaseModel.__dict__["__pydantic_fields_set__"].__set__
_set_extra = BaseModel.__dict__["__pydantic_extra__"].__set__
_set_private = BaseModel.__dict__["__pydantic_private__"].__set__
