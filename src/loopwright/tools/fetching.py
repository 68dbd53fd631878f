"""Fetches one page from a server that nobody vouches for: its address is checked, its size and its time are bounded."""

from __future__ import annotations

import re
import socket
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, urljoin, urlsplit, urlunsplit

from loopwright.errors import ConfigurationError

from .addresses import Network, Resolve, check_address
from .retrying import PASSING_STATUS

if TYPE_CHECKING:
    import httpcore

MAX_BYTES = 2_000_000
"""Of a page, decompressed. What lies behind is not read."""
MAX_SECONDS = 15.0
"""For a page, all its redirects included."""
MAX_REDIRECTS = 5
_CHUNK = 65_536
_PORTS = {"http": 80, "https": 443}
_REDIRECTS = (301, 302, 303, 307, 308)
_ERRORS_FROM = 400
_HOST = re.compile(r"[\w.-]+|\[[\w:.%]+\]", re.ASCII)
_ACCEPTED = "text/html, text/plain, application/json;q=0.9, */*;q=0.1"


class FetchFailed(Exception):
    """A page could not be fetched, and cannot be a moment later either; the text says why."""


class FetchBroken(FetchFailed, OSError):
    """The server could not be reached, or was too busy: that can pass."""

    def __init__(self, text: str, retry_after: str = "") -> None:
        """Keep for how many seconds the server asks to be left alone."""
        super().__init__(text)
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Page:
    """What a server sent."""

    url: str
    """Where it came from in the end."""
    content_type: str
    body: bytes
    is_cut: bool
    """Whether there was more than `MAX_BYTES`."""


@dataclass(frozen=True, slots=True)
class Fetcher:
    """Fetches pages over HTTP and HTTPS.

    Each connection, that of a redirect too, goes to an address that was looked up and checked just then: a name that
    means something else a moment later changes nothing. No proxy of the environment is used: it would look names up.
    """

    private: Sequence[Network] = ()
    """Networks that may be reached although they are not public."""
    resolve: Resolve | None = None
    """Looks names up; left out, the system does."""

    def fetch(self, url: str) -> Page:
        """Fetch a page.

        Raises:
            FetchFailed: If the address is no URL of a page, or the server does not send it.
            FetchBroken: If the server cannot be reached, is too busy, or too slow.
            AddressRefused: If it, or where it redirects to, is not on the public internet.
            ConfigurationError: If httpcore, of the extra `tools`, is not installed.
        """
        with self._pool(time.monotonic() + MAX_SECONDS) as pool:
            for _ in range(MAX_REDIRECTS + 1):
                answer = _get(pool, _checked(url))
                if isinstance(answer, Page):
                    return answer
                url = answer
        raise FetchFailed(f"more than {MAX_REDIRECTS} redirects; the last one leads to {url}")

    def _pool(self, give_up: float) -> httpcore.ConnectionPool:
        try:
            import httpcore

            from .network import CheckedNetwork
        except ImportError as error:
            text = "reading pages needs the package httpcore; install it with: pip install 'loopwright[tools]'"
            raise ConfigurationError(text, extra="tools") from error
        return httpcore.ConnectionPool(network_backend=CheckedNetwork(self._addresses, give_up))

    def _addresses(self, host: str, port: int) -> Sequence[str]:
        """Look a host up; all its addresses are checked, since one that is not public tells what the name is for."""
        addresses = (self.resolve or _resolve)(host, port)
        for address in addresses:
            check_address(host, address, self.private)
        return addresses


def _checked(url: str) -> str:
    """Return the URL with its host in ASCII."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise FetchFailed(f"{url!r} is no URL: {error}") from None
    if parts.scheme not in _PORTS or not host:
        raise FetchFailed(f"{url!r} is no address of a page; give one that begins with https:// or http://")
    if parts.username is not None or parts.password is not None:
        raise FetchFailed(f"{url!r} carries a user name; pages are read without one")
    return urlunsplit(SplitResult(parts.scheme, _place(host, port), _ascii(parts.path) or "/", _ascii(parts.query), ""))


def _place(host: str, port: int | None) -> str:
    try:
        name = f"[{host}]" if ":" in host else host.encode("idna").decode()
    except UnicodeError as error:
        raise FetchFailed(f"{host!r} is no host name: {error}") from None
    if not _HOST.fullmatch(name):
        raise FetchFailed(f"{host!r} is no host name")
    return f"{name}:{port}" if port else name


def _ascii(text: str) -> str:
    """Percent-encode what no request line may hold."""
    return "".join(char if "!" <= char <= "~" else _encoded(char) for char in text)


def _encoded(char: str) -> str:
    return "".join(f"%{byte:02X}" for byte in char.encode(errors="replace"))


def _get(pool: httpcore.ConnectionPool, url: str) -> Page | str:
    """Send one request; returns the page, or where the server sends us instead."""
    import httpcore

    # Compressed bodies only where we can bound what comes out of them.
    headers = [("Host", urlsplit(url).netloc), ("Accept", _ACCEPTED), ("Accept-Encoding", "gzip, deflate")]
    try:
        with pool.stream("GET", url, headers=[*headers, ("User-Agent", "loopwright")]) as response:
            found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
            if response.status in _REDIRECTS and "location" in found:
                return _led_to(url, found["location"])
            if response.status >= _ERRORS_FROM:
                raise _refusal(url, response.status, found.get("retry-after", ""))
            body, is_cut = _read(_decompressed(response.iter_stream(), found.get("content-encoding", ""), url))
            return Page(url, found.get("content-type", ""), body, is_cut)
    except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
        raise FetchBroken(f"{url} cannot be read: {str(error) or type(error).__name__}") from error
    except httpcore.TimeoutException as error:
        raise FetchBroken(f"{url} was not there within {MAX_SECONDS:g} s") from error


def _led_to(url: str, location: str) -> str:
    try:
        return urljoin(url, location)
    except ValueError as error:
        raise FetchFailed(f"{url} leads to {location!r}, which is no URL: {error}") from None


def _refusal(url: str, status: int, retry_after: str) -> FetchFailed:
    said = f"{url} answered with status {status}"
    return FetchBroken(said, retry_after) if status in PASSING_STATUS else FetchFailed(said)


def _decompressed(chunks: Iterable[bytes], encoding: str, url: str) -> Iterator[bytes]:
    """Unpack a body piece by piece, none of which is large: a small body can hold a huge one."""
    if encoding.lower() in ("", "identity"):
        yield from chunks
        return
    if encoding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise FetchFailed(f"{url} is sent as {encoding!r}, which was not asked for, and is not read")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)
    try:
        for chunk in chunks:
            rest = chunk
            while rest and not unpack.eof:
                yield unpack.decompress(rest, _CHUNK)
                rest = unpack.unconsumed_tail
    except zlib.error as error:
        raise FetchFailed(f"{url} is not packed as it says: {error}") from error


def _read(chunks: Iterator[bytes]) -> tuple[bytes, bool]:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BYTES:
            return bytes(body[:MAX_BYTES]), True
    return bytes(body), False


def _resolve(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]
