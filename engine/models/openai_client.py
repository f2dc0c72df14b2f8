"""Client for OpenAI's chat completions protocol: servers behind an `@URL`, Azure deployments, Gemini."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from sessions.events import Usage

from .access import Access
from .client import Limits, Piece, Request
from .openai_wire import BROKEN, OpenAIWire
from .spec import ModelSpec
from .streams import Beat, Ending, StreamItem, next_event

STOP_REASONS = {"stop": "end", "length": "truncated"}


class OpenAIClient(OpenAIWire):
    """One model of a server with chat completions (vLLM, SGLang, Ollama, LM Studio, Azure, Gemini)."""

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        # OpenAI's reasoning models, also on Azure, refuse the old name; many other servers do not know the new name.
        output = "max_completion_tokens" if spec.provider == "azure" else "max_tokens"
        super().__init__(spec, access, limits, output=output, optional=frozenset({"stream_options"}))

    def _parameters(self, request: Request) -> dict[str, Any]:
        return {
            "model": self._name,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": request.temperature,
            "stream_options": {"include_usage": True},
            self._output: request.max_output_tokens,
        }

    async def _open(self, parameters: dict[str, Any]) -> Any:
        return await self._sdk.chat.completions.create(stream=True, **parameters)

    def _items(self, stream: Any) -> AsyncGenerator[StreamItem, None]:
        return translate_chunks(stream)


async def translate_chunks(stream: Any) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream.

    After the model reported its stop reason, an error before the usage still gives the complete reply.
    """
    stop_reason = ""
    usage = Usage()
    chunks = aiter(stream)
    while chunk := await next_event(chunks, finished=bool(stop_reason), broken=BROKEN):
        if chunk.usage is not None:
            usage = usage_of(chunk.usage)
        for choice in chunk.choices[:1]:
            reasoning = reasoning_of(choice.delta)
            if reasoning:
                yield Piece("reasoning", reasoning)
            if choice.delta and choice.delta.content:
                yield Piece("text", choice.delta.content)
            stop_reason = choice.finish_reason or stop_reason
        yield Beat()
    if stop_reason:
        yield Ending(STOP_REASONS.get(stop_reason, stop_reason), usage)


def reasoning_of(delta: object) -> str:
    """Returns streamed reasoning, under either of the two names that compatible servers use."""
    for name in ("reasoning_content", "reasoning"):
        words = getattr(delta, name, None)
        if isinstance(words, str) and words:
            return words
    return ""


def usage_of(usage: Any) -> Usage:
    """Returns the usage; cached tokens are included in the input tokens.

    Gemini counts the tokens of its reasoning only in the total, not in `completion_tokens`, but bills them as output.
    """
    details = getattr(usage, "prompt_tokens_details", None)
    read, output, total = usage.prompt_tokens, usage.completion_tokens, getattr(usage, "total_tokens", None)
    if read is not None and output is not None and total is not None:
        output = max(output, total - read)
    return Usage(
        input_tokens=read,
        output_tokens=output,
        cached_tokens=getattr(details, "cached_tokens", None),
        cache_write_tokens=getattr(details, "cache_write_tokens", None),
    )
