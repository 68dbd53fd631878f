"""Arguments of a tool, as people type them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, cast

from loopwright.errors import ConfigurationError

_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}


def parse_changes(changes: Sequence[str]) -> dict[str, Any]:
    """Read `name=value`: the value as JSON where it is some, else as text.

    Raises:
        ValueError: Naming what has another form.
    """
    read: dict[str, Any] = {}
    for change in changes:
        name, is_there, text = change.partition("=")
        if not (name and is_there):
            raise ValueError(f"{change!r} has not the form name=value")
        read[name] = _value(text)
    return read


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError:
        return text


def parse_labels(labels: Sequence[str]) -> dict[str, str]:
    """Read labels as they are typed, `name=value`.

    Raises:
        ConfigurationError: Naming what has another form, or is given twice.
    """
    read: dict[str, str] = {}
    for label in labels:
        name, is_there, value = label.partition("=")
        if not (name and is_there):
            raise ConfigurationError(f"--label {label!r} has not the form name=value", option="label")
        if name in read:
            raise ConfigurationError(f"--label {name} is given twice; a run has one value of each", option="label")
        read[name] = value
    return read


def parse_dollars(text: str) -> Decimal:
    """Read an amount of money.

    Raises:
        ConfigurationError: If it is no number.
    """
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ConfigurationError(f"{text!r} is no amount of dollars", option="cost") from error


def parse_moment(option: str, text: str, now: float) -> float:
    """Read a moment, and return it in seconds since the epoch: a date, a time of the local clock, or how long ago.

    Raises:
        ConfigurationError: If it is none.
    """
    if ago := re.fullmatch(r"(\d{1,6})([smhd])", text):
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        # Digits alone are a date to Python, and may be the beginning of an id.
        return datetime.fromisoformat(text if "-" in text else "").timestamp()
    except (ValueError, OverflowError) as error:
        said = f"{option} {text!r} is no time; give one such as 2026-10-13, '2026-10-13 09:30', or 2h for two hours ago"
        raise ConfigurationError(said, option=option) from error


def parse_args(text: str) -> dict[str, Any]:
    """Read arguments given whole.

    Raises:
        ValueError: If it is no JSON object.
    """
    try:
        args = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise ValueError(f"{text!r} is no JSON: {error}") from error
    if not isinstance(args, dict):
        raise ValueError(f"{text!r} is no JSON object")  # noqa: TRY004 -- a value of the user's, not a type of ours
    return cast("dict[str, Any]", args)


def parse_object(option: str, text: str | None) -> dict[str, Any] | None:
    """Read a JSON object that an option gives, or names the file of: `@context.json`; None where it is left out.

    Raises:
        ConfigurationError: If it cannot be read, or is none. What was given is not told: it may be secret.
    """
    if text is None:
        return None
    try:
        return parse_args(Path(text[1:]).read_text(encoding="utf-8") if text.startswith("@") else text)
    except OSError as error:
        raise ConfigurationError(f"{option}: cannot read {text[1:]!r}: {error.strerror}", option=option) from error
    except ValueError:
        said = f'{option} is no JSON object; give one, as \'{{"name": "Ana"}}\', or @FILE, the file that holds it'
        raise ConfigurationError(said, option=option) from None


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is no JSON")
