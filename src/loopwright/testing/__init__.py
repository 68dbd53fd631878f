"""For tests: scripted models and servers, recordings, a manual clock, and what must hold of every transcript."""

from __future__ import annotations

from .anthropic_server import AnthropicServer
from .cassettes import CassetteMismatch, RecordedFailure, record, replay
from .clock import ManualClock
from .openai_server import OpenAIServer
from .scripted import ScriptedModel, ScriptExhausted, call
from .scripted_server import Failure, Reply, Request
from .transcript import check_transcript

__all__ = [
    "AnthropicServer",
    "CassetteMismatch",
    "Failure",
    "ManualClock",
    "OpenAIServer",
    "RecordedFailure",
    "Reply",
    "Request",
    "ScriptExhausted",
    "ScriptedModel",
    "call",
    "check_transcript",
    "record",
    "replay",
]
