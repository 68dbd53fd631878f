"""The ready-made tool that searches, over an engine on this machine."""

from __future__ import annotations

from collections.abc import Generator

import pytest
from tests.world.hostile import Site, hostile_site

from loopwright.errors import ConfigurationError
from loopwright.tools import Hit, Retry, SearchFailed, build_web_search, searxng


@pytest.fixture(scope="module", name="site")
def serve() -> Generator[Site]:
    """One server for all tests here."""
    with hostile_site() as site:
        yield site


def test_the_hits_of_a_searxng_server(site: Site) -> None:
    """Each hit has title, address and snippet, whatever the engine left out; one without an address is no hit."""
    found = build_web_search(searxng(f"{site.url}/search", private=["127.0.0.1"])).invoke({"query": "opening hours?"})
    assert [
        {"title": "Hours", "url": f"{site.url}/page", "snippet": "9 to 17"},
        {"title": "", "url": "b", "snippet": ""},
    ] == found
    assert "/search?q=opening+hours%3F&format=json" == site.asked[-1]


def test_an_engine_that_does_not_speak_json(site: Site) -> None:
    """The text says what to change, and nobody asks again before that is done."""
    search = searxng(f"{site.url}/no-json", private=["127.0.0.1"])
    with pytest.raises(SearchFailed, match="allow it in its settings") as caught:
        search("x", 5)
    assert [False, True] == [Retry().can_pass(error) for error in (caught.value, SearchFailed("busy"))]


def test_an_engine_of_ones_own() -> None:
    """It is asked for the top hits, and what it returns beyond them, or at too great length, is cut."""
    asked: list[tuple[str, int]] = []

    def search(query: str, top: int) -> list[Hit]:
        asked.append((query, top))
        return [Hit(title=str(number), url="u", snippet="x" * 999) for number in range(9)]

    found = build_web_search(search, top=2).invoke({"query": "q"})
    assert [("q", 2)] == asked
    assert [("0", 400), ("1", 400)] == [(hit["title"], len(hit["snippet"])) for hit in found]


@pytest.mark.parametrize("top", [0, -1, True, 2.5])
def test_top_is_a_whole_number(top: object) -> None:
    """Anything else fails when the tool is built."""

    def search(_query: str, _top: int) -> list[Hit]:
        return []

    with pytest.raises(ConfigurationError, match="top is"):
        build_web_search(search, top=top)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]  # wrong on purpose
