"""What a model call costs, exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Any

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

    def __post_init__(self) -> None:
        """Refuse what would fail, or pay back, while a run is on.

        Raises:
            ConfigurationError: If a price is no `Decimal`, or is negative.
        """
        _check_price("input", self.input)
        _check_price("output", self.output)
        _check_price("cached", self.input if self.cached is None else self.cached)

    def __call__(self, tokens: Tokens) -> int:
        """Price one call. The cached part lies inside the input count, so it is taken out first and paid once."""
        cached = self.input if self.cached is None else self.cached
        fresh = tokens.input - tokens.cached
        dollars = fresh * self.input + tokens.cached * cached + tokens.output * self.output
        return to_nano(dollars / MILLION)


def _check_price(name: str, price: object) -> None:
    if not (isinstance(price, Decimal) and price.is_finite() and price >= 0):
        raise ConfigurationError(f"Price: {name} is {price!r}; give a Decimal from 0 on, in US dollars")


def to_nano(dollars: Decimal) -> int:
    """Return whole nano-dollars; rounded up, so that many small calls never cost nothing."""
    return int((dollars * NANO).to_integral_value(rounding=ROUND_CEILING))


def known_price(model: BaseChatModel) -> Pricer | None:
    """Look a model's price up in `genai-prices`; None when the model is not listed."""
    params: dict[str, Any] = dict(model._get_ls_params())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # LangChain's one way to ask what it is
    name, provider = params.get("ls_model_name"), params.get("ls_provider")
    if not name or not provider:
        return None

    def price(tokens: Tokens) -> int:
        from genai_prices import Usage, calc_price  # imported late: it loads a large table

        usage = Usage(input_tokens=tokens.input, cache_read_tokens=tokens.cached, output_tokens=tokens.output)
        return to_nano(calc_price(usage, model_ref=name, provider_id=provider).total_price)

    try:
        price(Tokens(1, 1))
    except LookupError:
        return None
    return price
