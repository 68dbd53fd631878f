"""Anything that a tool returns becomes text, or content blocks that providers take."""

from __future__ import annotations

import base64
import dataclasses
import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from langgraph.types import Command, Overwrite
from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from loopwright.errors import ToolError
from loopwright.state import storable, storable_data

OVERWRITE = "__overwrite__"
"""The one key of an update that takes the place of what a channel holds, whatever its reducer: LangGraph's own."""
ASTRAY = "a tool cannot decide where the run goes on (goto, graph, resume)"
"""Why a `Command` is refused that would lead around the guard."""
NOTHING = "(no result)"
"""What the model reads when a tool returned None."""
EMPTY = "(empty text)"
"""What the model reads when a tool returned an empty string: some providers refuse empty content."""
MAX_KEPT = 1_000_000
"""Characters of a result that are kept at all; what comes after them is dropped, and the text says so."""
MAX_ITEMS = 10_000
"""Items that are read of a list or an iterator within a result: it could have no end."""
ONLY_FIRST = f"(only the first {MAX_ITEMS} items)"
"""Stands behind the items that were read, where there were more."""
MAX_DEPTH = 60
"""Containers within containers."""
ROOM = f"{MAX_ITEMS:,} items in a list, 100,000 values in all, {MAX_DEPTH} levels"
"""What of a value is written out, in words."""
MAX_BITS = 10_000
"""Of a whole number that is written in decimal digits; Python refuses to write longer ones so."""
MAX_PARTS = 100_000
"""Values that are written out of one result: a few lists that hold each other twice have no end on paper."""
MAX_BLOCKS = 10_000_000
"""Characters of pictures, sound and files in one result; what does not fit becomes a line that says so."""


@dataclasses.dataclass(frozen=True, slots=True)
class WithArtifact:
    """What a tool with `response_format="content_and_artifact"` returned."""

    content: Any
    artifact: Any

    @classmethod
    def of(cls, name: str, result: object) -> Self:
        """Take the pair that the tool returned.

        Raises:
            ToolError: If it is none.
        """
        pair = cast("Sequence[Any]", result) if isinstance(result, tuple) else ()
        if len(pair) != 2:  # noqa: PLR2004 -- a pair
            text = f"{name} is declared to return content and artifact as a tuple, and returned something else"
            raise ToolError(text, tool=name)
        return cls(pair[0], pair[1])


def unpacked(result: Any) -> Any:
    """Return what LangChain expects of a tool that is called by itself."""
    if isinstance(result, WithArtifact):
        return result.content, result.artifact
    return result.content if isinstance(result, ToolMessage) else result


def unfailed(result: Any) -> Any:
    """Return a result, unless it is an error that a tool handed over as a message.

    Raises:
        ToolException: Then: nothing was done.
    """
    if isinstance(result, ToolMessage) and result.status == "error":
        raise ToolException(to_output(result.content).text)
    return result


@dataclasses.dataclass(frozen=True, slots=True)
class Output:
    """What a tool returned, as it can be stored."""

    text: str
    """Never empty. Stands for the blocks too, where only text can be kept."""
    blocks: tuple[dict[str, Any], ...] = ()
    """Content blocks, where there is more than text among them."""
    artifact: Any = None
    """For programs; plain data."""
    update: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """What a `Command` writes into open channels of the state: plain data."""
    refused: str = ""
    """Why a `Command` could not be carried out; the rest of it is not either."""


def to_output(value: object, *, call_id: str = "", channels: Sequence[str] = ()) -> Output:
    """Return what becomes of a tool's result. What cannot even be looked at is named: the tool has run.

    Args:
        value: Anything. LangChain's `ToolMessage` brings content and artifact, its `Command` updates of the state.
        call_id: Of the call that is answered: a `Command` may bring its tool message.
        channels: Those of the state that a `Command` may update.

    Raises:
        ToolException: If the tool handed its error over as a message: nothing was done.
    """
    try:
        return _output(value, call_id, channels)
    except ToolException:
        raise
    except Exception:  # noqa: BLE001 -- such as a proxy that is bound to nothing, which raises at each question
        return Output(_textless(value))


def _output(value: object, call_id: str, channels: Sequence[str]) -> Output:
    if isinstance(value, Command):
        return _commanded(value, call_id, channels)  # pyright: ignore[reportUnknownArgumentType]  # of anything
    if isinstance(value, WithArtifact):
        return dataclasses.replace(to_output(value.content), artifact=to_plain_data(value.artifact))
    if isinstance(value, ToolMessage):
        unfailed(value)
        return dataclasses.replace(to_output(value.content), artifact=to_plain_data(value.artifact))
    blocks = _blocks(value)
    if not blocks:
        return Output(to_text(value))
    text = "\n".join(block["text"] if block["type"] == "text" else f"({block['type']})" for block in blocks)
    is_text = all(block["type"] == "text" for block in blocks)
    return Output(to_text(text), () if is_text else tuple(blocks))


