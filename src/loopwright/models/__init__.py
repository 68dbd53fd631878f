"""Models: opening them, pricing them, and reading what they say."""

from __future__ import annotations

from .caps import UNKNOWN_OUTPUT, UNKNOWN_WINDOW, cap_options, context_window, innermost, most_output
from .failures import Cure, asked_pause, cure_of, is_too_long, may_have_cost, usage_of_error
from .foreign import spoken_to
from .forms import AnswerForm, Native, UnfitAnswer, build_form, check_form
from .keys import hide_keys
from .opening import default_model, model_name, open_model
from .prices import Price, Pricer, dearest, is_kept_an_hour, known_price, to_nano
from .replies import ids_of, read_reply, why_broken
from .strict import strict_arguments
from .usage import count_text, estimate_input, estimate_tools, reported_input, size_of, tokens_of

__all__ = [
    "UNKNOWN_OUTPUT",
    "UNKNOWN_WINDOW",
    "AnswerForm",
    "Cure",
    "Native",
    "Price",
    "Pricer",
    "UnfitAnswer",
    "asked_pause",
    "build_form",
    "cap_options",
    "check_form",
    "context_window",
    "count_text",
    "cure_of",
    "dearest",
    "default_model",
    "estimate_input",
    "estimate_tools",
    "hide_keys",
    "ids_of",
    "innermost",
    "is_kept_an_hour",
    "is_too_long",
    "known_price",
    "may_have_cost",
    "model_name",
    "most_output",
    "open_model",
    "read_reply",
    "reported_input",
    "size_of",
    "spoken_to",
    "strict_arguments",
    "to_nano",
    "tokens_of",
    "usage_of_error",
    "why_broken",
]
