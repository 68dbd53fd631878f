"""The form of a final answer: what the model is told of it, and how its text is read."""

from __future__ import annotations

import copy
import dataclasses
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema import exceptions as wrong_schema
from langchain_core.language_models import BaseChatModel
from pydantic import BaseModel, PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from typing_extensions import is_typeddict

from loopwright.errors import ConfigurationError
from loopwright.state import excerpt, storable_data

from .protocol import JsonProtocol, read_object
from .replies import why_unstorable

OPTION = "response_format"
_MOST_ERRORS = 5
_WAY_OUT = "give a pydantic model, a TypedDict, a dataclass, or a JSON schema of an object"


class UnfitAnswer(ValueError):
    """Raised for a text that is no answer in the form that was asked for; says why, for the model."""


@dataclass(frozen=True, slots=True)
class Native:
    """Has the form of the answer enforced by the model's provider, by its own means.

    It is sent with each call that can bring an answer, and only where this stands. The text is validated all the same.
    """

    schema: Any
    """What `response_format` takes by itself. `Any`: a class or a JSON schema."""
    strict: bool = False
    """Sent as OpenAI's `strict`, which bounds what a schema may say; Anthropic always is."""


@dataclass(frozen=True)
class AnswerForm:
    """The form of an agent's final answers."""

    name: str
    schema: Mapping[str, Any]
    """As JSON schema."""
    load: Callable[[Any], Any]
    """Takes plain data, and returns the typed value. Raises whatever a user's validators raise."""
    dump: Callable[[Any], Any]
    """Takes the typed value, and returns plain data that `load` takes."""
    is_native: bool = False
    strict: bool = False

    @property
    def instruction(self) -> str:
        """What the model is told."""
        schema = json.dumps(self.schema, ensure_ascii=False)
        return f"Your final answer is one JSON object that fits this JSON schema, and nothing else:\n{schema}"

    def read(self, text: str) -> tuple[Any, Any]:
        """Return the typed value of an answer, and the same as plain data.

        Raises:
            UnfitAnswer: If the text holds none, or more than one that could be meant, or one that does not fit.
        """
        try:
            given = storable_data(read_object(text))
        except ValueError as error:
            raise UnfitAnswer(f"{error}; reply with one JSON object that fits the schema") from None
        if why := why_unstorable(given):
            raise UnfitAnswer(why.replace("the arguments", "the answer"))
        value = self._load(given)
        return value, self._plain(value, given)

    def _load(self, given: Any) -> Any:
        try:
            return self.load(given)
        except UnfitAnswer:
            raise
        except ValidationError as error:
            raise UnfitAnswer(_told(error)) from None
        except Exception as error:  # a validator of the user's, which may raise whatever it likes
            raise UnfitAnswer(f"it does not fit: {type(error).__name__}: {excerpt(str(error))}") from error

    def _plain(self, value: Any, given: Any) -> Any:
        """Return what is kept: with all defaults, or as the model sent it where that could not be read back."""
        try:
            plain = storable_data(self.dump(value))
            self.load(plain)
        except Exception:  # noqa: BLE001 -- a serializer of the user's; what the model sent is known to load
            return given
        return given if why_unstorable(plain) else plain

    def rebuild(self, plain: Any) -> Any:
        """Return the typed value of what was kept; as it is where the form has changed, and it does not fit."""
        try:
            return self.load(copy.deepcopy(plain))
        except Exception:  # noqa: BLE001 -- how a run ended can be looked at, whatever has become of a class
            return copy.deepcopy(plain)

    def options(self, model: BaseChatModel) -> dict[str, Any]:
        """Return what a model is sent, for its provider to enforce the form; nothing unless it was asked for."""
        if not self.is_native:
            return {}
        strict = {"strict": True} if self.strict else {}
        named: dict[str, Any] = {"name": self.name, "schema": dict(self.schema), **strict}
        sent = {"response_format": {"type": "json_schema", "json_schema": named}}
        if not _is_openai(model):
            return sent
        # By its own parameter, OpenAI's client would refuse tools that are not strict, and parse the reply itself.
        own: Mapping[str, Any] = getattr(model, "extra_body", None) or {}
        return {"extra_body": {**own, **sent}}


