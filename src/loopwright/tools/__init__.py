"""Tools: their contract, and what their results become."""

from __future__ import annotations

from loopwright.errors import NotDone

from .calculator import NotCalculable, calculate, calculator
from .contract import Contract, Effect, EffectKind, UnfitArguments, Verify, check_contract
from .deadline import OutOfTime, acall_within, await_within, call_within
from .marks import UNTRUSTED_NOTE, mark_untrusted, unmark
from .options import ToolOptions
from .reading import build_reader
from .results import EMPTY, MAX_KEPT, NOTHING, Output, safe_str, to_output, to_text
from .shortening import FULL_TEXT, READ_RESULT, Caps, Shown, full_text, reader_id, shares, show
from .surroundings import Surroundings
from .tool import Tool, annotate, contract_of, tool

__all__ = [
    "EMPTY",
    "FULL_TEXT",
    "MAX_KEPT",
    "NOTHING",
    "READ_RESULT",
    "UNTRUSTED_NOTE",
    "Caps",
    "Contract",
    "Effect",
    "EffectKind",
    "NotCalculable",
    "NotDone",
    "OutOfTime",
    "Output",
    "Shown",
    "Surroundings",
    "Tool",
    "ToolOptions",
    "UnfitArguments",
    "Verify",
    "acall_within",
    "annotate",
    "await_within",
    "build_reader",
    "calculate",
    "calculator",
    "call_within",
    "check_contract",
    "contract_of",
    "full_text",
    "mark_untrusted",
    "reader_id",
    "safe_str",
    "shares",
    "show",
    "to_output",
    "to_text",
    "tool",
    "unmark",
]
