"""`web_search`: the first hits of a search engine, whichever one a service has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from loopwright.errors import ConfigurationError

from .addresses import parse_networks
from .fetching import Fetcher
from .tool import Tool, tool

TOP = 5
"""How many hits one call returns."""
_SNIPPET = 400


class Hit(TypedDict):
    """One page that was found."""

    title: str
    url: str
    snippet: str


Search = Callable[[str, int], Sequence[Hit]]
"""A search engine: takes the query and how many hits are wanted, and raises `SearchFailed` if it cannot search."""


class SearchFailed(OSError):
    """The search engine could not be asked; the text says why."""


class SearchRefused(SearchFailed, PermissionError):
    """The search engine will not answer the next time either: asking again does not help."""


def build_web_search(search: Search | None = None, *, top: int = TOP) -> Tool:
    """Build the tool that searches the web. What it returns is untrusted.

    Args:
        search: The engine, `searxng(url)` for one; left out, ddgs, which asks several public engines and needs no key.
        top: How many hits a call returns.

    Raises:
        ConfigurationError: If `top` is no whole number above 0.
    """
    if type(top) is not int or top < 1:
        raise ConfigurationError(f"web_search: top is {top!r}; give a whole number, at least 1", option="top")
    engine = search or ddgs

    @tool(effect="read", untrusted=True)
    def web_search(query: str) -> list[Hit]:
        """Search the web; returns the first hits, each with title, address and a few words of the page.

        Use it to find pages, which read_url then reads; not for arithmetic, and not for what you were told already.
        """
        hits = engine(query, top)
        return [Hit(title=hit["title"], url=hit["url"], snippet=hit["snippet"][:_SNIPPET]) for hit in hits[:top]]

    return web_search


def ddgs(query: str, top: int) -> list[Hit]:
    """Ask public search engines, through the package ddgs.

    Raises:
        SearchFailed: If none of them answers.
        ConfigurationError: If ddgs, of the extra `tools`, is not installed.
    """
    try:
        from ddgs import DDGS  # pyright: ignore[reportUnknownVariableType]  # its class is made at run time
        from ddgs.exceptions import DDGSException
    except ImportError as error:
        text = "web_search needs the package ddgs, or a search engine of yours; install it with: "
        raise ConfigurationError(text + "pip install 'loopwright[tools]'", extra="tools") from error
    try:
        found = DDGS(timeout=10).text(query, max_results=top)
    except DDGSException as error:
        if "No results" in str(error):
            return []
        raise SearchFailed(f"the search engines did not answer: {error}") from error
    return [Hit(title=str(one["title"]), url=str(one["href"]), snippet=str(one["body"])) for one in found]


class _Answer(TypedDict):
    results: list[dict[str, Any]]


_ANSWER = TypeAdapter(_Answer)


def searxng(url: str, *, private: Iterable[str] = ()) -> Search:
    """Return the search of a SearXNG server, asked for its JSON format.

    Args:
        url: Of the server's search page, `https://search.example.com/search`.
        private: The networks it may stand in although they are not public.
    """
    fetcher = Fetcher(parse_networks(private))

    def search(query: str, top: int) -> list[Hit]:
        page = fetcher.fetch(f"{url}?{urlencode({'q': query, 'format': 'json'})}")
        try:
            found = _ANSWER.validate_python(json.loads(page.body))["results"]
        except (ValueError, ValidationError) as error:
            raise SearchRefused(f"{url} does not answer in SearXNG's JSON format; allow it in its settings") from error
        return [_hit(one) for one in found if one.get("url")][:top]

    return search


def _hit(found: Mapping[str, Any]) -> Hit:
    texts = {name: cast("object", found.get(name)) for name in ("title", "url", "content")}
    title, url, snippet = (text if isinstance(text, str) else "" for text in texts.values())
    return Hit(title=title, url=url, snippet=snippet)


web_search = build_web_search()
"""Searches with ddgs."""