def build_form(response_format: object, model: BaseChatModel) -> AnswerForm | None:
    """Return the form that an agent's answers must have; None for any text.

    Raises:
        ConfigurationError: If it cannot be described to a model, is no object, or cannot be enforced as it is asked.
    """
    if response_format is None:
        return None
    if not isinstance(response_format, Native):
        return _form(response_format)
    if not isinstance(cast("object", response_format.strict), bool):
        raise _refused(f"Native: strict is {response_format.strict!r}; give True or False")
    form = dataclasses.replace(_form(response_format.schema), is_native=True, strict=response_format.strict)
    check_form(form, model)
    return form


def check_form(form: AnswerForm | None, model: BaseChatModel) -> None:
    """Refuse a form that this model's provider cannot be asked to enforce.

    Raises:
        ConfigurationError: If it shall be all the same.
    """
    if form is None or not form.is_native:
        return
    if isinstance(model, JsonProtocol):
        text = "Native(…) would forbid the JSON protocol's own decisions; give the schema without Native"
        raise _refused(text)
    if _is_openai(model) and getattr(model, "use_responses_api", None):
        raise _refused("Native(…) is sent to chat completions, and this model uses responses; leave Native out")


def _is_openai(model: BaseChatModel) -> bool:
    return any(kind.__name__ == "BaseChatOpenAI" for kind in type(model).__mro__)  # not imported: it costs a second


def _refused(text: str) -> ConfigurationError:
    return ConfigurationError(text, option=OPTION)


def _form(given: object) -> AnswerForm:
    if isinstance(given, Mapping):
        return _described(cast("Mapping[str, Any]", given))
    if not (isinstance(given, type) and _is_form(given)):
        raise _refused(f"response_format is {given!r}; {_WAY_OUT}")
    kind = cast("type[Any]", given)
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = _opened(adapter.json_schema())
    except (PydanticUserError, PydanticUndefinedAnnotation, PydanticSchemaGenerationError) as error:
        text = f"response_format {kind.__name__!r} cannot be described to a model: {excerpt(str(error))}"
        raise _refused(text) from error
    return AnswerForm(
        name=_legal(kind.__name__),
        schema=_of_object(schema),
        load=lambda plain: adapter.validate_json(json.dumps(plain)),
        dump=lambda value: adapter.dump_python(value, mode="json", by_alias=True, round_trip=True),
    )


def _is_form(kind: type[Any]) -> bool:
    return issubclass(kind, BaseModel) or is_typeddict(kind) or dataclasses.is_dataclass(kind)


def _described(schema: Mapping[str, Any]) -> AnswerForm:
    """Return the form that a JSON schema describes: its typed value is the plain data itself."""
    given = copy.deepcopy(dict(schema))
    try:
        Draft202012Validator.check_schema(given)
        json.dumps(given, allow_nan=False)
    except (wrong_schema.SchemaError, TypeError, ValueError) as error:
        said = getattr(error, "message", str(error))
        raise _refused(f"response_format is no valid JSON schema: {excerpt(str(said))}") from error
    library: Any = wrong_schema  # untyped, in part
    validator: Any = Draft202012Validator(_of_object(given))

    def load(plain: Any) -> Any:
        wrong = library.best_match(validator.iter_errors(plain))
        if wrong is not None:
            where = ".".join(map(str, wrong.absolute_path)) or "the answer"
            raise UnfitAnswer(f"{where}: {_without_value(wrong)}")
        return plain

    return AnswerForm(_legal(str(given.get("title") or "answer")), given, load, copy.deepcopy)


def _of_object(schema: dict[str, Any]) -> dict[str, Any]:
    if schema.get("type") != "object":
        raise _refused(f"response_format describes no object (its type is {schema.get('type')!r}); {_WAY_OUT}")
    return schema


def _opened(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with its outermost part in place: of a type that holds itself it is only named."""
    name = str(schema.get("$ref", "")).removeprefix("#/$defs/")
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema


def _legal(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:64] or "answer"


def _told(error: ValidationError) -> str:
    """Say what does not fit, without the values: the model knows them, and they can be long."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    lines = [f"{'.'.join(map(str, one['loc'])) or 'the answer'}: {excerpt(one['msg'])}" for one in found[:_MOST_ERRORS]]
    more = [f"and {len(found) - _MOST_ERRORS} more"] if len(found) > _MOST_ERRORS else []
    return "; ".join([*lines, *more])


def _without_value(error: Any) -> str:
    wanted = error.validator_value
    return f"does not fit {error.validator} {wanted!r}" if error.validator != "required" else str(error.message)
