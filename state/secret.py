"""What must never be stored."""

from __future__ import annotations


class Secret:
    """Marks a field of a run's context that is never stored: `token: Annotated[str, Secret]`.

    Fields of pydantic's `SecretStr`, `SecretBytes` and `Secret` need no mark.
    """
