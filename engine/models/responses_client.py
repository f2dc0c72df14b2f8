"""Client for OpenAI's own models, through the Responses API, which streams summaries of the reasoning."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

from engine.errors import ModelError
from sessions.events import Usage

from .access import Access
from .client import CallKey, Limits, Piece, Request
from .openai_wire import BROKEN, OpenAIWire, in_stream
from .spec import ModelSpec
from .streams import Beat, Ending, StreamItem, next_event

OPTIONAL = frozenset({"reasoning", "prompt_cache_key"})
STOP_REASONS = {"max_output_tokens": "truncated"}


class ResponsesClient(OpenAIWire):
    """One model of OpenAI. A model without reasoning refuses `reasoning` and is then asked without it."""

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        super().__init__(spec, access, limits, output="max_output_tokens", optional=OPTIONAL)

    def _parameters(self, request: Request) -> dict[str, Any]:
        system = "\n\n".join(message.content for message in request.messages if message.role == "system")
        parameters: dict[str, Any] = {
            "model": self._name,
            "input": [
                {"role": message.role, "content": message.content}
                for message in request.messages
                if message.role != "system"
            ],
            "temperature": request.temperature,
            "reasoning": {"summary": "auto"},
            "prompt_cache_key": cache_key(request.key),
            # The journal keeps the conversation; the provider does not have to.
            "store": False,
            self._output: request.max_output_tokens,
        }
        return parameters | ({"instructions": system} if system else {})

    async def _open(self, parameters: dict[str, Any]) -> Any:
        return await self._sdk.responses.create(stream=True, **parameters)

    def _items(self, stream: Any) -> AsyncGenerator[StreamItem, None]:
        return translate_events(stream, self._secrets)


def cache_key(key: CallKey) -> str:
    """Returns a key that sends all calls of an instance to the same cache, because their prompts begin alike.

    It is a digest, because names of tasks may be private.
    """
    return hashlib.sha256(f"{key.task}#{key.instance}".encode()).hexdigest()[:32]


async def translate_events(stream: Any, secrets: Sequence[str]) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream; parts of a summary or a text are separate paragraphs.

    The stream is read past the protocol's last event, because only then the connection is free for the next call.
    """
    spoken: set[str] = set()
    ending: Ending | ModelError | None = None
    events = aiter(stream)
    while event := await next_event(events, finished=ending is not None, broken=BROKEN):
        if ending is not None:
            continue
        match event.type:
            case "response.reasoning_summary_part.added" if "reasoning" in spoken:
                yield Piece("reasoning", "\n\n")
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                spoken.add("reasoning")
                yield Piece("reasoning", event.delta)
            case "response.content_part.added" if "text" in spoken:
                yield Piece("text", "\n\n")
            case "response.output_text.delta" | "response.refusal.delta":
                spoken.add("text")
                yield Piece("text", event.delta)
            case _:
                ending = ending_of(event, secrets)
                yield Beat()
    if isinstance(ending, ModelError):
        raise ending
    if ending is not None:
        yield ending


def ending_of(event: Any, secrets: Sequence[str]) -> Ending | ModelError | None:
    """Returns the end of the stream if this event is its last; else `None`."""
    match event.type:
        case "response.completed":
            return Ending("end", usage_of(event.response.usage))
        case "response.incomplete":
            reason = getattr(event.response.incomplete_details, "reason", None) or "incomplete"
            return Ending(STOP_REASONS.get(reason, reason), usage_of(event.response.usage))
        case "response.failed":
            error = event.response.error
            message = getattr(error, "message", "no reason given")
            return in_stream(getattr(error, "code", None), None, message, secrets)
        case "error":
            return in_stream(event.code, None, event.message or "no reason given", secrets)
        case _:
            return None


def usage_of(usage: Any) -> Usage:
    """Returns the usage; cached tokens are included in the input tokens, reasoning in the output tokens."""
    if usage is None:
        return Usage()
    details = getattr(usage, "input_tokens_details", None)
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cached_tokens=getattr(details, "cached_tokens", None),
        cache_write_tokens=getattr(details, "cache_write_tokens", None),
    )
