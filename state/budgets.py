"""Budgets: limits on what is spent that many runs share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Literal, cast

from loopwright.errors import ConfigurationError

from .plain import digest, storable
from .usage import NANO

MAX_LABELS = 16
MAX_LABEL = 200
"""Characters of a label's name, and of its value."""

_WINDOWS = {"day": "%Y-%m-%d", "month": "%Y-%m", None: ""}


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a budget that a run draws on now: one label's, in one window."""

    id: str
    name: str
    label: str
    """The label's value; empty for a budget that all runs share."""
    since: str
    """The window's day or month, UTC; empty for ever."""
    max_tokens: int | None
    max_cost_nano: int | None

    def __str__(self) -> str:
        """Name it, as a stop says it."""
        parts = ", ".join(part for part in (self.label, self.since) if part)
        return f"budget {self.name!r}" + (f" ({parts})" if parts else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """What many runs may spend together, in one ledger: of a tenant, a day, or all in all.

    The worst case of each call is reserved before it is made, atomically, so that any number of runs at once stay
    within it. A run that finds it used up ends as `stopped`, and says which budget it was.

    Raises:
        ConfigurationError: If it bounds nothing, or a part of it has the wrong form.
    """

    name: str
    """Agents that name the same budget over one ledger share it."""
    by: str = ""
    """The label that keeps its runs apart, such as `tenant`: each value has the whole amount. Left out: one for all."""
    max_cost: Decimal | None = None
    """US dollars."""
    max_tokens: int | None = None
    per: Literal["day", "month"] | None = None
    """When it starts anew, in UTC; None: never."""

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        where = f"Budget {self.name!r}"
        for option in ("name", "by"):
            given: object = getattr(self, option)
            if not isinstance(given, str) or (option == "name" and not given.strip()) or given != storable(given):
                raise ConfigurationError(f"{where}: {option} is {given!r}; give a text", option=option)
        if self.max_cost is None and self.max_tokens is None:
            raise ConfigurationError(f"{where} bounds nothing; give max_cost or max_tokens", option="max_cost")
        if self.max_cost is not None and not is_amount(self.max_cost):
            text = f"{where}: max_cost is {self.max_cost!r}; give a Decimal from 0 on, in US dollars"
            raise ConfigurationError(text, option="max_cost")
        if self.max_tokens is not None and not is_count(self.max_tokens):
            text = f"{where}: max_tokens is {self.max_tokens!r}; give a whole number from 0 on"
            raise ConfigurationError(text, option="max_tokens")
        if self.per not in _WINDOWS:
            raise ConfigurationError(f"{where}: per is {self.per!r}; give 'day', 'month' or None", option="per")

    def share(self, labels: Mapping[str, str], now: float) -> Share:
        """Return what a run draws on.

        Args:
            labels: The run's.
            now: Seconds since the epoch.

        Raises:
            ConfigurationError: If the run lacks the label.
        """
        check_label(self, labels)
        label = labels[self.by] if self.by else ""
        since = datetime.fromtimestamp(now, UTC).strftime(_WINDOWS[self.per])
        nano = None if self.max_cost is None else int(self.max_cost * NANO)
        return Share(digest("budget", self.name, label, since), self.name, label, since, self.max_tokens, nano)


def is_amount(value: object) -> bool:
    """Tell whether a value is an amount of money: a finite `Decimal` from 0 on."""
    return isinstance(value, Decimal) and value.is_finite() and value >= 0


def is_count(value: object) -> bool:
    """Tell whether a value is a whole number from 0 on; a bool is none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def check_label(budget: Budget, labels: Mapping[str, str]) -> None:
    """Refuse a run that could not be charged.

    Raises:
        ConfigurationError: Naming the label, and how to give it.
    """
    if budget.by and budget.by not in labels:
        text = f"budget {budget.name!r} is kept by the label {budget.by!r}, which this run does not have; "
        text += f"start it with labels={{{budget.by!r}: …}} (plain invoke: configurable['labels'])"
        raise ConfigurationError(text, budget=budget.name, label=budget.by)


def checked_labels(given: object) -> dict[str, str]:
    """Return labels as they are stored.

    Raises:
        ConfigurationError: If they are no mapping of short texts.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ConfigurationError(f"labels is {given!r}; give a mapping of texts, such as {{'tenant': 'acme'}}")
    labels = cast("Mapping[object, object]", given)
    if len(labels) > MAX_LABELS:
        raise ConfigurationError(f"{len(labels)} labels are too many; a run has at most {MAX_LABELS}")
    checked: dict[str, str] = {}
    for name, value in labels.items():
        for part in (name, value):
            if not isinstance(part, str) or not part or len(part) > MAX_LABEL or part != storable(part):
                text = f"label {name!r} is {value!r}; name and value are texts of 1 to {MAX_LABEL} characters"
                raise ConfigurationError(text, label=str(name))
        checked[str(name)] = str(value)
    return checked
