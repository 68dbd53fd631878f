"""For tests: a scripted model, and a scripted server that speaks OpenAI's protocol."""

from __future__ import annotations

from .openai_server import Failure, OpenAIServer, Reply, Request
from .scripted import ScriptedModel, ScriptExhausted, call

__all__ = ["Failure", "OpenAIServer", "Reply", "Request", "ScriptExhausted", "ScriptedModel", "call"]
