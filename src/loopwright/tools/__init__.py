"""Tools: their contract, and what their results become."""

from __future__ import annotations

from loopwright.errors import NotDone

from .addresses import AddressRefused, Resolve, check_address
from .asking import ask_human
from .calculator import NotCalculable, calculate, calculator
from .contract import Contract, Effect, EffectKind, OnError, UnfitArguments, Verify, check_contract, is_async
from .deadline import Aborted, Late, OutOfTime, acall_within, await_within, call_aside, call_within
from .fetching import FetchBroken, Fetcher, FetchFailed, Page
from .marks import UNTRUSTED_NOTE, mark_untrusted, unmark
from .options import ToolOptions
from .pages import build_read_url, read_url
from .python import CodeFailed, run_code, run_python
from .reading import build_reader
from .results import (
    ASTRAY,
    EMPTY,
    MAX_KEPT,
    NOTHING,
    OVERWRITE,
    Output,
    safe_str,
    to_output,
    to_plain_data,
    to_text,
    to_whole_data,
)
from .retrying import Retry
from .searching import Hit, Search, SearchFailed, build_web_search, ddgs, searxng, web_search
from .shortening import FULL_TEXT, READ_RESULT, Caps, Shown, full_text, reader_id, shares, show
from .surroundings import Surroundings
from .tool import Tool, annotate, contract_of, tool

__all__ = [
    "ASTRAY",
    "EMPTY",
    "FULL_TEXT",
    "MAX_KEPT",
    "NOTHING",
    "OVERWRITE",
    "READ_RESULT",
    "UNTRUSTED_NOTE",
    "Aborted",
    "AddressRefused",
    "Caps",
    "CodeFailed",
    "Contract",
    "Effect",
    "EffectKind",
    "FetchBroken",
    "FetchFailed",
    "Fetcher",
    "Hit",
    "Late",
    "NotCalculable",
    "NotDone",
    "OnError",
    "OutOfTime",
    "Output",
    "Page",
    "Resolve",
    "Retry",
    "Search",
    "SearchFailed",
    "Shown",
    "Surroundings",
    "Tool",
    "ToolOptions",
    "UnfitArguments",
    "Verify",
    "acall_within",
    "annotate",
    "ask_human",
    "await_within",
    "build_read_url",
    "build_reader",
    "build_web_search",
    "calculate",
    "calculator",
    "call_aside",
    "call_within",
    "check_address",
    "check_contract",
    "contract_of",
    "ddgs",
    "full_text",
    "is_async",
    "mark_untrusted",
    "read_url",
    "reader_id",
    "run_code",
    "run_python",
    "safe_str",
    "searxng",
    "shares",
    "show",
    "to_output",
    "to_plain_data",
    "to_text",
    "to_whole_data",
    "tool",
    "unmark",
    "web_search",
]
