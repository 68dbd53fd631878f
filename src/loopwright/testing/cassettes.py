"""Recordings of a real model: made once, with a key and for money; replayed offline, for ever the same."""

from __future__ import annotations

import difflib
import json
import re
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr, SecretStr
from pydantic_core import to_jsonable_python
from typing_extensions import override

from loopwright.errors import ConfigurationError
from loopwright.models import hide_keys, model_name

FORMAT = 1
_HIDDEN = RunnableConfig(callbacks=[])
"""Whoever traces the recording model sees the call there."""
_SECRET_NAME = re.compile(r"api[_-]?key|authorization|cookie|headers|password|secret", re.IGNORECASE)
_SECRET_TEXT = re.compile(r"\b(?:sk|pk|key|xox[abp])-[A-Za-z0-9_-]{12,}|(?<=Bearer )\S+")
_SAID = ("content", "tool_calls", "invalid_tool_calls", "id")
_KEPT = (*_SAID, "usage_metadata", "response_metadata", "additional_kwargs")
_MOST_LINES = 60


class CassetteMismatch(AssertionError):
    """A request differs from the recorded one, or is not recorded; or a recorded one was never made."""


class RecordedFailure(Exception):
    """What a recorded call raised.

    Attributes:
        status_code: The HTTP status, where the error had one.
    """

    def __init__(self, message: str, status_code: int | None = None) -> None:
        """Keep both."""
        super().__init__(message)
        self.status_code = status_code


def record(model: BaseChatModel, path: str | Path) -> BaseChatModel:
    """Return the model, with each call and its reply, or its error, written to a file as it comes.

    The file has one JSON object a line. Keys, headers and what looks like a key are left out of it.

    Raises:
        ConfigurationError: If the file is there already: a recording may have cost money.
    """
    file = Path(path)
    if file.exists():
        raise ConfigurationError(f"the cassette {file} is there already; delete it to record it anew", path=str(file))
    recording = RecordingModel(inner=model)
    recording.begin(file)
    return recording


def replay(path: str | Path) -> ReplayingModel:
    """Return a model that says what was recorded, call by call, as long as it is asked the same.

    Call ids are compared by their order, since those that a run gives differ from run to run.

    Raises:
        ConfigurationError: If the file is no cassette.
    """
    file = Path(path)
    try:
        header, *takes = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        is_known = header["cassette"] == FORMAT
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(f"{file} is no cassette: {error}; make one with record(model, path)") from error
    if not is_known:
        raise ConfigurationError(f"the cassette {file} has format {header['cassette']}; this release reads {FORMAT}")
    replaying = ReplayingModel(params=header["params"], tape=str(file))
    replaying.load(takes)
    return replaying


class RecordingModel(BaseChatModel):
    """Calls the model inside it, and writes down what was asked and what came."""

    inner: BaseChatModel
    bound: Any = None
    """The inner model with its tools."""
    tools: tuple[dict[str, Any], ...] = ()
    _file: Path = PrivateAttr(default=Path())
    _lock: Any = PrivateAttr(default_factory=threading.Lock)

    @property
    def _llm_type(self) -> str:
        return "recording"

    @override
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return self.inner._get_ls_params(stop=stop, **kwargs)  # noqa: SLF001 -- it is named and priced as the inner one

    @override
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> RecordingModel:
        described = tuple(convert_to_openai_tool(tool) for tool in tools)
        copy = self.model_copy(update={"bound": self.inner.bind_tools(tools, **kwargs), "tools": described})
        copy._file, copy._lock = self._file, self._lock  # noqa: SLF001 -- its own class
        return copy

    def begin(self, file: Path) -> None:
        """Create the file."""
        self._file = file
        given: dict[str, Any] = dict(self._get_ls_params())
        params = {name: given.get(name) for name in ("ls_provider", "ls_model_name")}
        self._write({"cassette": FORMAT, "params": {**params, "ls_model_name": model_name(self.inner)}})

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = _request(messages, self.tools, {**kwargs, **({"stop": stop} if stop else {})})
        try:
            reply = self._model().invoke(messages, _HIDDEN, stop=stop, **kwargs)
        except Exception as error:
            self._keep_error(asked, error)
            raise
        return self._keep(asked, reply)

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = _request(messages, self.tools, {**kwargs, **({"stop": stop} if stop else {})})
        try:
            reply = await self._model().ainvoke(messages, _HIDDEN, stop=stop, **kwargs)
        except Exception as error:
            self._keep_error(asked, error)
            raise
        return self._keep(asked, reply)

    def _model(self) -> Runnable[Any, BaseMessage]:
        return self.inner if self.bound is None else self.bound

    def _keep(self, asked: dict[str, Any], reply: BaseMessage) -> ChatResult:
        dumped: dict[str, Any] = to_jsonable_python(reply.model_dump(), fallback=str)
        self._write({"request": asked, "reply": {name: dumped[name] for name in _KEPT if dumped.get(name)}})
        return ChatResult(generations=[ChatGeneration(message=reply)])

    def _keep_error(self, asked: dict[str, Any], error: Exception) -> None:
        said = {"type": type(error).__name__, "message": str(error), "status_code": getattr(error, "status_code", None)}
        self._write({"request": asked, "error": said})

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(_without_secrets(line), ensure_ascii=False)
        with self._lock, self._file.open("a", encoding="utf-8") as file:
            file.write(hide_keys(text, self.inner) + "\n")