def _commanded(command: Command[Any], call_id: str, channels: Sequence[str]) -> Output:
    """Read a `Command`: it may update the user's channels and bring this call's message, and go nowhere."""
    if command.goto or command.graph or command.resume is not None:
        return Output("", refused=ASTRAY)
    update = cast("object", command.update)
    if update is not None and not isinstance(update, Mapping):
        return Output("", refused="the update of a Command must be a mapping of channels")
    given = dict(cast("Mapping[str, Any]", update or {}))
    messages = given.pop("messages", ())
    listed = [*cast("Sequence[object]", messages)] if isinstance(messages, list | tuple) else [messages]
    mine = [one for one in listed if isinstance(one, ToolMessage) and one.tool_call_id == call_id]
    if len(mine) != len(listed) or len(mine) > 1:
        return Output("", refused="of the messages a tool may write only the one that answers its own call")
    if foreign := sorted(set(given) - set(channels)):
        mine_ = ", ".join(channels) or "none"
        return Output("", refused=f"a tool may not update {', '.join(foreign)}; the channels open to it are: {mine_}")
    output = to_output(mine[0]) if mine else Output(f"updated {', '.join(given)}" if given else NOTHING)
    try:
        return dataclasses.replace(output, update={name: _update(part) for name, part in given.items()})
    except ValueError as error:
        return Output("", refused=f"its update is {error}")


def _update(part: Any) -> Any:
    """Return one update as plain data; LangGraph's `Overwrite` in its plain form."""
    return {OVERWRITE: to_whole_data(part.value)} if isinstance(part, Overwrite) else to_whole_data(part)


def to_whole_data(value: Any) -> Any:
    """Return all of a value as plain data: a result may be cut, and what a state holds not.

    Raises:
        ValueError: If it is too much.
    """
    room = _Room()
    plain = _plain(value, room=room)
    if room.is_cut:
        raise ValueError(f"more than a state can hold ({ROOM})")
    return _fitting(storable_data(plain))


def to_plain_data(value: Any) -> Any:
    """Return a value as data that every store can keep: the same, where it is plain already. Never raises.

    What has no JSON form is replaced as in a result; a whole number above 64 bits becomes its digits.
    """
    return None if value is None else _fitting(storable_data(_plain(value)))


def _fitting(plain: Any) -> Any:
    """Return plain data without numbers that no checkpoint keeps."""
    if isinstance(plain, int) and not -(2**63) <= plain < 2**64:
        return hex(plain) if plain.bit_length() > MAX_BITS else str(plain)
    if isinstance(plain, dict):
        return {key: _fitting(item) for key, item in cast("dict[str, Any]", plain).items()}
    if isinstance(plain, list):
        return [_fitting(item) for item in cast("list[Any]", plain)]  # type: ignore[redundant-cast]  # pyright needs it
    return plain


def to_text(value: object) -> str:
    """Return what the model reads of a tool's result; always a non-empty string, and never an exception.

    Text stays as it is; all else becomes JSON: dates in ISO form, a `Decimal` with its digits, enumerations by value,
    sets in order, dataclasses and pydantic models by field, bytes as text where they are some and else in base64, an
    exception as its type and message, and what has no JSON form as its `repr`. What no store can keep (NUL, half a
    surrogate pair) is replaced by U+FFFD. Of more than `MAX_KEPT` characters the rest is dropped.
    """
    if value is None:
        return NOTHING
    text = value if isinstance(value, str) and type(value) is str else _json(value)
    return storable(_bounded(text)) if text else EMPTY


def _bounded(text: str) -> str:
    if len(text) <= MAX_KEPT:
        return text
    return f"{text[:MAX_KEPT]}\n… {len(text) - MAX_KEPT} more characters were dropped"


def _json(value: object) -> str:
    plain = _plain(value)
    try:
        return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)
    except Exception:  # noqa: BLE001 -- such as an integer of more digits than Python writes out
        return _textless(value)


def _textless(value: object) -> str:
    return f"(a {type(value).__name__} that has no text)"


class _Room:
    """How much may still be written out of one result."""

    def __init__(self) -> None:
        """Begin with all of it."""
        self._left = MAX_PARTS
        self.is_cut = False
        """Whether anything did not fit."""

    def take(self) -> bool:
        """Take the room of one value; False once there is none left."""
        self._left -= 1
        self.is_cut = self.is_cut or self._left < 0
        return self._left >= 0


def _plain(value: Any, path: tuple[int, ...] = (), room: _Room | None = None) -> Any:
    """Turn anything into JSON-like data. Never raises: the tool has run, and its effect must not become unknown.

    Args:
        value: Anything.
        path: The identities of the containers around it: one that holds itself is named instead.
        room: What is left for it; all there is for a value by itself.
    """
    room = room or _Room()
    if not room.take():
        return f"(only the first {MAX_PARTS} values)"
    if id(value) in path:
        return f"(the {type(value).__name__} itself)"
    if len(path) >= MAX_DEPTH:
        room.is_cut = True
        return "(nested too deep)"
    try:
        return _parts(value, (*path, id(value)), room)
    except (Exception, SystemExit):  # noqa: BLE001 -- whatever a foreign __repr__, __iter__ or property does
        return _textless(value)


