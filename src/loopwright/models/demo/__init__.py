"""A rule-based stand-in for a language model, so that everything can be tried offline and without a key."""

from __future__ import annotations

from .model import BANNER, DemoModel

__all__ = ["BANNER", "DemoModel"]
