"""Encryption at rest: AES-256-GCM, with keys that can be changed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from langgraph.checkpoint.serde.base import SerializerProtocol

from loopwright.errors import ConfigurationError, StorageCorrupt

_MAGIC = b"lw1"
_KEY_BYTES, _ID_BYTES, _PLACE_BYTES, _NONCE_BYTES = 32, 4, 16, 12
_HEADER_BYTES = len(_MAGIC) + _ID_BYTES + _PLACE_BYTES + _NONCE_BYTES
_SEALED = "+sealed"
_CLEAR = ("source", "step", "parents", "is_fork", "counters_since_delta_snapshot", "delta_writes_versioned")
ANYWHERE = ""
"""No place is expected: what is opened may belong to any."""


class Cipher:
    """Seals bytes for a place, such as a thread: opened anywhere else, or changed, they are refused.

    A sealed message is `lw1`, the key's id, a digest of the place, a nonce and AES-GCM's output; all before the nonce
    is authenticated too. The first key seals, every key opens: to rotate, put the new key first, and drop the old one
    when nothing sealed with it is left.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Take 32-byte keys, the newest first.

        Raises:
            ConfigurationError: If there is no key, or one has another length.
        """
        if not keys or any(len(key) != _KEY_BYTES for key in keys):
            text = f"encryption wants keys of {_KEY_BYTES} bytes, the newest first; make one with os.urandom(32)"
            raise ConfigurationError(text, option="encryption")
        self._newest = _key_id(keys[0])
        self._ciphers = {_key_id(key): AESGCM(key) for key in keys}

    def seal(self, data: bytes, place: str) -> bytes:
        """Encrypt for a place."""
        nonce = os.urandom(_NONCE_BYTES)
        bound = _MAGIC + self._newest + _place_digest(place)
        return bound + nonce + self._ciphers[self._newest].encrypt(nonce, data, bound)

    def open(self, sealed: bytes, place: str) -> bytes:
        """Decrypt what was sealed for this place; for any place with `ANYWHERE`.

        Raises:
            StorageCorrupt: If it was not sealed, not with a key that is known, for another place, or was changed.
        """
        bound, nonce = sealed[: _HEADER_BYTES - _NONCE_BYTES], sealed[_HEADER_BYTES - _NONCE_BYTES : _HEADER_BYTES]
        if len(sealed) < _HEADER_BYTES or not sealed.startswith(_MAGIC):
            raise StorageCorrupt("a stored value is not encrypted, although encryption is on; it is refused")
        cipher = self._ciphers.get(bound[len(_MAGIC) : len(_MAGIC) + _ID_BYTES])
        if cipher is None:
            raise StorageCorrupt("a stored value was encrypted with a key that was not given; add the old key")
        if place != ANYWHERE and bound[-_PLACE_BYTES:] != _place_digest(place):
            raise StorageCorrupt("a stored value belongs to another place: rows were swapped; it is refused")
        try:
            return cipher.decrypt(nonce, sealed[_HEADER_BYTES:], bound)
        except InvalidTag as error:
            raise StorageCorrupt("a stored value was changed; it is refused") from error

    def seal_text(self, text: str, place: str) -> str:
        """Encrypt a text into a text."""
        return base64.b64encode(self.seal(text.encode(), place)).decode()

    def open_text(self, sealed: str, place: str) -> str:
        """Decrypt what `seal_text` made.

        Raises:
            StorageCorrupt: As `open` does.
        """
        try:
            data = base64.b64decode(sealed, validate=True)
        except ValueError:
            data = b""
        return self.open(data, place).decode()


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"loopwright key id" + key).digest()[:_ID_BYTES]


def _place_digest(place: str) -> bytes:
    return hashlib.sha256(place.encode()).digest()[:_PLACE_BYTES]


class SealedSerializer(SerializerProtocol):
    """LangGraph's serializer, with every value sealed for its thread.

    LangGraph's code says neither what it reads nor where it belongs; so whoever calls it says the thread before, with
    `at`.
    """

    def __init__(self, inner: SerializerProtocol, cipher: Cipher) -> None:
        """Seal what `inner` makes."""
        self._inner = inner
        self._cipher = cipher
        self._local = threading.local()

    @contextmanager
    def at(self, place: str) -> Generator[None]:
        """Read and write for this place within the block."""
        before = self._place
        self._local.place = place
        try:
            yield
        finally:
            self._local.place = before

    @property
    def _place(self) -> str:
        place: str = getattr(self._local, "place", ANYWHERE)
        return place

    def is_clear(self, name: str) -> bool:
        """Tell whether the database can search by this entry of the metadata."""
        return name in _CLEAR

    def seal_metadata(self, metadata: dict[str, Any], place: str) -> dict[str, Any]:
        """Hide all but what LangGraph and the fence search by."""
        secret = {name: value for name, value in metadata.items() if name not in _CLEAR}
        clear = {name: value for name, value in metadata.items() if name in _CLEAR}
        return {**clear, "sealed": self._cipher.seal_text(json.dumps(secret), place)}

    def open_metadata(self, metadata: dict[str, Any], place: str) -> dict[str, Any]:
        """Show it again.

        Raises:
            StorageCorrupt: If it was not sealed, changed, or belongs to another thread.
        """
        rest = {name: value for name, value in metadata.items() if name != "sealed"}
        hidden: dict[str, Any] = json.loads(self._cipher.open_text(str(metadata.get("sealed", "")), place))
        return {**rest, **hidden}

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """Serialize and seal."""
        kind, data = self._inner.dumps_typed(obj)
        return f"{kind}{_SEALED}", self._cipher.seal(data, self._place)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """Open and deserialize.

        Raises:
            StorageCorrupt: If the value was not sealed, changed, or belongs to another thread.
        """
        kind, sealed = data
        opened = self._cipher.open(sealed if kind.endswith(_SEALED) else b"", self._place)
        return self._inner.loads_typed((kind.removesuffix(_SEALED), opened))
