"""Client for OpenAI's own models, through the Responses API, which streams summaries of the reasoning."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any

from engine.errors import ModelError
from engine.models.access import Access
from engine.models.bookkeeping import field, read_model, read_stop_reason, read_usage
from engine.models.client import CallKey, Limits, Piece, Request
from engine.models.spec import ModelSpec
from sessions.events import Usage

from .openai_client import BROKEN, OpenAIWire
from .sdk_client import in_stream, split_system
from .streams import Beat, StreamEnd, StreamItem, next_event, read_text

OPTIONAL = frozenset({"reasoning", "prompt_cache_key"})
STOP_REASONS = {"max_output_tokens": "truncated"}


class ResponsesClient(OpenAIWire):
    """One model of OpenAI. A model without reasoning refuses `reasoning` and is then asked without it."""

    endpoint = "responses"
    path = "/responses"

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        super().__init__(spec, access, limits, output="max_output_tokens", optional=OPTIONAL)

    def _parameters(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        system, messages = split_system(request.messages)
        parameters: dict[str, Any] = {
            "model": self._name,
            "input": messages,
            "temperature": request.temperature,
            "reasoning": {"summary": "auto"} | ({"effort": request.effort} if request.effort else {}),
            "prompt_cache_key": cache_key(request.key),
            # The journal keeps the conversation; the provider does not have to.
            "store": False,
            self._output: request.max_output_tokens,
            **({} if request.top_p is None else {"top_p": request.top_p}),
        }
        return parameters | ({"instructions": system} if system else {})

    def _items(self, stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
        return translate_events(stream, self._secrets)


def cache_key(key: CallKey) -> str:
    """Returns a key that sends all calls of an instance to the same cache, because their prompts begin alike.

    It is a digest, because names of tasks may be private.
    """
    return hashlib.sha256(f"{key.task}#{key.instance}".encode()).hexdigest()[:32]


async def translate_events(
    stream: AsyncIterable[object], secrets: Sequence[str]
) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream; parts of a summary or a text are separate paragraphs.

    The stream is read past the protocol's last event, because only then the connection is free for the next call.
    """
    spoken: set[str] = set()
    ending: StreamEnd | ModelError | None = None
    events = aiter(stream)
    while (event := await next_event(events, finished=ending is not None, broken=BROKEN)) is not None:
        if ending is not None:
            continue
        match event.get("type"):
            case "response.reasoning_summary_part.added" if "reasoning" in spoken:
                yield Piece("reasoning", "\n\n")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                spoken.add("reasoning")
                yield Piece("reasoning", read_text(event.get("delta")))
            case "response.content_part.added" if "text" in spoken:
                yield Piece("text", "\n\n")
            case "response.output_text.delta" | "response.refusal.delta":
                spoken.add("text")
                yield Piece("text", read_text(event.get("delta")))
            case _:
                ending = ending_of(event, secrets)
        yield Beat()
    if isinstance(ending, ModelError):
        raise ending
    if ending is not None:
        yield ending


def ending_of(event: dict[str, Any], secrets: Sequence[str]) -> StreamEnd | ModelError | None:
    """Returns the end of the stream if this event is its last; else `None`."""
    model = read_model(field(event, "response", "model"))
    match event.get("type"):
        case "response.completed":
            return StreamEnd("end", usage_of(field(event, "response", "usage")), model)
        case "response.incomplete":
            reason = field(event, "response", "incomplete_details", "reason") or "incomplete"
            usage = usage_of(field(event, "response", "usage"))
            return StreamEnd(read_stop_reason(reason, STOP_REASONS), usage, model)
        case "response.failed":
            error = field(event, "response", "error")
            return in_stream(field(error, "code"), None, field(error, "message"), secrets)
        case "error":
            return in_stream(event.get("code"), None, event.get("message"), secrets)
        case _:
            return None


def usage_of(usage: object) -> Usage:
    """Returns the usage; cached tokens are included in the input tokens, reasoning in the output tokens."""
    return read_usage(
        input_tokens=field(usage, "input_tokens"),
        output_tokens=field(usage, "output_tokens"),
        cached_tokens=field(usage, "input_tokens_details", "cached_tokens"),
        cache_write_tokens=field(usage, "input_tokens_details", "cache_write_tokens"),
    )
