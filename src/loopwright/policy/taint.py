"""Taint: while text by strangers is in the context, calls with effects ask unless a rule clears them. Pure functions.

A rule clears a call when it says that what decides about the call stands in the user's own words (see `conditions`),
or when it says outright that the call may run all the same. Taint only tightens: what asks, or is denied, stays so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from loopwright.state import Passage, TaintSource, Verdict, require_nothing

from .rules import Observed, ProposedCall, Rule, Screening, match_rule
from .words import find, normal, scalars, stands_in

BY_TAINT = "taint"
"""Stands where a verdict names its rule."""
AROUND = 70
"""Characters of a passage that are shown before and behind the value."""
MAX_PASSAGES = 4
MAX_SEARCHED = 50
"""So many of the newest texts are searched for a call's values."""
_ESCAPE = re.compile(r'\\[nrt"]')
"""How JSON writes what parts words; left as it is, it would be taken for a part of the word behind it."""
MARKS = ("«", "»")
"""Around the value in a passage."""


def tighten(seen: Screening, rules: Iterable[Rule], call: ProposedCall) -> Screening:
    """Return the screening with taint taken into account: a call that would run asks, unless a rule clears it."""
    if seen.verdict is not Verdict.ALLOW or call.effect == "read" or not call.taint:
        return seen
    for rule in rules:
        if rule.clears_all(call.undescribed) and match_rule(rule, call) is not None:
            return Screening(Verdict.ALLOW, f"cleared by the rule {rule.label}", rule.label)
    why = f"text by strangers is in the context ({_named(call.taint)}), and {_unclear(call)}"
    return Screening(Verdict.ASK, why, BY_TAINT, needs=require_nothing())


def _named(taint: Sequence[TaintSource]) -> str:
    names = [*dict.fromkeys(source["tool"] for source in taint)]
    more = f" and {len(names) - MAX_PASSAGES} more" if len(names) > MAX_PASSAGES else ""
    return f"from {', '.join(names[:MAX_PASSAGES])}{more}"


def _unclear(call: ProposedCall) -> str:
    unsaid = [name for name, value in call.args.items() if not stands_in(value, call.said)]
    if not unsaid:
        return "no rule clears this call"
    stand = "stands" if len(unsaid) == 1 else "stand"
    return f"{', '.join(unsaid)} {stand} not in the user's own words"


def passages(call: ProposedCall) -> list[Passage]:
    """Say what an approver should know of the taint: where the call's values stand in text by strangers.

    Values that the user named are left out. Where no passage holds a value, the sources are named without one.
    """
    found = [*_found(call)][:MAX_PASSAGES]
    if found:
        return found
    return [_bare(source) for source in [*reversed(call.taint)][:MAX_PASSAGES]]


def _bare(source: TaintSource) -> Passage:
    return Passage(tool=source["tool"], origin=source["origin"], step=source["step"], argument="", text="")


def _found(call: ProposedCall) -> Iterator[Passage]:
    texts = {seen.message: seen for seen in call.observed}
    newest = [*reversed(call.taint)][:MAX_SEARCHED]
    for name, value in call.args.items():
        for part in scalars(value):
            if isinstance(part, bool) or stands_in(part, call.said):
                continue
            source = next((each for each in newest if find(part, _text(each, texts))), None)
            if source is not None:
                yield _passage(name, part, source, _text(source, texts))


def _text(source: TaintSource, texts: dict[str, Observed]) -> str:
    """Return what a source said: whole while it is in the transcript, else as much as was kept of it."""
    whole = texts.get(source["message"])
    return _ESCAPE.sub(" ", normal(source["passage"] if whole is None else whole.text))


def _passage(argument: str, value: object, source: TaintSource, text: str) -> Passage:
    begin, end = find(value, text) or (0, 0)
    before, behind = text[max(0, begin - AROUND) : begin], text[end : end + AROUND]
    marked = f"{before}{MARKS[0]}{text[begin:end][: 2 * AROUND]}{MARKS[1]}{behind}"
    shown = f"{'…' if begin > AROUND else ''}{' '.join(marked.split())}{'…' if end + AROUND < len(text) else ''}"
    return Passage(tool=source["tool"], origin=source["origin"], step=source["step"], argument=argument, text=shown)
