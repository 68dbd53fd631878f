"""Terminals for the tests of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.terminal import Terminal
from tests.world.nursery import Nursery


@pytest.fixture(name="terminal")
def open_terminal(nursery: Nursery, tmp_path: Path) -> Terminal:
    """A terminal in an empty folder."""
    return Terminal(nursery, tmp_path)
