"""Encryption at rest: AES-256-GCM, with keys that can be changed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from loopwright.errors import ConfigurationError, StorageCorrupt
from loopwright.state import digest

from .database import Row
from .resealing import Resealable
from .store import METADATA, SealedColumn, Stored, name_metadata

_TO_PLACE, _TO_ROW = b"lw1", b"lw2"
"""How a sealed message begins: bound to its place alone, or to a row in that place as well."""
_KEY_BYTES, _ID_BYTES, _PLACE_BYTES, _NONCE_BYTES = 32, 4, 16, 12
_SEALED = "+sealed"
_PROOF = "sealed_for"
"""In the hidden metadata: a digest over the part of a checkpoint that the database can read."""
_CLEAR = ("source", "step", "parents", "is_fork", "counters_since_delta_snapshot", "delta_writes_versioned")
ANYWHERE = ""
"""No place is expected: what is opened may belong to any."""


class Cipher:
    """Seals bytes for a place, such as a thread, and a row there: opened anywhere else, or changed, they are refused.

    A sealed message is its kind, the key's id, digests of the place and of the row, a nonce and AES-GCM's output; all
    before the nonce is authenticated too. The first key seals, every key opens: to rotate, put the new key first, and
    drop the old one when nothing sealed with it is left.
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
        self._marks = tuple(_letters(kind + key_id) for kind in (_TO_PLACE, _TO_ROW) for key_id in self._ciphers)

    @property
    def mark(self) -> bytes:
        """How what is sealed for a row with the first key begins."""
        return _TO_ROW + self._newest

    @property
    def text_mark(self) -> str:
        """The letters that a text begins with that is sealed so."""
        return _letters(self.mark)

    @property
    def earlier_text_mark(self) -> str:
        """The same, of a text that is sealed for its place alone."""
        return _letters(_TO_PLACE + self._newest)

    def has_key_of(self, text: str) -> bool:
        """Tell whether a text looks like one that was sealed with one of these keys."""
        return text.startswith(self._marks)

    def seal(self, data: bytes, place: str, row: str = "") -> bytes:
        """Encrypt for a place, and for a row there if one is given."""
        nonce = os.urandom(_NONCE_BYTES)
        bound = (_TO_ROW if row else _TO_PLACE) + self._newest + _digest(place) + (_digest(row) if row else b"")
        return bound + nonce + self._ciphers[self._newest].encrypt(nonce, data, bound)

    def open(self, sealed: bytes, place: str, row: str = "") -> bytes:
        """Decrypt what was sealed for this place and row; for any place with `ANYWHERE`.

        What was sealed for the place alone, as 0.1.0 did, opens in any of its rows.

        Raises:
            StorageCorrupt: If it was not sealed, not with a known key, for another place or row, or was changed.
        """
        has_row = sealed.startswith(_TO_ROW)
        end = len(_TO_PLACE) + _ID_BYTES + (2 if has_row else 1) * _PLACE_BYTES
        bound, nonce = sealed[:end], sealed[end : end + _NONCE_BYTES]
        if len(nonce) < _NONCE_BYTES or not (has_row or sealed.startswith(_TO_PLACE)):
            raise StorageCorrupt("a stored value is not encrypted, although encryption is on; it is refused")
        key_id, places = bound[len(_TO_PLACE) :][:_ID_BYTES], bound[len(_TO_PLACE) + _ID_BYTES :]
        cipher = self._ciphers.get(key_id)
        if cipher is None:
            raise StorageCorrupt("a stored value was encrypted with a key that was not given; add the old key")
        is_elsewhere = place != ANYWHERE and places[:_PLACE_BYTES] != _digest(place)
        if is_elsewhere or (has_row and places[_PLACE_BYTES:] != _digest(row)):
            raise StorageCorrupt("a stored value belongs to another place: rows were swapped; it is refused")
        try:
            return cipher.decrypt(nonce, sealed[end + _NONCE_BYTES :], bound)
        except InvalidTag as error:
            raise StorageCorrupt("a stored value was changed; it is refused") from error

    def seal_text(self, text: str, place: str, row: str = "") -> str:
        """Encrypt a text into a text."""
        return base64.b64encode(self.seal(text.encode(), place, row)).decode()

    def open_text(self, sealed: str, place: str, row: str = "") -> str:
        """Decrypt what `seal_text` made.

        Raises:
            StorageCorrupt: As `open` does.
        """
        try:
            data = base64.b64decode(sealed, validate=True)
        except ValueError:
            data = b""
        return self.open(data, place, row).decode()

    def is_sealed(self, text: str) -> bool:
        """Tell whether a text looks like one that `seal_text` made, with whichever key."""
        return text.startswith((_text_mark(_TO_PLACE), _text_mark(_TO_ROW)))

    def is_bound_to_row(self, text: str) -> bool:
        """Tell whether a text looks like one that was sealed for a row."""
        return text.startswith(_text_mark(_TO_ROW))


