"""For tests: a scripted model."""

from __future__ import annotations

from .scripted import ScriptedModel, ScriptExhausted, call

__all__ = ["ScriptExhausted", "ScriptedModel", "call"]
