"""Here one store is enough: that all behave alike is shown where they are at home."""

from __future__ import annotations

from tests.world.stores import open_memory

__all__ = ["open_memory"]
