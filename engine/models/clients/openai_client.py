"""Base of the two clients that use OpenAI's SDK, and the client for chat completions: `@URL`, Azure deployments, Gemini."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Any

from engine.errors import ContextTooLong
from engine.models.access import Access
from engine.models.bookkeeping import field, read_count, read_model, read_stop_reason, read_usage
from engine.models.client import Limits, Piece, Request
from engine.models.spec import ModelSpec
from sessions.events import Usage

from .sdk import hidden_variables, http_client
from .sdk_client import SdkClient, wire_message
from .streams import Beat, StreamEnd, StreamItem, next_event, read_text

with hidden_variables():
    import httpx2
    import openai

from .faults import TRANSPORT_ERRORS, WILD_ERRORS, refused_parameter

BROKEN: tuple[type[Exception], ...] = (openai.OpenAIError, *TRANSPORT_ERRORS, *WILD_ERRORS)


class OpenAIWire(SdkClient):
    """A client that uses OpenAI's SDK with any of its protocols."""

    sdk = openai
    broken = BROKEN

    def __init__(
        self, spec: ModelSpec, access: Access, limits: Limits, *, output: str, optional: frozenset[str]
    ) -> None:
        """`output` is the parameter that limits the reply; `optional` are others that a model may refuse."""
        super().__init__(spec, access, limits, optional=optional | {output, "temperature", "top_p"})
        self._output = output

    def _open_sdk(self, spec: ModelSpec, access: Access) -> openai.AsyncOpenAI:
        shared: dict[str, Any] = {
            "max_retries": 0,
            "timeout": httpx2.Timeout(None, connect=self._limits.connect_s),
            "default_headers": dict(access.headers),
            "http_client": http_client(openai.DefaultAsyncHttpxClient, reply_bytes=self._limits.reply_bytes),
        }
        if spec.provider != "azure":
            return openai.AsyncOpenAI(api_key=access.key, base_url=access.url, **shared)
        return openai.AsyncAzureOpenAI(
            azure_endpoint=access.url,
            azure_deployment=spec.name,
            api_version=access.version,
            api_key=None if access.is_token else access.key,
            azure_ad_token=access.key if access.is_token else None,
            **shared,
        )

    def _adapt(self, error: Any, parameters: dict[str, Any], remaining: frozenset[str]) -> bool:
        if isinstance(self._translated(error, began=False), ContextTooLong):
            # Servers with a small context add the requested output length to the prompt.
            refused = self._output if self._output in remaining else None
        else:
            refused = refused_parameter(error.message, error.param, remaining)
        if refused:
            self._refused.add(refused)
        return refused is not None


STOP_REASONS = {"stop": "end", "length": "truncated"}


class OpenAIClient(OpenAIWire):
    """One model of a server with chat completions (vLLM, SGLang, Ollama, LM Studio, Azure, Gemini)."""

    endpoint = "chat"
    path = "/chat/completions"

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        # OpenAI's reasoning models, also on Azure, refuse the old name; many other servers do not know the new name.
        output = "max_completion_tokens" if spec.provider == "azure" else "max_tokens"
        super().__init__(
            spec, access, limits, output=output, optional=frozenset({"stream_options", "reasoning_effort"})
        )

    def _parameters(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        return {
            "model": self._name,
            "messages": list(map(wire_message, request.messages)),
            "temperature": request.temperature,
            "stream_options": {"include_usage": True},
            self._output: request.max_output_tokens,
            **({} if request.top_p is None else {"top_p": request.top_p}),
            **({"reasoning_effort": request.effort} if request.effort else {}),
        }

    def _items(self, stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
        return translate_chunks(stream)


async def translate_chunks(stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream.

    After the model reported its stop reason, an error before the usage still gives the complete reply. A usage before
    the stop reason does not count, because servers that send it count only the tokens so far.
    """
    stop_reason = model = ""
    usage = Usage()
    chunks = aiter(stream)
    while (chunk := await next_event(chunks, finished=bool(stop_reason), broken=BROKEN)) is not None:
        model = read_model(chunk.get("model")) or model
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        delta: Any = field(choice, "delta") or {}
        yield Piece("reasoning", reasoning_of(delta))
        yield Piece("text", read_text(delta.get("content")))
        stop_reason = read_stop_reason(field(choice, "finish_reason"), STOP_REASONS) or stop_reason
        if stop_reason and chunk.get("usage") is not None:
            usage = usage_of(chunk["usage"])
        yield Beat()
    if stop_reason:
        yield StreamEnd(stop_reason, usage, model)


def reasoning_of(delta: object) -> str:
    """Returns streamed reasoning, under either of the two names that compatible servers use."""
    for name in ("reasoning_content", "reasoning"):
        words = field(delta, name)
        if isinstance(words, str) and words:
            return words
    return ""


def usage_of(usage: object) -> Usage:
    """Returns the usage; cached tokens are included in the input tokens.

    Gemini counts the tokens of its reasoning only in the total, not in `completion_tokens`, but bills them as output.
    """
    read, written = read_count(field(usage, "prompt_tokens")), read_count(field(usage, "completion_tokens"))
    total = read_count(field(usage, "total_tokens"))
    if read is not None and written is not None and total is not None:
        written = max(written, total - read)
    return read_usage(
        input_tokens=read,
        output_tokens=written,
        cached_tokens=field(usage, "prompt_tokens_details", "cached_tokens"),
        cache_write_tokens=field(usage, "prompt_tokens_details", "cache_write_tokens"),
    )
