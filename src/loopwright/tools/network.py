"""A network for httpcore that connects to checked addresses only, and in whose time nothing can drag on."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import httpcore

Addresses = Callable[[str, int], Sequence[str]]
"""Returns the addresses of a host that may be connected to, or raises."""


class CheckedNetwork(httpcore.NetworkBackend):
    """Connects to what `addresses` returns; after `give_up`, in monotonic seconds, nothing is sent or received."""

    def __init__(self, addresses: Addresses, give_up: float) -> None:
        """Bind the network to one fetch."""
        self._addresses = addresses
        self._give_up = give_up
        self._inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 -- httpcore's signature; the fetch has one time for all
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address that answers."""
        try:
            addresses = self._addresses(host, port)
        except (socket.gaierror, UnicodeError) as error:
            raise httpcore.ConnectError(f"there is no host {host}") from error
        refused: Exception = httpcore.ConnectError(f"there is no host {host}")
        for address in addresses:
            try:
                left = _left(self._give_up)
                stream = self._inner.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
            else:
                return _Timed(stream, self._give_up)
        raise refused

    def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002 -- httpcore's signature
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002 -- as above
    ) -> httpcore.NetworkStream:
        """Refuse."""
        raise httpcore.ConnectError(f"{path} is no host")


class _Timed(httpcore.NetworkStream):
    """A connection whose every wait ends with the fetch's time: a server may send for ever, a byte at a time."""

    def __init__(self, inner: httpcore.NetworkStream, give_up: float) -> None:
        self._inner = inner
        self._give_up = give_up

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002 -- httpcore's signature
        return self._inner.read(max_bytes, _left(self._give_up))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002 -- httpcore's signature
        self._inner.write(buffer, _left(self._give_up))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002 -- httpcore's signature
    ) -> httpcore.NetworkStream:
        return _Timed(self._inner.start_tls(ssl_context, server_hostname, _left(self._give_up)), self._give_up)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _left(give_up: float) -> float:
    left = give_up - time.monotonic()
    if left <= 0:
        raise httpcore.ReadTimeout("the time is up")
    return left
