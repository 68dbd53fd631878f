"""For tests: a scripted model, a scripted server, a manual clock, and what must hold of every transcript."""

from __future__ import annotations

from .clock import ManualClock
from .openai_server import Failure, OpenAIServer, Reply, Request
from .scripted import ScriptedModel, ScriptExhausted, call
from .transcript import check_transcript

__all__ = [
    "Failure",
    "ManualClock",
    "OpenAIServer",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ScriptedModel",
    "call",
    "check_transcript",
]
