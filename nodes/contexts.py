"""What a caller gives a run besides its message: checked, kept without its secrets, and put together again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from functools import cached_property
from typing import Any, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, PydanticUserError, SecretBytes, SecretStr, TypeAdapter, ValidationError
from pydantic import Secret as PydanticSecret
from pydantic_core import PydanticSerializationError, to_jsonable_python
from typing_extensions import is_typeddict

from loopwright.errors import ConfigurationError
from loopwright.state import Secret, storable_data

RestoreContext = Callable[[Mapping[str, Any], Any], object]
"""See `create_agent`. The second `Any` is a `Run`, which these rooms do not see."""
_MEANT = ("__value__", "__supertype__")
"""Where a name for a type says what it stands for: `type Pin = …`, `NewType`."""
_LEFT_OUT = object()
"""In the place of what is not stored."""


@dataclass(frozen=True)
class ContextShape:
    """The type of an agent's contexts: a pydantic model, a dataclass or a `TypedDict`.

    Raises:
        ConfigurationError: If it is another type.
    """

    schema: type[Any]

    def __post_init__(self) -> None:
        """Refuse what has no fields, of which some could be left out."""
        if not _has_fields(self.schema):
            text = f"context_schema is {self.schema!r}; give a pydantic model, a dataclass or a TypedDict"
            raise ConfigurationError(text, option="context_schema")

    def taken(self, given: object) -> Any:
        """Return a context as tools get it; a mapping is checked against the type, and no context against its defaults.

        Raises:
            ConfigurationError: If it does not fit. Values are not told: they may be secret.
        """
        if not is_typeddict(self.schema) and isinstance(given, self.schema):
            return given
        if given is not None and not isinstance(given, Mapping):
            text = f"context is a {type(given).__name__}; give a {self.schema.__name__}, or its fields as a mapping"
            raise ConfigurationError(text, option="context")
        fields = dict(cast("Mapping[str, Any]", given or {}))
        try:
            return self._build(fields)
        except ValidationError as error:
            wrong = [f"{'.'.join(map(str, item['loc'])) or 'all'} ({item['type']})" for item in error.errors()]
        except Exception as error:  # noqa: BLE001 -- a dataclass may check by itself, and tell values
            wrong = [f"{', '.join(sorted(fields)) or 'nothing given'} ({type(error).__name__})"]
        text = f"the context is no {self.schema.__name__}: {'; '.join(wrong)}"
        raise ConfigurationError(text, option="context") from None

    @cached_property
    def _build(self) -> Callable[[dict[str, Any]], Any]:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(self.schema)
        except PydanticUserError:  # a dataclass with fields that pydantic does not know, such as a connection
            return lambda fields: self.schema(**fields)
        return lambda fields: adapter.validate_python(fields, by_alias=True, by_name=True)

    def kept(self, context: Any) -> dict[str, Any]:
        """Return what is stored of a context: its fields as plain data, without secrets and what JSON cannot hold."""
        kept = _kept(context, self.schema)
        return cast("dict[str, Any]", storable_data(kept)) if isinstance(kept, dict) else {}


@dataclass(frozen=True, slots=True)
class _Declared:
    """What a field of a pydantic model is declared as: its type, and its marks."""

    parts: tuple[Any, ...]


def _has_fields(schema: Any) -> bool:
    is_data = hasattr(schema, "__dataclass_fields__") and hasattr(schema, "__mro__")
    return is_typeddict(schema) or is_data or _is_model(schema)


def _is_model(schema: Any) -> bool:
    return BaseModel in getattr(schema, "__mro__", ())


def _kept(value: Any, hint: Any = None) -> Any:
    """Return a value as plain data; what is secret, or no data, is left out with the field that it stands in.

    Args:
        value: A context, or a part of one.
        hint: Its declared type, with its marks.
    """
    if is_secret(hint) or isinstance(value, SecretStr | SecretBytes | PydanticSecret):
        return _LEFT_OUT
    if (parts := _parts(value)) is not None:
        hints = _hints(type(value)) if _has_fields(type(value)) else _hints_within(hint)
        kept = {name: _kept(part, hints.get(name, hint)) for name, part in parts.items()}
        return {name: part for name, part in kept.items() if part is not _LEFT_OUT}
    if (items := _items(value, hint)) is not None:
        kept_items = [_kept(item, declared) for item, declared in items]
        return _LEFT_OUT if any(item is _LEFT_OUT for item in kept_items) else kept_items
    if isinstance(value, Iterator):  # whoever reads it uses it up
        return _LEFT_OUT
    try:
        return to_jsonable_python(value, inf_nan_mode="strings")
    except (PydanticSerializationError, ValueError):
        return _LEFT_OUT


def _parts(value: Any) -> dict[str, Any] | None:
    """Return the parts of a value by name; None for what has none."""
    if isinstance(value, BaseModel):
        named = {name: getattr(value, name) for name, field in type(value).model_fields.items() if not field.exclude}
        return {**named, **(value.model_extra or {})}
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value) if field.init}
    if isinstance(value, Mapping):
        return {str(name): part for name, part in cast("Mapping[object, object]", value).items()}
    return None


def _items(value: Any, hint: Any) -> list[tuple[Any, Any]] | None:
    """Return the items of a collection, each with its declared type; None for what is none."""
    if isinstance(value, Enum | str | bytes | bytearray | memoryview) or not isinstance(value, Collection):
        return None
    held = cast("Any", value)
    listed = [*held]
    names: Sequence[str] = getattr(held, "_fields", ())
    if len(names) != len(listed):
        return [(item, hint) for item in listed]
    hints = _hints(type(held))
    return [(item, hints.get(name, hint)) for name, item in zip(names, listed, strict=True)]


def _hints(kind: Any) -> dict[str, Any]:
    """Return the declared types of a type's fields, with their marks."""
    if _is_model(kind):
        return {name: _Declared((field.annotation, *field.metadata)) for name, field in kind.model_fields.items()}
    try:
        return get_type_hints(kind, include_extras=True)
    except NameError:  # a type that stands within a function; its marks cannot be read, so nothing of it is kept
        bases = getattr(kind, "__mro__", (kind,))
        return {name: Secret for base in bases for name in getattr(base, "__annotations__", ())}


def _hints_within(hint: Any) -> dict[str, Any]:
    """Return the declared types of the fields that a mapping can have, by any type within its own declared type."""
    return {name: found for each in _within(hint) if _has_fields(each) for name, found in _hints(each).items()}


def is_secret(hint: Any) -> bool:
    """Tell whether a type is marked as secret, or is one, at any depth."""
    return any(map(_is_mark, _within(hint)))


def _is_mark(hint: Any) -> bool:
    if hint is Secret or isinstance(hint, Secret):
        return True
    return isinstance(hint, type) and issubclass(hint, SecretStr | SecretBytes | PydanticSecret)


def _within(hint: Any) -> list[Any]:
    """Return a declared type, and all that it is put together from, names for types among it; a name may hold itself.

    Fields of a type are no part of it.
    """
    found, left = list[Any](), [hint]
    while left:
        each = left.pop()
        if not any(each is known for known in found):
            found.append(each)
            left += _inner(each)
    return found


def _inner(hint: Any) -> tuple[Any, ...]:
    if isinstance(hint, _Declared):
        return hint.parts
    named = get_origin(hint) or hint
    try:
        meant = [getattr(named, how) for how in _MEANT if not isinstance(named, type) and hasattr(named, how)]
    except NameError:
        meant = [""]
    unknown = any(isinstance(each, str) for each in meant)  # what it stands for could be anything
    return (Secret,) if unknown else (*get_args(hint), *meant)
