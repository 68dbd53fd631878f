"""Here every test holds on every store."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from tests.world.stores import STORES, Store, open_store

from loopwright import Checkpoints, open_checkpoints
from loopwright.testing import ManualClock


@pytest.fixture(name="store", params=STORES)
def lend_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store, empty."""
    return open_store(request, tmp_path)


@pytest.fixture(name="checkpoints")
def open_all_kinds(store: Store, clock: ManualClock) -> Generator[Checkpoints]:
    """Each kind of store, opened, by the manual clock."""
    with open_checkpoints(store.url, clock=clock) as checkpoints:
        yield checkpoints


@pytest.fixture(name="kept", params=["sqlite", "postgres"])
def lend_kept_store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each kind of store that outlives its process."""
    return open_store(request, tmp_path)
