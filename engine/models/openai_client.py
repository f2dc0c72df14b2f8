"""Models that speak OpenAI's chat completions protocol, through the official SDK."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from engine.errors import ContextTooLong, ModelError
from sessions.events import Usage

from .client import Limits, Piece, Reply, Request
from .sdk import hidden_variables
from .spec import Access, ModelSpec
from .streams import Beat, Ending, StreamItem, gather_reply, next_event

with hidden_variables():
    import httpx2
    import openai

from .faults import (
    TRANSPORT_ERRORS,
    WILD_ERRORS,
    from_status,
    from_transport,
    one_line,
    refused_parameter,
    require_stream,
)

STOP_REASONS = {"stop": "end", "length": "truncated"}

SDK_ERRORS: tuple[type[Exception], ...] = (openai.OpenAIError, *TRANSPORT_ERRORS)
BROKEN = (openai.APIConnectionError, httpx2.HTTPError, TimeoutError)
REFUSALS = (openai.BadRequestError, openai.UnprocessableEntityError)


class OpenAIClient:
    """One model of OpenAI, or of another server that speaks its protocol (vLLM, SGLang, Ollama, LM Studio)."""

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        self.model = str(spec)
        self._name = spec.name
        self._key = access.key
        self._limits = limits
        # OpenAI's reasoning models refuse the old name, many compatible servers do not know the new one.
        self._output_parameter = "max_tokens" if spec.url else "max_completion_tokens"
        self._optional = frozenset({"temperature", "stream_options", self._output_parameter})
        self._refused: set[str] = set()
        with hidden_variables():
            self._sdk = openai.AsyncOpenAI(
                api_key=access.key,
                base_url=access.url,
                max_retries=0,
                timeout=httpx2.Timeout(None, connect=limits.connect_s),
                # A redirect would carry the prompts, and with them the key, to wherever it points.
                http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),
            )

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. A parameter that the model refuses is left out and the request sent once more."""
        while True:
            without = frozenset(self._refused)
            temperature = None if "temperature" in without else request.temperature
            try:
                return await gather_reply(
                    self._stream(request, without),
                    limits=self._limits,
                    on_piece=on_piece,
                    temperature=temperature,
                )
            except REFUSALS as error:
                if not self._yield_to(error, without):
                    raise translate(error, began=False, key=self._key) from None

    async def close(self) -> None:
        """See `Client`."""
        await self._sdk.close()

    def _yield_to(self, error: openai.APIStatusError, without: frozenset[str]) -> bool:
        """Whether the next request will differ: a refused parameter left out."""
        left = self._optional - without
        if isinstance(translate(error, began=False, key=self._key), ContextTooLong):
            # Servers with a small context count the asked-for output in.
            refused = self._output_parameter if self._output_parameter in left else None
        else:
            refused = refused_parameter(error.message, error.param, left)
        if refused:
            self._refused.add(refused)
        return refused is not None

    def _parameters(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self._name,
            "messages": [{"role": message.role, "content": message.content} for message in request.messages],
            "temperature": request.temperature,
            "stream_options": {"include_usage": True},
            self._output_parameter: request.max_output_tokens,
        }
        return {name: value for name, value in parameters.items() if name not in without}

    async def _stream(self, request: Request, without: frozenset[str]) -> AsyncGenerator[StreamItem, None]:
        """The stream in our words; a refusal comes out as the SDK's own, everything else as a `ModelError`."""
        began = False
        try:
            stream = await self._sdk.chat.completions.create(
                stream=True, **self._parameters(request, without)
            )
            async with stream:
                began = True
                require_stream(stream.response)
                async with aclosing(translate_chunks(stream)) as items:
                    async for item in items:
                        yield item
        except REFUSALS:
            raise
        except SDK_ERRORS as error:
            raise translate(error, began=began, key=self._key) from None
        except WILD_ERRORS as error:
            raise from_transport(error, began=began, key=self._key) from None


def translate(error: BaseException, *, began: bool, key: str) -> ModelError:
    """Any exception of the SDK as one of ours. The original is not chained: a traceback could print a key."""
    match error:
        case openai.APIStatusError():
            return from_status(
                error.status_code,
                kind=error.code or error.type or "",
                message=said(error),
                headers=error.response.headers,
                key=key,
            )
        case openai.APIConnectionError():
            return from_transport(error.__cause__ or httpx2.ConnectError(error.message), began=began, key=key)
        case openai.APIError():
            # An error inside a stream that came with status 200; most are the server's own trouble.
            kind = next((word for word in (error.code, error.type) if word), "server_error")
            status = int(kind) if kind.isdecimal() and 400 <= int(kind) < 600 else 200
            return from_status(status, kind=kind, message=error.message, headers={}, key=key)
        case openai.OpenAIError():
            return from_transport(ValueError(one_line(str(error), key)), began=began, key=key)
        case _:
            return from_transport(error, began=began, key=key)


def said(error: openai.APIStatusError) -> str:
    """The server's own words, without the SDK's dump of the body around them."""
    if isinstance(error.body, dict) and isinstance(error.body.get("message"), str):
        return str(error.body["message"])
    return error.message


async def translate_chunks(stream: Any) -> AsyncGenerator[StreamItem, None]:
    """Pieces and the end of an SDK stream. Once the model has finished, trouble before the usage does not unmake its reply."""
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
    """Streamed reasoning, under either of the two names that compatible servers give it."""
    for name in ("reasoning_content", "reasoning"):
        words = getattr(delta, name, None)
        if isinstance(words, str) and words:
            return words
    return ""


def usage_of(usage: Any) -> Usage:
    """In our words: both sides count cached tokens within the input."""
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cached_tokens=getattr(details, "cached_tokens", None),
    )
