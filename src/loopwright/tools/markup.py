"""What a reader sees of an HTML page, found in time that grows with its length and with nothing else.

A parser that builds a tree, as Python's own and libxml2 do, takes minutes for a page of two megabytes that was made for
that: it looks for the end of each comment, tag or quote anew. Here whatever has no end reaches to the end of the page.
"""

from __future__ import annotations

import html
import re

_MARKUP = re.compile(
    r"""
    <!--.*?(?:-->|\Z)
    | <[!?][^>]*(?:>|\Z)
    | <(?P<open>[a-z][^\s/>]*)(?:[^>"']++|"[^"]*"|'[^']*')*+(?:>|\Z)
    | </?[a-z][^>]*(?:>|\Z)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_HIDDEN = ("script", "style", "noscript", "template", "svg", "iframe", "title")
_ENDS = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _HIDDEN}
_LONG_NUMBER = re.compile(r"&#x?[0-9a-f]{8,}+;?", re.IGNORECASE)
"""Names no character, and Python refuses to read a number of so many digits."""
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r"\n\s*\n+")
_LONGEST_TITLE = 300


def read_markup(page: str) -> tuple[str, str]:
    """Return a page's title, and its text, a line for each piece of it."""
    title, texts, place = "", list[str](), 0
    while found := _MARKUP.search(page, place):
        texts.append(page[place : found.start()])
        place = found.end()
        name = (found["open"] or "").lower()
        if name in _ENDS and not (name == "svg" and found[0].endswith("/>")):
            end = _ENDS[name].search(page, place)
            hidden, place = (page[place : end.start()], end.start()) if end else (page[place:], len(page))
            if name == "title" and not title:
                title = _unescaped(hidden[: 2 * _LONGEST_TITLE])
    texts.append(page[place:])
    lines = _BLANKS.sub(" ", _unescaped("\n".join(texts)))
    return " ".join(title.split())[:_LONGEST_TITLE], _LINES.sub("\n", lines).strip()


def _unescaped(text: str) -> str:
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))
