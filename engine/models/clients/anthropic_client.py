"""Client for models that use Anthropic's Messages protocol, through the official SDK."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

from engine.errors import ModelError
from engine.models.access import Access
from engine.models.bookkeeping import field, read_count, read_stop_reason, read_usage
from engine.models.client import Limits, Piece, Reply, Request
from engine.models.spec import ModelSpec
from sessions.events import Message, Usage

from .sdk import hidden_variables, http_client
from .streams import Beat, Ending, StreamItem, gather_reply, next_event, read_text

with hidden_variables():
    import anthropic
    import httpx2

from .faults import (
    TRANSPORT_ERRORS,
    WILD_ERRORS,
    from_status,
    from_transport,
    refused_parameter,
    require_stream,
)

STOP_REASONS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
}
OPTIONAL = frozenset({"temperature", "thinking", "cache_control"})
"""Parameters that some models refuse; a refused parameter is left out of later requests."""
INPUT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""Counts whose sum is the prompt. The first event of a stream has them; its `output_tokens` is only a beginning."""
ALLOWED_OUTPUT = re.compile(r"max_tokens: \d+ > (\d+)")

SDK_ERRORS: tuple[type[Exception], ...] = (anthropic.AnthropicError, *TRANSPORT_ERRORS)
BROKEN = (*SDK_ERRORS, *WILD_ERRORS)
"""Exceptions of a stream, also of a stream that falls silent (`TimeoutError`)."""
REFUSALS = (anthropic.BadRequestError, anthropic.UnprocessableEntityError)


class Sent(NamedTuple):
    """The variable parameters of one request. Another request's refusal may have arrived since."""

    without: frozenset[str]
    output_tokens: int


class AnthropicClient:
    """One model of Anthropic, or of another server with the same protocol."""

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        self.model = str(spec)
        self._name = spec.name
        self._secrets = access.secrets
        self._limits = limits
        self._refused: set[str] = set()
        self._most_output = sys.maxsize
        with hidden_variables():
            self._sdk = anthropic.AsyncAnthropic(
                api_key=access.key,
                # The SDK adds `/v1` itself.
                base_url=access.url.rstrip("/").removesuffix("/v1"),
                max_retries=0,
                timeout=httpx2.Timeout(None, connect=limits.connect_s),
                default_headers=dict(access.headers),
                open_telemetry=False,
                http_client=http_client(anthropic.DefaultAsyncHttpxClient),
            )

    async def reply(self, request: Request, on_piece: Callable[[Piece], None]) -> Reply:
        """See `Client`. If the model refuses a parameter, the request is sent again without it."""
        while True:
            sent = Sent(frozenset(self._refused), min(request.max_output_tokens, self._most_output))
            temperature = None if "temperature" in sent.without else request.temperature
            try:
                return await gather_reply(
                    self._stream(request, sent, temperature),
                    limits=self._limits,
                    on_piece=on_piece,
                    temperature=temperature,
                )
            except REFUSALS as error:
                if not self._adapt(error, sent):
                    raise self._translated(error, began=False) from None

    async def close(self) -> None:
        """See `Client`."""
        await self._sdk.close()

    def _adapt(self, error: anthropic.APIStatusError, sent: Sent) -> bool:
        """Adapt to a refusal; True if the next request will differ."""
        message = server_message(error)
        allowed = ALLOWED_OUTPUT.search(message)
        if allowed and "max_tokens" not in sent.without:
            self._most_output = int(allowed[1])
            self._refused.add("max_tokens")
            return True
        refused = refused_parameter(message, None, OPTIONAL - sent.without)
        if refused:
            self._refused.add(refused)
        return refused is not None

    def _parameters(self, request: Request, sent: Sent, temperature: float | None) -> dict[str, Any]:
        system, turns = split_system(request.messages)
        parameters: dict[str, Any] = {
            "model": self._name,
            "max_tokens": sent.output_tokens,
            "messages": turns,
            "stream": True,
        }
        if system:
            block: dict[str, Any] = {"type": "text", "text": system}
            if "cache_control" not in sent.without:
                block["cache_control"] = {"type": "ephemeral"}
            parameters["system"] = [block]
        if "thinking" not in sent.without:
            parameters["thinking"] = {"type": "adaptive", "display": "summarized"}
        if temperature is not None:
            parameters["temperature"] = temperature
        return parameters

    async def _stream(
        self, request: Request, sent: Sent, temperature: float | None
    ) -> AsyncGenerator[StreamItem, None]:
        """Yield the items of the stream.

        A refusal passes as the SDK's exception; any other error becomes a `ModelError`.
        """
        began = False
        try:
            # Plain JSON: the SDK's types would change odd values before anyone can refuse them.
            stream = await self._sdk.post(
                "/v1/messages",
                body=self._parameters(request, sent, temperature),
                cast_to=object,
                stream=True,
                stream_cls=anthropic.AsyncStream[object],
            )
            async with stream:
                began = True
                require_stream(stream.response)
                async with aclosing(translate_events(stream)) as items:
                    async for item in items:
                        yield item
        except REFUSALS:
            raise
        except BROKEN as error:
            raise self._translated(error, began=began) from None

    def _translated(self, error: BaseException, *, began: bool) -> ModelError:
        return translate(error, began=began, secrets=self._secrets, connect_s=self._limits.connect_s)


