"""The models of an agent: opened, bound to its tools, and priced, before any step runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool

from loopwright.errors import ConfigurationError
from loopwright.models import Price, Pricer, known_price, model_name, open_model
from loopwright.nodes import Candidate
from loopwright.state import Budget, Limits, is_span
from loopwright.tools import Retry

ModelOption = str | BaseChatModel | Sequence[str | BaseChatModel]
"""What names an agent's model, or several: the first is asked, the others where it cannot reply."""


def build_candidates(  # noqa: PLR0917 -- what each model is bound to and measured by
    given: object,
    tools: Sequence[BaseTool],
    reader: BaseTool,
    price: object,
    limits: Limits,
    budgets: Sequence[Budget],
) -> tuple[Candidate, ...]:
    """Open the models, and bind each to the tools.

    Raises:
        ConfigurationError: If one cannot be opened, or its price is not known although the cost is limited.
    """
    models = [open_model(one) for one in _listed(given)]
    prices = _prices(price, [model_name(model) for model in models])
    return tuple(_candidate(model, tools, reader, prices, limits, budgets) for model in models)


def _candidate(  # noqa: PLR0917 -- as above
    model: BaseChatModel,
    tools: Sequence[BaseTool],
    reader: BaseTool,
    prices: Mapping[str, Price],
    limits: Limits,
    budgets: Sequence[Budget],
) -> Candidate:
    name = model_name(model)
    priced = prices.get(name) or known_price(model)
    check_priced(name, priced, limits, budgets)
    return Candidate(
        model=model,
        model_name=name,
        bound=_bound(model, tools),
        reading=_bound(model, [*tools, reader]),
        price=priced,
    )


def _bound(model: BaseChatModel, tools: Sequence[BaseTool]) -> Runnable[LanguageModelInput, BaseMessage]:
    return model.bind_tools([*tools]) if tools else model


def _listed(given: object) -> list[str | BaseChatModel]:
    is_one = not isinstance(given, Iterable) or isinstance(given, str | bytes | Mapping | BaseChatModel)
    listed: list[object] = [given] if is_one else [*cast("Iterable[object]", given)]
    wrong = [one for one in listed if not isinstance(one, str | BaseChatModel)]
    if wrong or not listed:
        text = f"model is {given!r}; give a name such as 'openai:gpt-5-mini', a LangChain chat model, or a list of them"
        raise ConfigurationError(text, option="model")
    return cast("list[str | BaseChatModel]", listed)


def _prices(given: object, names: Sequence[str]) -> Mapping[str, Price]:
    """Return the prices that were agreed, by model."""
    if given is None:
        return {}
    if isinstance(given, Price) and len(names) == 1:
        return {names[0]: given}
    if isinstance(given, Price):
        text = f"price is one for {len(names)} models; give a mapping, such as price={{{names[0]!r}: Price(…)}}"
        raise ConfigurationError(text, option="price")
    priced: dict[object, object] = {**given} if isinstance(given, Mapping) else {"": given}
    for name, price in priced.items():
        if not isinstance(price, Price):
            text = f"price is {given!r}; give Price(input, output), Decimals in US dollars for a million tokens"
            raise ConfigurationError(text, option="price")
        if name not in names:
            text = f"price names {name!r}, which is no model of this agent; its models are: {', '.join(names)}"
            raise ConfigurationError(text, option="price")
    return cast("Mapping[str, Price]", priced)


def check_priced(name: str, price: Pricer | None, limits: Limits, budgets: Sequence[Budget]) -> None:
    """Refuse a limit on cost that could not be kept; a price that is not known is fine as long as nothing needs it.

    Raises:
        ConfigurationError: Naming the model.
    """
    bounds = [limits.max_cost, limits.thread and limits.thread.max_cost, *(budget.max_cost for budget in budgets)]
    if price is None and any(bound is not None for bound in bounds):
        text = f"max_cost is set, but the price of {name!r} is not known; give "
        text += "price=Price(input, output), or --price INPUT,OUTPUT on the command line"
        raise ConfigurationError(text, model=name, option="max_cost")


def check_retry(given: object) -> Retry:
    """Return it.

    Raises:
        ConfigurationError: If it is none.
    """
    if not isinstance(given, Retry):
        raise ConfigurationError(f"retry is {given!r}; give Retry(tries=3), for one", option="retry")
    return given


def check_timeout(given: object) -> float | None:
    """Return the seconds of an attempt.

    Raises:
        ConfigurationError: If they are none.
    """
    if given is not None and not is_span(given):
        raise ConfigurationError(f"model_timeout is {given!r}; give seconds above 0", option="model_timeout")
    return cast("float | None", given)
