"""Keys stay out of what is stored and shown."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel
from pydantic import SecretStr

_SHORTEST = 8
"""What is shorter is a local server's stand-in for a key, and would blot out half the text."""


def hide_keys(text: str, model: BaseChatModel) -> str:
    """Take a model's own keys out of a text: servers quote them when they refuse one."""
    for value in vars(model).values():
        key = value.get_secret_value() if isinstance(value, SecretStr) else ""
        if len(key) >= _SHORTEST:
            text = text.replace(key, "***")
    return text
