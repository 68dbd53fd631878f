"""Models: opening them, pricing them, and reading what they say."""

from __future__ import annotations

from .keys import hide_keys
from .opening import default_model, model_name, open_model
from .prices import Price, Pricer, known_price, to_nano
from .replies import UNKNOWN_OUTPUT, estimate_input, read_reply, tokens_of

__all__ = [
    "UNKNOWN_OUTPUT",
    "Price",
    "Pricer",
    "default_model",
    "estimate_input",
    "hide_keys",
    "known_price",
    "model_name",
    "open_model",
    "read_reply",
    "to_nano",
    "tokens_of",
]