def _text_mark(kind: bytes) -> str:
    """Return how a sealed text of a kind begins: its three bytes are four letters, whatever follows."""
    return base64.b64encode(kind).decode()


def _letters(begin: bytes) -> str:
    """Return the letters of base64 that say nothing of what follows; a few bits of the last byte are left out."""
    return base64.b64encode(begin)[: len(begin) * 8 // 6].decode()


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"loopwright key id" + key).digest()[:_ID_BYTES]


def _digest(place: str) -> bytes:
    return hashlib.sha256(place.encode()).digest()[:_PLACE_BYTES]


class SealedRows:
    """Seals what the rows of a checkpoint store hold, each value for its thread and its row.

    A row's own columns name it (`store.py`). Some of LangGraph's queries leave the thread out of what they return; so
    whoever reads or writes says it before, with `at`.
    """

    is_on = True

    def __init__(self, cipher: Cipher) -> None:
        """Seal with a cipher."""
        self._cipher = cipher
        self._local = threading.local()

    @contextmanager
    def at(self, place: str) -> Generator[None]:
        """Read and write for this thread within the block."""
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

    def seal(self, kind: str, data: bytes, row: str) -> tuple[str, bytes]:
        """Seal a serialized value for its row; the kind says that it is sealed."""
        return f"{kind}{_SEALED}", self._cipher.seal(data, self._place, _typed(row, kind))

    def open(self, kind: str, data: bytes, row: str) -> tuple[str, bytes]:
        """Open it again.

        Raises:
            StorageCorrupt: If it was not sealed, changed, said to be of another kind, or belongs to another thread or
                row.
        """
        was = kind.removesuffix(_SEALED)
        return was, self._cipher.open(data if kind.endswith(_SEALED) else b"", self._place, _typed(row, was))

    def resealable(self, columns: Sequence[SealedColumn]) -> list[Resealable]:
        """Return what a store holds that can be sealed anew with the first key."""
        values = [column.resealable({"mark": self._cipher.mark}, partial(self._resealed, column)) for column in columns]
        return [*values, METADATA.resealable({"mark": self._cipher.text_mark}, self._resealed_metadata)]

    def _resealed(self, column: SealedColumn, row: Row) -> Row:
        name = column.name_row(row)
        with self.at(row["thread_id"]):
            return {"value": self.seal(*self.open(str(row["type"]), row["value"], name), name)[1]}

    def _resealed_metadata(self, row: Row) -> Row:
        """What it proves is sealed anew as it stands: whoever reads it judges it."""
        bound = (row["thread_id"], METADATA.name_row(row))
        return {"sealed": self._cipher.seal_text(self._cipher.open_text(row["sealed"], *bound), *bound)}

    def is_clear(self, name: str) -> bool:
        """Tell whether the database can search by this entry of the metadata."""
        return name in _CLEAR

    def seal_metadata(self, metadata: dict[str, Any], thread_id: str, about: Stored) -> dict[str, Any]:
        """Hide all but what LangGraph and the fence search by; what stays readable cannot be changed unnoticed."""
        clear = {name: value for name, value in metadata.items() if name in _CLEAR}
        hidden = {name: value for name, value in metadata.items() if name not in _CLEAR}
        text = json.dumps({**hidden, _PROOF: _proof(clear, about)})
        return {**clear, "sealed": self._cipher.seal_text(text, thread_id, name_metadata(about.checkpoint["id"]))}

    def open_metadata(self, metadata: dict[str, Any], thread_id: str, about: Stored) -> dict[str, Any]:
        """Show it again.

        Raises:
            StorageCorrupt: If it was not sealed, changed, or belongs to another checkpoint; or if that was changed.
        """
        clear = {name: value for name, value in metadata.items() if name != "sealed"}
        row = name_metadata(about.checkpoint["id"])
        hidden: dict[str, Any] = json.loads(self._cipher.open_text(str(metadata.get("sealed", "")), thread_id, row))
        proof = hidden.pop(_PROOF, None)
        if proof is not None and proof != _proof(clear, about):
            text = f"checkpoint {about.checkpoint['id']} of thread {thread_id!r} was changed; it is refused"
            raise StorageCorrupt(text, thread_id=thread_id)
        return {**clear, **hidden}


def _typed(row: str, kind: str) -> str:
    """Name a row with the kind of its value, which stands beside it in the clear."""
    return f"{row} {kind}"


def _proof(clear: Mapping[str, Any], about: Stored) -> str:
    """Return a digest over all of a checkpoint that is not sealed: versions, what its nodes have seen, its parent."""
    readable = {name: value for name, value in about.checkpoint.items() if name != "channel_values"}
    return digest(clear, readable, about.parent_id or "")
