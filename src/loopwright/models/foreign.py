"""What another provider's model has said, in a form that every provider takes. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage

_PROVIDER = "model_provider"
"""In a message's `response_metadata`, as LangChain's clients write it."""


def spoken_to(model: BaseChatModel, messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """Return a transcript as a model is sent it: blocks of another provider's are told as their text.

    What a model thought, signed by its provider, is refused by any other. Calls and results have one form for all.
    """
    params: dict[str, Any] = dict(model._get_ls_params())  # noqa: SLF001 # pyright: ignore[reportPrivateUsage]  # LangChain's one way to ask what it is
    provider = str(params.get("ls_provider") or "")
    return [_told(message) if _is_foreign(message, provider) else message for message in messages]


def _is_foreign(message: AnyMessage, provider: str) -> bool:
    if not isinstance(message, AIMessage) or isinstance(message.content, str):
        return False
    said_by = message.response_metadata.get(_PROVIDER)
    return bool(said_by and provider) and said_by != provider


def _told(message: AnyMessage) -> AnyMessage:
    return message.model_copy(update={"content": str(message.text)})
