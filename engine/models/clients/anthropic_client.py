"""Client for models that use Anthropic's Messages protocol, through the official SDK."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Mapping
from typing import Any

from engine.models.access import Access
from engine.models.bookkeeping import field, read_count, read_model, read_stop_reason, read_usage
from engine.models.client import Limits, Piece, Request
from engine.models.spec import ModelSpec
from sessions.events import Usage

from .sdk import hidden_variables, http_client
from .sdk_client import SdkClient, server_message, split_system
from .streams import Beat, StreamEnd, StreamItem, next_event, read_text

with hidden_variables():
    import anthropic
    import httpx2

from .faults import TRANSPORT_ERRORS, WILD_ERRORS, refused_parameter

STOP_REASONS = {
    "end_turn": "end",
    "stop_sequence": "end",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
}
OPTIONAL = frozenset({"temperature", "top_p", "output_config", "thinking", "cache_control"})
INPUT_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
"""Counts whose sum is the prompt. The first event of a stream has them; its `output_tokens` is only a beginning."""
ALLOWED_OUTPUT = re.compile(r"max_tokens: \d+ > (\d+)")
BROKEN: tuple[type[Exception], ...] = (anthropic.AnthropicError, *TRANSPORT_ERRORS, *WILD_ERRORS)


class AnthropicClient(SdkClient):
    """One model of Anthropic, or of another server with the same protocol."""

    sdk = anthropic
    broken = BROKEN
    endpoint = "messages"
    path = "/v1/messages"
    models_path = "/v1/models"

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        super().__init__(spec, access, limits, optional=OPTIONAL)
        self._most_output = sys.maxsize

    def _open_sdk(self, spec: ModelSpec, access: Access) -> anthropic.AsyncAnthropic:
        return anthropic.AsyncAnthropic(
            api_key=access.key,
            # The paths have `/v1`.
            base_url=access.url.rstrip("/").removesuffix("/v1"),
            max_retries=0,
            timeout=httpx2.Timeout(None, connect=self._limits.connect_s),
            default_headers=dict(access.headers),
            open_telemetry=False,
            http_client=http_client(anthropic.DefaultAsyncHttpxClient, reply_bytes=self._limits.reply_bytes),
        )

    def _adapt(self, error: Any, parameters: dict[str, Any], remaining: frozenset[str]) -> bool:
        message = server_message(error)
        allowed = ALLOWED_OUTPUT.search(message)
        if allowed and int(allowed[1]) < parameters["max_tokens"]:
            self._most_output = int(allowed[1])
            return True
        refused = refused_parameter(message, None, remaining)
        if refused:
            self._refused.add(refused)
        return refused is not None

    def _parameters(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        system, messages = split_system(request.messages)
        cache = {} if "cache_control" in without else {"cache_control": {"type": "ephemeral"}}
        parameters: dict[str, Any] = {
            "model": self._name,
            "max_tokens": min(request.max_output_tokens, self._most_output),
            "messages": messages,
            "thinking": {"type": "adaptive", "display": "summarized"},
            "temperature": request.temperature,
        }
        if request.top_p is not None:
            parameters["top_p"] = request.top_p
        if request.effort:
            parameters["output_config"] = {"effort": request.effort}
        if system:
            parameters["system"] = [{"type": "text", "text": system, **cache}]
        return parameters

    def _items(self, stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
        return translate_events(stream)


async def translate_events(stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream; usage combines its first event and its last delta.

    After the model reported its stop reason, a broken stream still gives the complete reply. The stream is read past
    the protocol's last event, because only then the connection is free for the next call.
    """
    stop_reason = model = ""
    counts: dict[str, object] = {}
    events = aiter(stream)
    while (event := await next_event(events, finished=bool(stop_reason), broken=BROKEN)) is not None:
        delta: Any = event.get("delta")
        match event.get("type"):
            case "message_start":
                model = read_model(field(event, "message", "model"))
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
        yield StreamEnd(stop_reason, usage_of(counts), model)


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
