"""Finds what a command works on: the database, and the agent that a reference names."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from loopwright.checkpoints import LEASE_SECONDS, PLAIN_INVOKE, Checkpoints, open_checkpoints
from loopwright.errors import ConfigurationError, LoopwrightError, StorageError
from loopwright.graphs import Agent, change_agent
from loopwright.models import Price
from loopwright.state import Limits

URL_VARIABLE = "LOOPWRIGHT_CHECKPOINTS"
KEYS_VARIABLE = "LOOPWRIGHT_ENCRYPTION"
LEASE_VARIABLE = "LOOPWRIGHT_LEASE_SECONDS"
DEFAULT_PATH = Path(".loopwright/runs.db")
_SQLITE = "sqlite:///"

_MODEL, _PRICE = "model", "price"
_LIMITS: Mapping[str, type[int | float | Decimal]] = {
    "max_steps": int,
    "max_tool_calls": int,
    "max_tokens": int,
    "max_seconds": float,
    "max_cost": Decimal,
}


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an agent is found, and what of it is changed; as text it stands in the run's row.

    So that whoever resumes a run gets the model and the limits that it was started with:
    `loopwright.graphs.support:agent?max_steps=4`.
    """

    target: str
    """`package.module:name`."""
    changes: Mapping[str, str]
    """`model`, `price`, and limits by the names that `Limits` gives them."""

    def __str__(self) -> str:
        """Return the text that `parse_reference` reads."""
        asked = urlencode(self.changes, safe=":/,", quote_via=quote)
        return f"{self.target}?{asked}" if asked else self.target


def parse_reference(text: str) -> Reference:
    """Read a reference.

    Raises:
        ConfigurationError: If it does not have the form `package.module:name`.
    """
    target, _, asked = text.partition("?")
    module, _, name = target.partition(":")
    if not all(part.isidentifier() for part in [*module.split("."), *name.split(".")]):
        raise ConfigurationError(f"{text!r} names no agent; the form is package.module:name", agent=text)
    return Reference(target, dict(parse_qsl(asked, keep_blank_values=True)))


def load_agent(reference: Reference) -> Agent:
    """Import the agent; modules of the current folder are found too.

    Raises:
        ConfigurationError: If there is no such module or name, if it is no agent, or if the module fails.
    """
    agent = _imported(reference.target)
    if not reference.changes:
        return agent
    limits = _changed_limits(agent.spec.limits, reference.changes)
    models = [name.strip() for name in reference.changes.get(_MODEL, "").split(",") if name.strip()]
    return change_agent(agent, model=models or None, limits=limits, price=_price(reference.changes.get(_PRICE)))


def _price(text: str | None) -> Price | None:
    """Read what a million tokens cost: for input and for output, in US dollars."""
    if text is None:
        return None
    try:
        input_, output = map(Decimal, text.split(","))
    except (ValueError, InvalidOperation) as error:
        said = f"price is {text!r}; give US dollars for a million input and output tokens, such as 0.25,2"
        raise ConfigurationError(said, option="price") from error
    return Price(input_, output)


def _imported(target: str) -> Agent:
    module_name, _, path = target.partition(":")
    found: Any = _module(module_name, target)
    for name in path.split("."):
        if not hasattr(found, name):
            raise ConfigurationError(f"cannot load the agent {target!r}: {module_name} has no {path!r}", agent=target)
        found = getattr(found, name)
    if not isinstance(found, Agent):
        text = f"{target!r} is no agent but a {type(found).__name__}; name what create_agent returned"
        raise ConfigurationError(text, agent=target)
    return found


def _module(name: str, target: str) -> object:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except LoopwrightError as error:
        text = f"cannot load the agent {target!r}: {error.message}"
        raise ConfigurationError(text, **{**error.facts, "agent": target}) from error
    except Exception as error:
        text = f"cannot load the agent {target!r}: {type(error).__name__}: {error}"
        raise ConfigurationError(text, agent=target) from error


