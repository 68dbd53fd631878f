"""Here one store is enough: that all behave alike is shown where they are at home."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from loopwright import Checkpoints, open_checkpoints
from loopwright.testing import ManualClock


@pytest.fixture(name="checkpoints")
def open_memory(clock: ManualClock) -> Generator[Checkpoints]:
    """A store in memory, by the manual clock."""
    with open_checkpoints("memory:", clock=clock) as checkpoints:
        yield checkpoints