def _parts(value: Any, path: tuple[int, ...], room: _Room) -> Any:
    """Turn the containers into lists and dicts; leave the single values to pydantic."""
    if isinstance(value, BaseException):
        return f"{type(value).__name__}: {safe_str(value)}"
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(), path, room)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name), path, room) for field in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        pairs = itertools.islice(value.items(), MAX_PARTS)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]  # anything
        return {_key(key): _plain(item, path, room) for key, item in pairs}  # pyright: ignore[reportUnknownVariableType]  # anything
    if isinstance(value, set | frozenset):
        items = (_plain(item, path, room) for item in value)  # pyright: ignore[reportUnknownVariableType]  # anything
        return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, list | tuple | Iterator):
        return _read(iter(value), path, room)  # pyright: ignore[reportUnknownArgumentType]  # anything
    return _single(value)


def _single(value: Any) -> Any:
    if isinstance(value, bytes | bytearray | memoryview):
        return _decoded(bytes(cast("bytes", value)))
    return _finite(to_jsonable_python(value, fallback=repr, inf_nan_mode="strings"))


def _finite(plain: Any) -> Any:
    """Return JSON-like data as JSON has it: what is no finite number (`NaN`, `Infinity`) becomes its name, a text."""
    if isinstance(plain, float) and not math.isfinite(plain):
        return "NaN" if math.isnan(plain) else f"{'-' if plain < 0 else ''}Infinity"
    if isinstance(plain, dict):
        return {key: _finite(item) for key, item in cast("dict[str, Any]", plain).items()}
    if isinstance(plain, list):
        return [_finite(item) for item in cast("list[Any]", plain)]  # type: ignore[redundant-cast]  # pyright needs it
    return plain


def _read(items: Iterator[Any], path: tuple[int, ...], room: _Room) -> list[Any]:
    """Read items; there may be no end to them."""
    read = [_plain(item, path, room) for item in itertools.islice(items, MAX_ITEMS)]
    is_over = len(read) == MAX_ITEMS and next(items, read) is not read
    room.is_cut = room.is_cut or is_over
    return [*read, ONLY_FIRST] if is_over else read


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"base64:{base64.b64encode(data).decode()}"


def _key(key: Any) -> str:
    plain = _plain(key)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _blocks(value: object) -> list[dict[str, Any]]:
    """Return a list of content blocks as it can be sent; empty for anything else, such as data that only looks so."""
    if not isinstance(value, list) or not value:
        return []
    items = cast("list[object]", value)
    blocks = [cast("dict[str, Any]", storable_data(item)) for item in items if _is_block(item)]
    if len(blocks) < len(items):
        return []
    blocks = [*_kept_blocks(blocks)]
    # Providers refuse an empty text block; a list of nothing else is an empty text.
    return [block for block in blocks if block.get("text") != ""] or [{"type": "text", "text": EMPTY}]


def _kept_blocks(blocks: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the blocks, as far as there is room for what is no text: each checkpoint keeps them."""
    room = MAX_BLOCKS
    for block in blocks:
        size = 0 if block["type"] == "text" else len(json.dumps(block, default=str))
        if size > room:
            yield {"type": "text", "text": f"({block['type']}, {size:,} characters, is left out)"}
        else:
            room -= size
            yield block


def _is_block(item: object) -> bool:
    if not isinstance(item, dict):
        return False
    block = cast("dict[str, Any]", item)
    match block.get("type"):
        case "text":
            return isinstance(block.get("text"), str) and set(block) <= {"type", "text", "id", "index", "annotations"}
        case "image_url":
            url: object = block.get("image_url")
            return isinstance(url, str) or (isinstance(url, dict) and "url" in url)
        case "image" | "audio" | "video" | "file":
            return _has_source(block)
        case _:
            return False


def _has_source(block: Mapping[str, Any]) -> bool:
    """Tell whether a picture, sound or file comes with the block; a listing of files has nothing like it."""
    has_data = any(isinstance(block.get(name), str) for name in ("base64", "data"))
    url: object = block.get("url")
    is_picture = block["type"] == "image" and isinstance(url, str) and url.startswith(("https://", "http://", "data:"))
    return is_picture or (has_data and "mime_type" in block) or isinstance(block.get("source"), dict)


def safe_str(error: BaseException) -> str:
    """Return an exception's text, also when its `__str__` raises; a group's with those of its members.

    What no store can keep is marked in it, and of more than `MAX_KEPT` characters the rest dropped, as in a result.
    """
    try:
        return storable(_bounded(_said(error)))
    except (Exception, SystemExit):  # noqa: BLE001 -- such as groups within groups without end
        return _name(error)


def _said(error: BaseException) -> str:
    try:
        said = str(error) or _name(error)
    except (Exception, SystemExit):  # noqa: BLE001 -- whatever a foreign __str__ does, the run goes on
        return _name(error)
    group = cast("Any", error)
    inner = group.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return "; ".join([said, *(f"{_name(one)}: {safe_str(one)}" for one in inner)])


def _name(error: object) -> str:
    return type(error).__name__