def _changed_limits(limits: Limits, changes: Mapping[str, str]) -> Limits:
    values: dict[str, Any] = {}
    for name, text in changes.items():
        if name in (_MODEL, _PRICE):
            continue
        if name not in _LIMITS:
            raise ConfigurationError(f"an agent has no option {name!r} that could be changed", option=name)
        try:
            values[name] = _LIMITS[name](text)
        except (ValueError, InvalidOperation) as error:
            raise ConfigurationError(f"{name} is {text!r}; give a number", option=name) from error
    return replace(limits, **values)


def is_loadable(agent: str) -> bool:
    """Tell whether a row's agent can be loaded by another process; else it lives in the program that made it."""
    return ":" in agent


def load_agent_of(agent: str, run_id: str) -> tuple[Agent, str]:
    """Load the agent of a run's row; returns it with its reference.

    Raises:
        ConfigurationError: If it cannot be loaded, or only the program that started the run has it.
    """
    if not is_loadable(agent):
        how = "itself, by invoke" if agent == PLAIN_INVOKE else "without a reference= to its agent"
        text = f"run {run_id} belongs to the program that started it {how}; only that program can carry it on"
        raise ConfigurationError(text, run_id=run_id, agent=agent)
    reference = parse_reference(agent)
    return load_agent(reference), str(reference)


def open_store(*, create: bool = False) -> Checkpoints:
    """Open the database that the environment names, else the one of the current folder.

    Args:
        create: Make the file, and the folder for it. A command that does not begin a run leaves neither behind: it gets
            an empty database.

    Raises:
        ConfigurationError: If the environment is set wrongly.
        StorageError: If the database cannot be used.
    """
    seconds, keys = _lease_seconds(), _keys()
    url = os.environ.get(URL_VARIABLE)
    if url:
        if url.startswith("memory:") or url.endswith(":memory:"):
            text = f"{URL_VARIABLE} is {url!r}, which no other process could read; name a file, sqlite:///runs.db"
            raise ConfigurationError(text, url=url)
        there = "memory:" if not create and _is_missing(url) else url
        return open_checkpoints(there, lease_seconds=seconds, encryption=keys)
    if create:
        _make_folder(DEFAULT_PATH.parent)
    elif not DEFAULT_PATH.exists():
        return open_checkpoints("memory:", lease_seconds=seconds)
    return open_checkpoints(f"sqlite:///{DEFAULT_PATH}", lease_seconds=seconds, encryption=keys)


def place() -> str:
    """Say where the runs are kept, without a password, and if there is no such file yet."""
    url = os.environ.get(URL_VARIABLE)
    if not url:
        return str(DEFAULT_PATH)
    if url.startswith(_SQLITE):
        return f"{url} (there is no such file)" if _is_missing(url) else url
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('?')[0].rpartition('@')[2]}"


def _is_missing(url: str) -> bool:
    path = Path(url.removeprefix(_SQLITE))
    return url.startswith(_SQLITE) and path.parent.is_dir() and not path.exists()


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        text = f"cannot create the folder {str(folder)!r} ({error.strerror}); run it elsewhere, or set {URL_VARIABLE}"
        raise StorageError(text, path=str(folder)) from error


def _keys() -> list[bytes]:
    """Read the keys of an encrypted database, the newest first; the error shows none of them."""
    listed = os.environ.get(KEYS_VARIABLE, "").split(",")
    try:
        return [bytes.fromhex(key) for key in listed if key.strip()]
    except ValueError:
        said = (
            f"{KEYS_VARIABLE} holds what is no key; give 64 hexadecimal digits for each, commas between, newest first"
        )
        raise ConfigurationError(said, option=KEYS_VARIABLE) from None


def _lease_seconds() -> float:
    text = os.environ.get(LEASE_VARIABLE)
    if not text:
        return LEASE_SECONDS
    try:
        return float(text)
    except ValueError as error:
        said = f"{LEASE_VARIABLE} is {text!r}; give seconds above 0"
        raise ConfigurationError(said, option=LEASE_VARIABLE) from error
