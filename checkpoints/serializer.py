"""LangGraph's serializer, reading messages without judging them again."""

from __future__ import annotations

from typing import Any

import ormsgpack
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, EXT_PYDANTIC_V2, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot  # pyright: ignore[reportPrivateUsage]  # LangGraph's beta has no public name

_OPTIONS = ormsgpack.OPT_NON_STR_KEYS


def _head(kind: type[BaseMessage]) -> bytes:
    """Return what a stored message of this class begins with: an array of four, then its module and name."""
    return b"\x94" + ormsgpack.packb(kind.__module__) + ormsgpack.packb(kind.__name__)


_KINDS = {_head(kind): kind for kind in (AIMessage, HumanMessage, SystemMessage, ToolMessage)}
_FIELDS = {kind: frozenset(kind.model_fields) for kind in _KINDS.values()}
_WITH_EXTRA: set[type[BaseMessage]] = {kind for kind in _KINDS.values() if kind.model_config.get("extra") == "allow"}


class Serializer(JsonPlusSerializer):
    """What it writes is LangGraph's; what it reads is the same, sooner.

    Reading a long thread is validating its messages, one by one. They were valid when they were stored: a message
    that has all the fields of its class, as this release of LangChain knows it, is put together as it is. Any other one
    is built, and judged, as LangGraph does it.
    """

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Deserialize a value."""
        kind, packed = data
        if kind != "msgpack":
            return super().loads_typed(data)
        return ormsgpack.unpackb(packed, ext_hook=self._build, option=_OPTIONS)

    def _build(self, code: int, packed: bytes) -> Any:
        """Build what msgpack has no type for."""
        if code == EXT_PYDANTIC_V2:
            for head, kind in _KINDS.items():
                if packed.startswith(head):
                    fields: dict[str, Any] = ormsgpack.unpackb(packed, ext_hook=self._build, option=_OPTIONS)[2]
                    if fields.keys() == _FIELDS[kind]:
                        return _message(kind, fields)
        elif code == EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(ormsgpack.unpackb(packed, ext_hook=self._build, option=_OPTIONS))
        return self._unpack_ext_hook(code, packed)


def _message(kind: type[BaseMessage], fields: dict[str, Any]) -> BaseMessage:
    """Put a message together, as unpickling does."""
    message = kind.__new__(kind)
    message.__setstate__(
        {
            "__dict__": fields,
            "__pydantic_fields_set__": set(fields),
            "__pydantic_extra__": {} if kind in _WITH_EXTRA else None,
            "__pydantic_private__": None,
        }
    )
    return message