def translate(error: BaseException, *, began: bool, secrets: Sequence[str], connect_s: float) -> ModelError:
    """Returns the `ModelError` for an exception of the SDK.

    The original is not chained, because a traceback could print a key.
    """
    match error:
        case anthropic.APIStatusError():
            return from_status(
                error.status_code,
                kind=str(error.type or ""),
                message=server_message(error),
                headers=error.response.headers,
                secrets=secrets,
            )
        case anthropic.APIConnectionError():
            cause = error.__cause__ or httpx2.ConnectError(error.message)
        case anthropic.AnthropicError():
            cause = ValueError(str(error))
        case _:
            cause = error
    return from_transport(cause, began=began, secrets=secrets, connect_s=connect_s)


def server_message(error: anthropic.APIStatusError) -> str:
    """Returns the server's own message, without the SDK's dump of the body."""
    return error.api_message if error.api_message and isinstance(error.api_message, str) else error.message


async def translate_events(stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream; usage combines its first event and its last delta.

    After the model reported its stop reason, a broken stream still gives the complete reply. The stream is read past
    the protocol's last event, because only then the connection is free for the next call.
    """
    stop_reason = ""
    counts: dict[str, object] = {}
    events = aiter(stream)
    while (event := await next_event(events, finished=bool(stop_reason), broken=BROKEN)) is not None:
        delta: Any = event.get("delta")
        match event.get("type"):
            case "message_start":
                _update_counts(counts, field(event, "message", "usage"), INPUT_COUNTS)
            case "content_block_delta" if delta["type"] == "text_delta":
                yield Piece("text", read_text(delta["text"]))
            case "content_block_delta" if delta["type"] == "thinking_delta":
                yield Piece("reasoning", read_text(delta["thinking"]))
            case "message_delta":
                stop_reason = read_stop_reason(field(delta, "stop_reason"), STOP_REASONS) or stop_reason
                _update_counts(counts, event.get("usage"), (*INPUT_COUNTS, "output_tokens"))
            case "message_stop":
                stop_reason = stop_reason or "end"
            case _:
                pass
        yield Beat()
    if stop_reason:
        yield Ending(stop_reason, usage_of(counts))


def _update_counts(counts: dict[str, object], usage: object, names: tuple[str, ...]) -> None:
    """Copy the counts of a usage object; later counts are cumulative and replace earlier ones."""
    counts |= {name: field(usage, name) for name in names if field(usage, name) is not None}


def usage_of(counts: Mapping[str, object]) -> Usage:
    """Returns the usage; Anthropic counts cached tokens besides `input_tokens`, here they are included."""
    # A server without a cache sends no count for it; an odd count makes the sum unknown.
    parts = [
        read_count(counts.get(name, default))
        for name, default in zip(INPUT_COUNTS, (None, 0, 0), strict=True)
    ]
    known = [part for part in parts if part is not None]
    return read_usage(
        input_tokens=sum(known) if known == parts else None,
        output_tokens=counts.get("output_tokens"),
        cached_tokens=counts.get("cache_read_input_tokens"),
        cache_write_tokens=counts.get("cache_creation_input_tokens"),
    )


def split_system(messages: tuple[Message, ...]) -> tuple[str, list[dict[str, str]]]:
    """Returns the system text and the turns after it."""
    system = "\n\n".join(message.content for message in messages if message.role == "system")
    turns = [
        {"role": message.role, "content": message.content} for message in messages if message.role != "system"
    ]
    return system, turns
