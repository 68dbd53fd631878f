"""Arguments that a tool describes by JSON schema, as those of other languages do."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, cast

from jsonschema import Draft202012Validator, validators
from jsonschema import exceptions as wrong_schema
from pydantic import BaseModel, ConfigDict, create_model, model_serializer, model_validator
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from loopwright.errors import ConfigurationError


def _fits_pattern(_validator: Any, pattern: str, given: Any, _schema: Any) -> Iterator[Any]:
    """Check a `pattern` in time linear in the text, as pydantic's engine does: who wrote it may mean no good.

    What that engine does not know, such as a look-ahead, is left to whoever the arguments are for.
    """
    try:
        if isinstance(given, str):
            SchemaValidator(core_schema.str_schema(pattern=pattern)).validate_python(given)
    except SchemaError:
        return
    except ValidationError:
        failed: Any = wrong_schema.ValidationError
        yield failed(f"does not match {pattern!r}")


_extend: Any = cast("Any", validators).extend  # untyped, in part
_Validator: Any = _extend(Draft202012Validator, {"pattern": _fits_pattern})


class DescribedArguments(BaseModel):
    """Arguments that are checked by a JSON schema; what is left out, and has no default there, stays out."""

    described: ClassVar[dict[str, Any]]

    @model_validator(mode="before")
    @classmethod
    def _check(cls, given: Any) -> Any:
        library: Any = wrong_schema  # untyped, in part
        validator: Any = _Validator(cls.described)
        wrong = library.best_match(validator.iter_errors(given))
        if wrong is not None:
            where = ".".join(map(str, wrong.absolute_path)) or "all"
            raise ValueError(f"{where}: {_without_value(wrong)}")
        return given

    @model_serializer(mode="wrap")
    def _dump(self, handler: Any) -> dict[str, Any]:
        dumped: dict[str, Any] = handler(self)
        defaults = {name for name, part in _properties(self.described).items() if "default" in part}
        return {name: value for name, value in dumped.items() if name in self.model_fields_set | defaults}

    @classmethod
    def can_lack(cls, parameter: str) -> bool:
        """Tell whether arguments may come without a parameter that has no default."""
        part = _properties(cls.described).get(parameter, {})
        return parameter not in cls.described.get("required", ()) and "default" not in part

    @classmethod
    def model_json_schema(cls, *_args: Any, **_options: Any) -> dict[str, Any]:
        """Return the schema as it was given."""
        return cls.described


def described(name: str, schema: object) -> type[BaseModel]:
    """Return a model of arguments that a JSON schema describes; parameters that it does not name are refused.

    Raises:
        ConfigurationError: If it is no schema of an object, or names a parameter that pydantic keeps to itself.
    """
    given = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    try:
        Draft202012Validator.check_schema(given)
    except wrong_schema.SchemaError as error:
        text = f"tool {name!r}: its arguments are described by no valid JSON schema: {error.message}"
        raise ConfigurationError(text, tool=name) from error
    if foreign := sorted(_foreign_references(given)):
        text = f"tool {name!r}: its arguments refer to {foreign[0]!r}, outside of the schema; write it out there"
        raise ConfigurationError(text, tool=name)
    if given.get("type", "object") != "object":
        raise ConfigurationError(f"tool {name!r}: its arguments are no object; describe named parameters", tool=name)
    properties, required = _properties(given), {str(one) for one in given.get("required", ())}
    if reserved := sorted(filter(_is_reserved, properties)):
        text = f"tool {name!r}: pydantic keeps the name {reserved[0]!r} to itself; rename the parameter"
        raise ConfigurationError(text, tool=name)
    fields: dict[str, Any] = {
        one: (Any, ... if one in required and "default" not in part else part.get("default"))
        for one, part in properties.items()
    }
    model: type[DescribedArguments]
    config = ConfigDict(extra="allow" if given.get("additionalProperties") else "forbid", protected_namespaces=())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a parameter called `schema` or `json` hides what we do not call
        model = create_model(name, __base__=type(name, (DescribedArguments,), {"model_config": config}), **fields)
    model.described = {key: value for key, value in given.items() if key not in ("title", "description")}
    return model


def _foreign_references(part: object) -> set[str]:
    """Find the references that lead out of the schema: whoever wrote it would choose what is fetched from here."""
    if isinstance(part, list):
        return {one for item in cast("list[object]", part) for one in _foreign_references(item)}
    if not isinstance(part, dict):
        return set()
    found: set[str] = set()
    for key, value in cast("dict[str, object]", part).items():
        if key in ("$ref", "$dynamicRef") and isinstance(value, str) and not value.startswith("#"):
            found.add(value)
        found |= _foreign_references(value)
    return found


def _is_reserved(parameter: str) -> bool:
    own = parameter in vars(DescribedArguments) or (parameter.startswith("model_") and hasattr(BaseModel, parameter))
    return own or parameter.startswith("_")


def _properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    found = schema.get("properties")
    return cast("dict[str, dict[str, Any]]", found) if isinstance(found, dict) else {}


def _without_value(error: Any) -> str:
    """Say what a schema wants, without the value, which can be long, or secret."""
    wanted = error.validator_value
    return f"does not fit {error.validator} {wanted!r}" if error.validator != "required" else str(error.message)
