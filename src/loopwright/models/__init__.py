"""Models: opening them, pricing them, and reading what they say."""

from __future__ import annotations

from .caps import UNKNOWN_OUTPUT, cap_options, most_output
from .forms import AnswerForm, Native, UnfitAnswer, build_form, check_form
from .keys import hide_keys
from .opening import default_model, model_name, open_model
from .prices import Price, Pricer, known_price, to_nano
from .replies import ids_of, read_reply
from .usage import estimate_input, estimate_tools, tokens_of

__all__ = [
    "UNKNOWN_OUTPUT",
    "AnswerForm",
    "Native",
    "Price",
    "Pricer",
    "UnfitAnswer",
    "build_form",
    "cap_options",
    "check_form",
    "default_model",
    "estimate_input",
    "estimate_tools",
    "hide_keys",
    "ids_of",
    "known_price",
    "model_name",
    "most_output",
    "open_model",
    "read_reply",
    "to_nano",
    "tokens_of",
]
