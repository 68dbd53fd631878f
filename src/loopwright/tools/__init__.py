"""Tools: their contract, and what their results become."""

from __future__ import annotations

from loopwright.errors import NotDone

from .calculator import NotCalculable, calculate, calculator
from .contract import Contract, Effect, EffectKind, UnfitArguments, Verify, check_contract
from .deadline import OutOfTime, acall_within, await_within, call_within
from .options import ToolOptions
from .results import EMPTY, NOTHING, mark_untrusted, safe_str, to_text
from .tool import Tool, annotate, contract_of, tool

__all__ = [
    "EMPTY",
    "NOTHING",
    "Contract",
    "Effect",
    "EffectKind",
    "NotCalculable",
    "NotDone",
    "OutOfTime",
    "Tool",
    "ToolOptions",
    "UnfitArguments",
    "Verify",
    "acall_within",
    "annotate",
    "await_within",
    "calculate",
    "calculator",
    "call_within",
    "check_contract",
    "contract_of",
    "mark_untrusted",
    "safe_str",
    "to_text",
    "tool",
]
