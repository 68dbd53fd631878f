"""`read_url`: the text of a page, a part at a time."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable
from typing import Any

from loopwright.errors import ConfigurationError

from .addresses import Resolve, parse_networks
from .fetching import Fetcher, FetchFailed, Page
from .tool import Tool, tool

SHOWN = 5000
"""Characters of a page that one call returns."""
_HTML = ("text/html", "application/xhtml+xml")
_TEXT = ("application/json", "application/xml", "application/javascript", "application/yaml")
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]+)", re.IGNORECASE)
_BLANKS = re.compile(r"[ \t\r\f\v\xa0]+")
_LINES = re.compile(r"\n\s*\n+")
_HIDDEN = ("script", "style", "noscript", "template", "svg", "iframe", "head")


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
        return _html(page)
    if kind and not (kind.startswith("text/") or kind in _TEXT or kind.endswith(("+json", "+xml"))):
        raise FetchFailed(f"{page.url} is {kind}, which is no text; look for a page that says the same")
    return "", _plain(page)


def _charset(page: Page) -> str | None:
    """Return the encoding that the server names, if there is one of that name."""
    named = _CHARSET.search(page.content_type)
    try:
        return codecs.lookup(named[1]).name if named else None
    except LookupError:
        return None


def _plain(page: Page) -> str:
    try:
        return page.body.decode(_charset(page) or "utf-8", errors="replace")
    except (LookupError, UnicodeError):  # a codec of Python's that is none for text
        return page.body.decode(errors="replace")


def _html(page: Page) -> tuple[str, str]:
    try:
        from bs4 import BeautifulSoup
        from bs4.element import Comment
    except ImportError as error:
        text = "reading pages needs the package beautifulsoup4; install it with: pip install 'loopwright[tools]'"
        raise ConfigurationError(text, extra="tools") from error
    soup = BeautifulSoup(page.body, "html.parser", from_encoding=_charset(page))
    title = _BLANKS.sub(" ", soup.title.get_text(" ", strip=True)) if soup.title else ""
    for hidden in soup(_HIDDEN):
        hidden.decompose()
    for comment in soup.find_all(string=lambda text: isinstance(text, Comment)):
        comment.extract()
    lines = _BLANKS.sub(" ", soup.get_text("\n"))
    return title, _LINES.sub("\n", lines).strip()


read_url = build_read_url()
"""Reads public pages."""