class _Tape:
    """What was recorded, and how far it was replayed; the copies with tools share it."""

    def __init__(self, takes: Sequence[Mapping[str, Any]]) -> None:
        self.takes = takes
        self.used = 0
        self.wrong = ""
        self.lock = threading.Lock()


class ReplayingModel(BaseChatModel):
    """Says what a cassette holds, in its order."""

    params: dict[str, Any]
    tape: str
    tools: tuple[dict[str, Any], ...] = ()
    _tape: _Tape = PrivateAttr(default_factory=lambda: _Tape([]))

    @property
    def _llm_type(self) -> str:
        return "replaying"

    @override
    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> Any:
        return {"ls_model_type": "chat", **self.params}

    @override
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> ReplayingModel:
        copy = self.model_copy(update={"tools": tuple(convert_to_openai_tool(tool) for tool in tools)})
        copy._tape = self._tape  # noqa: SLF001 -- its own class
        return copy

    def load(self, takes: Sequence[Mapping[str, Any]]) -> None:
        """Put the tape in."""
        self._tape = _Tape(takes)

    def assert_done(self) -> None:
        """Fail if a request differed from what was recorded, or a recorded one was never made.

        A run catches whatever its model raises: so call this at the end of a test.

        Raises:
            CassetteMismatch: Saying what differs, or what was left.
        """
        if self._tape.wrong:
            raise CassetteMismatch(self._tape.wrong)
        left = len(self._tape.takes) - self._tape.used
        if left:
            raise CassetteMismatch(f"{left} of the {len(self._tape.takes)} calls of {self.tape} were never made")

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = _request(messages, self.tools, {**kwargs, **({"stop": stop} if stop else {})})
        take = self._next(cast("dict[str, Any]", _without_secrets(asked)))
        if error := take.get("error"):
            raise RecordedFailure(f"{error['type']}: {error['message']}", error["status_code"])
        reply = {"content": "", **take["reply"]}
        return ChatResult(generations=[ChatGeneration(message=AIMessage(**reply))])

    def _next(self, asked: dict[str, Any]) -> Mapping[str, Any]:
        tape = self._tape
        with tape.lock:
            if tape.used >= len(tape.takes):
                tape.wrong = f"call {tape.used + 1} was made; {self.tape} has {len(tape.takes)}"
                raise CassetteMismatch(tape.wrong)
            take = tape.takes[tape.used]
            tape.used += 1
            if take["request"] != asked:
                differs = _difference(take["request"], asked)
                tape.wrong = f"call {tape.used} is not as recorded in {self.tape}:\n{differs}"
                raise CassetteMismatch(tape.wrong)
            return take


def _request(
    messages: Sequence[BaseMessage], tools: Sequence[Mapping[str, Any]], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what is asked, as plain data; ids are numbered."""
    ids: dict[str | None, str] = {}

    def own(given: str | None) -> str:
        return ids.setdefault(given, f"call {len(ids) + 1}")

    lines: list[dict[str, Any]] = []
    for message in messages:
        line: dict[str, Any] = {"type": message.type, "content": message.content}
        if isinstance(message, AIMessage) and message.tool_calls:
            line["tool_calls"] = [{**call, "id": own(call["id"])} for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            line["tool_call_id"] = own(message.tool_call_id)
        lines.append(line)
    asked = {"messages": lines, "tools": [*tools], "options": {**options}}
    plain: dict[str, Any] = to_jsonable_python(_without_secrets(asked), fallback=str)
    return plain


def _without_secrets(value: Any) -> Any:
    """Return data without what is secret by its type, its name or its look."""
    if isinstance(value, SecretStr):
        return "***"
    if isinstance(value, str):
        return _SECRET_TEXT.sub("***", value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, Any]", value).items()
        return {key: "***" if _is_secret(key, part) else _without_secrets(part) for key, part in items}
    if isinstance(value, list | tuple):
        return [_without_secrets(part) for part in cast("Sequence[Any]", value)]
    return value


def _is_secret(name: str, value: object) -> bool:
    """Tell whether a name is one of a secret; a schema has parameters of such names, which hold no value."""
    is_schema = isinstance(value, Mapping) and "type" in value
    return not is_schema and _SECRET_NAME.fullmatch(str(name).removeprefix("extra_").removeprefix("x-")) is not None


def _difference(recorded: Any, asked: Any) -> str:
    before, after = _lines(recorded), _lines(asked)
    lines = [*difflib.unified_diff(before, after, "recorded", "asked now", lineterm="", n=2)]
    more = f"\n… ({len(lines) - _MOST_LINES} more lines)" if len(lines) > _MOST_LINES else ""
    return "\n".join(lines[:_MOST_LINES]) + more


def _lines(value: Any) -> list[str]:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).splitlines()
