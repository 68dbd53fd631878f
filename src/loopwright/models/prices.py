"""What a model call costs, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from typing import Any, cast

from langchain_core.language_models import BaseChatModel

from loopwright.errors import ConfigurationError
from loopwright.state import NANO, Tokens

MILLION = 1_000_000

Pricer = Callable[[Tokens], int]
"""Returns the cost of one model call in nano-dollars, rounded up."""


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars for a million tokens."""

    input: Decimal
    output: Decimal
    cached: Decimal | None = None
    """For input from the provider's cache; None: as all input."""
    written: Decimal | None = None
    """For input that the provider takes into its cache; None: as all input."""
    written_hour: Decimal | None = None
    """For what it takes in for an hour; None: as all that it takes in."""

    def __post_init__(self) -> None:
        """Refuse what would fail, or pay back, while a run is on.

        Raises:
            ConfigurationError: If a price is no `Decimal`, or is negative.
        """
        _check_price("input", self.input)
        _check_price("output", self.output)
        for name in ("cached", "written", "written_hour"):
            given = getattr(self, name)
            _check_price(name, self.input if given is None else given)

    def __call__(self, tokens: Tokens) -> int:
        """Price one call. What was cached or written lies inside the input count: it is taken out, and paid once."""
        cached = self.input if self.cached is None else self.cached
        written = self.input if self.written is None else self.written
        hour = written if self.written_hour is None else self.written_hour
        fresh = tokens.input - tokens.cached - tokens.written
        dollars = fresh * self.input + tokens.cached * cached + tokens.output * self.output
        dollars += (tokens.written - tokens.written_hour) * written + tokens.written_hour * hour
        return to_nano(dollars / MILLION)


def _check_price(name: str, price: object) -> None:
    if not (isinstance(price, Decimal) and price.is_finite() and price >= 0):
        raise ConfigurationError(f"Price: {name} is {price!r}; give a Decimal from 0 on, in US dollars")


def to_nano(dollars: Decimal) -> int:
    """Return whole nano-dollars; rounded up, so that many small calls never cost nothing."""
    return int((dollars * NANO).to_integral_value(rounding=ROUND_CEILING))


def dearest(price: Pricer, *, for_an_hour: bool) -> Pricer:
    """Return what calls cost whose whole input is as dear as it can be, by that price.

    Args:
        price: The model's.
        for_an_hour: Whether the provider may be asked to keep input for an hour.
    """

    def plain(tokens: Tokens) -> Tokens:
        return tokens

    def written(tokens: Tokens) -> Tokens:
        return replace(tokens, written=tokens.input)

    def written_for_an_hour(tokens: Tokens) -> Tokens:
        return replace(tokens, written=tokens.input, written_hour=tokens.input)

    kinds = [plain, written, *([written_for_an_hour] if for_an_hour else [])]
    worst = max(kinds, key=lambda kind: price(kind(Tokens(MILLION, 0))))
    return lambda tokens: price(worst(tokens))


def is_kept_an_hour(sent: object) -> bool:
    """Tell whether any part of what is sent asks the provider to keep it for an hour (`"ttl": "1h"`)."""
    if isinstance(sent, Mapping):
        parts = cast("Mapping[object, object]", sent)
        return parts.get("ttl") == "1h" or any(map(is_kept_an_hour, parts.values()))
    return isinstance(sent, list | tuple) and any(map(is_kept_an_hour, cast("Sequence[object]", sent)))


def known_price(model: BaseChatModel) -> Pricer | None:
    """Look a model's price up in `genai-prices`; None when the model is not listed."""
    params: dict[str, Any] = dict(model._get_ls_params())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # LangChain's one way to ask what it is
    name, provider = params.get("ls_model_name"), params.get("ls_provider")
    if not name or not provider:
        return None

    def price(tokens: Tokens) -> int:
        from genai_prices import Usage, calc_price  # imported late: it loads a large table

        usage = Usage(
            input_tokens=tokens.input,
            cache_read_tokens=tokens.cached,
            cache_write_tokens=tokens.written,
            cache_write_1h_tokens=tokens.written_hour,
            output_tokens=tokens.output,
        )
        return to_nano(calc_price(usage, model_ref=name, provider_id=provider).total_price)

    try:
        price(Tokens(1, 1))
    except LookupError:
        return None
    return price
