"""The research agent, over a site and a search engine on this machine."""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from tests.cli.terminal import Terminal
from tests.world.hostile import Site, hostile_site
from tests.world.nursery import Nursery

from loopwright import ProposedAnswer, SyncRuns, open_checkpoints
from loopwright.graphs.research import build_research_agent, names_only_what_was_read
from loopwright.testing import ScriptedModel, call, check_transcript
from loopwright.tools import Hit, searxng

LOOPBACK = ["127.0.0.1"]
QUESTION = "How many hours a week is the shop open?"


@pytest.fixture(scope="module", name="site")
def serve() -> Generator[Site]:
    """One server for all tests here."""
    with hostile_site() as site:
        yield site


def test_it_searches_reads_calculates_and_cites(site: Site) -> None:
    """What it found and read comes to the model marked as untrusted, and nothing has to be asked."""
    address = f"{site.url}/page"
    model = ScriptedModel(
        [
            call("web_search", query="opening hours"),
            call("read_url", url=address),
            call("calculator", expression="5 * (17 - 9)"),
            f"40 hours.\nSources: {address}",
        ]
    )
    search = searxng(f"{site.url}/search", private=LOOPBACK)
    agent = build_research_agent(model, search=search, private=LOOPBACK)
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run(QUESTION, thread_id="t")
    model.assert_done()
    assert ("answered", f"40 hours.\nSources: {address}") == (result.stop_reason, result.answer)
    found, read, sum_ = [message.text for message in result.messages if message.type == "tool"]
    assert address in found
    assert "Mon to Fri, 9 to 17" in read
    assert "40" == sum_
    assert all("untrusted" in text for text in (found, read))
    check_transcript(result.messages)


def test_a_page_that_cannot_be_read_is_an_observation() -> None:
    """The agent reads why, and goes on."""

    def search(_query: str, _top: int) -> Sequence[Hit]:
        return []

    model = ScriptedModel([call("read_url", url="file:///etc/passwd"), "That is no page."])
    agent = build_research_agent(model, search=search, private=[])
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run(QUESTION, thread_id="t")
    assert ["error"] == [entry["outcome"] for entry in result.trail]
    assert "is no address of a page" in result.messages[2].text


def test_as_a_user_runs_it(nursery: Nursery, tmp_path: Path) -> None:
    """`loopwright run` with a model behind an OpenAI-compatible address, a search engine and a page: all real HTTP.

    What it prints is what the README's picture shows.
    """
    spec = importlib.util.spec_from_file_location("draw", Path(__file__).parents[2] / "docs" / "images" / "draw.py")
    assert spec is not None
    assert spec.loader is not None
    drawing: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(drawing)
    with drawing.world() as settings:
        ended = Terminal(nursery, tmp_path).run(*drawing.COMMAND, **settings)
    assert 0 == ended.code, ended.err
    assert drawing.comparable(ended.lines) == drawing.lines_in(drawing.PICTURE.read_text(encoding="utf-8"))


def answer_about(text: str, *read: tuple[str, str]) -> ProposedAnswer:
    """Propose an answer, after pages were read with these outcomes."""
    trail: Any = [
        {"run": "r", "tool": "read_url", "args": {"url": url}, "outcome": outcome, "observation": ""}
        for url, outcome in read
    ]
    return ProposedAnswer(text, None, QUESTION, cast("Any", {"id": "r"}), cast("Any", {}), trail, [])


PAGE = ("https://shop.example/hours?day=mon", "done")


@pytest.mark.parametrize(
    ("text", "objection"),
    [
        ("Nothing that I found says it.\nSources: none", ""),
        ("Nichts davon.\n\n**Sources**: *none*", ""),
        ("40 hours.\n## Sources:\n1. https://shop.example/hours?day=mon", ""),
        ("40 hours.\nSources: https://shop.example/hours?day=mon", ""),
        ("40 hours.\nSources:\n- <HTTPS://Shop.Example/hours/?day=mon#top>.", ""),
        ("40 hours.\nSources: [hours](https://shop.example/hours?day=mon), my own sums", ""),
        ("40 hours.", "does not say what it stands on"),
        ("40 hours.\nSources:", "does not say what it stands on"),
        ("40 hours.\nSources: the shop's own page", "does not say what it stands on"),
        ("40 hours.\nSources: nonetheless shop.example", "does not say what it stands on"),
        ("40 Stunden.\nQuellen: https://shop.example/hours?day=mon", "does not say what it stands on"),
        ("Data sources: none of them says it.", "does not say what it stands on"),
        ("See https://other.example for more.\nSources: https://shop.example/hours?day=mon", "https://other.example"),
        ("40.\nSources: https://x.example/a\nSources: https://shop.example/hours?day=mon", "https://x.example/a"),
        ("40.\n**Sources**: https://x.example/b", "https://x.example/b"),
        ("40.\nQuellen: https://x.example/c\nSources: none", "https://x.example/c"),
        ("40 hours.\nSources: https://shop.example/hours?day=tue", "https://shop.example/hours?day=tue"),
        ("40 hours.\nSources: https://shop.example/hours?day=mon, https://x.example/a", "https://x.example/a"),
        ("40 hours.\nSources: https://gone.example/", "https://gone.example/"),
    ],
)
def test_which_addresses_may_be_named(text: str, objection: str) -> None:
    """Pages that were read on the thread, by whatever spelling; a page that could not be read was not."""
    said = names_only_what_was_read(answer_about(text, PAGE, ("https://gone.example/", "error")))
    assert bool(objection) == bool(said)
    assert objection in (said or "")


def test_where_nothing_was_read_nothing_need_be_named() -> None:
    """Neither for what could not be read, nor for a run that only thanks for what an earlier one has read."""
    assert names_only_what_was_read(answer_about("I cannot tell.", ("https://gone.example/", "error"))) is None
    thanks = answer_about("You are welcome.", PAGE)
    assert names_only_what_was_read(dataclasses.replace(thanks, run=cast("Any", {"id": "later"}))) is None


def test_a_page_that_led_to_another_was_read_under_both_addresses(site: Site) -> None:
    """The model sees the second one in the result, and may name either."""
    first, second = f"{site.url}/redirect?to=/page", f"{site.url}/page"
    for named in (first, second):
        model = ScriptedModel([call("read_url", url=first), f"40 hours.\nSources: {named}"])
        agent = build_research_agent(model, search=searxng(f"{site.url}/search", private=LOOPBACK), private=LOOPBACK)
        with open_checkpoints("memory:") as checkpoints:
            result = SyncRuns(agent, checkpoints).run(QUESTION, thread_id="t")
        assert ("answered", ()) == (result.stop_reason, result.objections)


def test_a_source_that_was_not_read_goes_back(site: Site) -> None:
    """The model reads which one, reads the page, and may name it then."""
    address = f"{site.url}/page"
    answer = f"40 hours.\nSources: {address}"
    model = ScriptedModel([answer, call("read_url", url=address), answer])
    agent = build_research_agent(model, search=searxng(f"{site.url}/search", private=LOOPBACK), private=LOOPBACK)
    with open_checkpoints("memory:") as checkpoints:
        result = SyncRuns(agent, checkpoints).run(QUESTION, thread_id="t")
    model.assert_done()
    assert ("answered", answer) == (result.stop_reason, result.answer)
    assert ["names_only_what_was_read"] == [objection["by"] for objection in result.objections]
    assert f"was not read with read_url: {address};" in result.objections[0]["text"]
