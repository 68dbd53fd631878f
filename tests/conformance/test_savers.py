"""LangGraph's own suite for savers, over every saver that we hand out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from tests.world.postgres import Postgres
from tests.world.stores import STORES

from loopwright import open_checkpoints
from loopwright.checkpoints import Saver

KEYS = {"plain": (), "encrypted": (b"k" * 32,)}


@pytest.fixture(name="new_url", params=STORES)
def make_urls(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Callable[[], str]]:
    """Names an empty store of one kind, again and again."""
    numbers = itertools.count()
    with ExitStack() as stack:

        def new_url() -> str:
            if request.param == "memory":
                return "memory:"
            if request.param == "sqlite":
                return f"sqlite:///{tmp_path / f'{next(numbers)}.db'}"
            server: Postgres = request.getfixturevalue("postgres_server")
            return stack.enter_context(server.database()).url

        yield new_url


@pytest.mark.parametrize("write_behind", [True, False])
@pytest.mark.parametrize("encryption", KEYS)
def test_every_saver_does_what_langgraph_asks_of_one(
    new_url: Callable[[], str],
    encryption: str,
    write_behind: bool,  # noqa: FBT001 -- a column
) -> None:
    """All base capabilities pass, fence and encryption included; none is left out."""

    @checkpointer_test(name="loopwright")
    async def savers() -> AsyncGenerator[Saver]:
        with open_checkpoints(new_url(), write_behind=write_behind, encryption=KEYS[encryption]) as checkpoints:
            yield checkpoints.saver

    report = asyncio.run(validate(savers))
    assert report.passed_all_base(), report.to_dict()
    assert report.conformance_level() != "NONE"
