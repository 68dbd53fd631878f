"""OpenAI's protocol by LangChain's client, with calls and usage read strictly.

By itself the client raises on arguments such as `[1]`, which would end the run, completes what a stream left
unfinished, and adds up what a stream reports as used. Here a call that is not whole is an invalid one, which the model
reads about and can correct.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any

from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_openai import ChatOpenAI
from openai.types.chat import ChatCompletion
from typing_extensions import override

from .strict import HeldStream, strict_arguments


class OpenAIChat(ChatOpenAI):
    """`ChatOpenAI`, whose valid calls have arguments that the server sent as one whole JSON object."""

    @override
    def _create_chat_result(self, response: Any, generation_info: dict[str, Any] | None = None) -> ChatResult:
        if isinstance(response, ChatCompletion):
            _check_choices(response)
            for choice in response.choices or ():
                for call in choice.message.tool_calls or ():
                    if call.type == "function":
                        call.function.arguments = strict_arguments(call.function.arguments)
        return super()._create_chat_result(response, generation_info)  # pyright: ignore[reportUnknownMemberType]  # a bare `dict` in LangChain's signature

    @override
    def _convert_chunk_to_generation_chunk(self, chunk: Any, *args: Any, **kwargs: Any) -> ChatGenerationChunk | None:
        converted = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)  # pyright: ignore[reportUnknownMemberType]  # as above
        if converted is not None and (said := _refusal(chunk)):
            converted.message.additional_kwargs["refusal"] = said
        return converted

    @override
    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        held = HeldStream()
        for chunk in super()._stream(*args, **kwargs):
            yield held.take(chunk)
        yield from held.give()

    @override
    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        held = HeldStream()
        async for chunk in super()._astream(*args, **kwargs):
            yield held.take(chunk)
        for chunk in held.give():
            yield chunk


def _check_choices(response: ChatCompletion) -> None:
    """Refuse a reply that holds none.

    Raises:
        ConnectionError: Unless the body tells of an error, which the client raises.
    """
    if not response.choices and not getattr(response, "error", None):
        raise ConnectionError("the model's reply was empty: there is no choice in it")


def _refusal(chunk: Mapping[str, Any]) -> str:
    """Return a streamed piece of a refusal: the client drops it."""
    choices: list[Mapping[str, Any]] = chunk.get("choices") or [{}]
    delta: Mapping[str, Any] = choices[0].get("delta") or {}
    return str(delta.get("refusal") or "")
