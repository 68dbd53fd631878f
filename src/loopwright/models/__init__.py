"""Models: opening them, pricing them, and reading what they say."""

from __future__ import annotations

from .keys import hide_keys
from .opening import default_model, model_name, open_model
from .prices import Price, Pricer, known_price, to_nano
from .replies import ids_of, read_reply
from .usage import UNKNOWN_OUTPUT, estimate_input, tokens_of

__all__ = [
    "UNKNOWN_OUTPUT",
    "Price",
    "Pricer",
    "default_model",
    "estimate_input",
    "hide_keys",
    "ids_of",
    "known_price",
    "model_name",
    "open_model",
    "read_reply",
    "to_nano",
    "tokens_of",
]
