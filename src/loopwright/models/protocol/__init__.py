"""The JSON decision protocol: for models that call no tools by themselves."""

from __future__ import annotations

from .model import Constraint, JsonProtocol, speak_json
from .reading import Answer, ToolUse, Unreadable, read_decision, read_object

__all__ = [
    "Answer",
    "Constraint",
    "JsonProtocol",
    "ToolUse",
    "Unreadable",
    "read_decision",
    "read_object",
    "speak_json",
]
