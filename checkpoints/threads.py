"""What can name a thread."""

from __future__ import annotations

import uuid

from loopwright.errors import ConfigurationError

MAX_THREAD_ID = 255
"""Characters of a thread id: what every store can index."""


def check_thread_id(thread_id: object) -> str:
    """Return a thread id as the text that is stored.

    Strings are taken as they are; an `int` or a `UUID` by its `str`. So `1` and `"1"` are one thread, knowingly.

    Raises:
        ConfigurationError: If it is missing, empty, blank at its ends, too long, or of another type.
    """
    if isinstance(thread_id, uuid.UUID) or (isinstance(thread_id, int) and not isinstance(thread_id, bool)):
        return str(thread_id)
    way_out = f"give a text of 1 to {MAX_THREAD_ID} characters, without NUL and without blanks at its ends"
    if not isinstance(thread_id, str):
        raise ConfigurationError(f"thread_id is {thread_id!r}; {way_out}", thread_id=repr(thread_id))
    bad = "\x00" in thread_id or thread_id != thread_id.strip() or not 0 < len(thread_id) <= MAX_THREAD_ID
    bad = bad or thread_id != thread_id.encode(errors="replace").decode()  # half a surrogate pair
    if bad:
        raise ConfigurationError(f"thread_id {thread_id[:40]!r} cannot be used; {way_out}", thread_id=thread_id[:40])
    return thread_id
