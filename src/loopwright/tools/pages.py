"""`read_url`: the text of a page, a part at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Any

from .addresses import Resolve, parse_networks
from .fetching import Fetcher, FetchFailed, Page
from .markup import read_markup
from .tool import Tool, tool

SHOWN = 5000
"""Characters of a page that one call returns."""
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/javascript", "application/yaml")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_HEAD = 2048
"""Bytes in which a page may name its encoding."""
_MARKS = {codecs.BOM_UTF8: "utf-8-sig", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_NO_PAGES = ("punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "utf-7")
"""Codecs that no page is written in; the first one takes hours for what it should not be given."""


def build_read_url(*, private: Iterable[str] = (), resolve: Resolve | None = None) -> Tool:
    """Build the tool that reads pages.

    It fetches public addresses only, each redirect checked anew, at most 2 MB (decompressed) within 15 s, and returns
    5,000 characters of text at a time. What it returns is untrusted.

    Args:
        private: Networks that may be read although they are not public, such as `10.1.0.0/16` for a company's wiki.
        resolve: Looks host names up; left out, the system does.

    Raises:
        ConfigurationError: If a network is none.
    """
    fetcher = Fetcher(parse_networks(private), resolve)

    @tool(effect="read", untrusted=True)
    def read_url(url: str, start: int = 0) -> dict[str, Any]:
        """Read a web page as text, 5,000 characters at a time, with its title and address.

        Use it for pages whose address you have from a search or from the user; not for addresses that you make up.
        Where a page is longer, `next` says with which `start` to go on.
        """
        page = fetcher.fetch(url)
        title, text = text_of(page)
        return _part(page, title, text, max(0, start))

    return read_url


def _part(page: Page, title: str, text: str, start: int) -> dict[str, Any]:
    end = start + SHOWN
    told: dict[str, Any] = {"url": page.url, "title": title, "text": text[start:end], "characters": len(text)}
    if end < len(text):
        told["next"] = end
    if page.is_cut:
        told["note"] = "the page is longer than what is read of any page"
    return told


def text_of(page: Page) -> tuple[str, str]:
    """Return a page's title and what a reader sees of it.

    Raises:
        FetchFailed: If it is no text.
    """
    kind = page.content_type.partition(";")[0].strip().lower()
    if kind in _HTML or (not kind and page.body.lstrip()[:1] == b"<"):
        meta = _META.search(page.body[:_HEAD])
        return read_markup(_decoded(page, meta[1].decode("ascii", errors="replace") if meta else ""))
    if kind and not (kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml"))):
        raise FetchFailed(f"{page.url} is {kind}, which is no text; look for a page that says the same")
    return "", _decoded(page)


def _decoded(page: Page, inside: str = "") -> str:
    """Decode a page: its byte order mark counts, then the server's word, then what the page says `inside`."""
    mark = next((name for begin, name in _MARKS.items() if page.body.startswith(begin)), "")
    named = _CHARSET.search(page.content_type)
    known = (_codec(one) for one in (mark, named[1] if named else "", inside))
    try:
        return page.body.decode(next(filter(None, known), "utf-8"), errors="replace")
    except (LookupError, UnicodeError):  # a codec of Python's that is none for text
        return page.body.decode(errors="replace")


def _codec(name: str) -> str:
    """Return Python's name of an encoding; empty where there is none, or none for pages."""
    try:
        found = codecs.lookup(name).name if name else ""
    except (LookupError, ValueError):
        return ""
    return "" if found in _NO_PAGES else found


read_url = build_read_url()
"""Reads public pages."""
