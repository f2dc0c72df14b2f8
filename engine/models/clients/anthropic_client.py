"""Client for models that use Anthropic's Messages protocol, through the official SDK."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Iterable, Mapping, Sequence
from typing import Any

from engine.models.access import Access
from engine.models.bookkeeping import field, read_count, read_model, read_stop_reason, read_usage
from engine.models.client import Limits, Piece, Request
from engine.models.spec import ModelSpec
from engine.models.tool_calls import Turn, read_object, shown_arguments, shown_name
from sessions.events import Message, Usage

from .sdk import hidden_variables, http_client
from .sdk_client import SdkClient, server_message, split_system
from .streams import Beat, Ending, StreamItem, next_event, read_text

with hidden_variables():
    import anthropic
    import httpx2

from .faults import TRANSPORT_ERRORS, WILD_ERRORS, refused_parameter

STOP_REASONS = {
    "end_turn": "end",
    "tool_use": "end",
    "stop_sequence": "end",
    "max_tokens": "truncated",
    "model_context_window_exceeded": "truncated",
}
OPTIONAL = frozenset({"temperature", "thinking", "cache_control"})
DELTAS = {"text": "text", "thinking": "thinking", "signature": "signature", "partial_json": "input"}
"""Fields of a delta, and the fields of a content block that they continue."""
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
        turns = wire_turns(messages)
        if request.tools and turns:
            # Each call of a conversation repeats the one before.
            turns[-1]["content"][-1] |= cache
        parameters: dict[str, Any] = {
            "model": self._name,
            "max_tokens": min(request.max_output_tokens, self._most_output),
            "messages": turns,
            "thinking": {"type": "adaptive", "display": "summarized"},
            "temperature": request.temperature,
        }
        if system:
            parameters["system"] = [{"type": "text", "text": system, **cache}]
        if request.tools:
            parameters["tools"] = [
                {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
                for tool in request.tools
            ]
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
    blocks: dict[object, dict[str, Any]] = {}
    events = aiter(stream)
    while (event := await next_event(events, finished=bool(stop_reason), broken=BROKEN)) is not None:
        delta: Any = event.get("delta")
        kept_bytes = 0
        match event.get("type"):
            case "message_start":
                model = read_model(field(event, "message", "model"))
                _update_counts(counts, field(event, "message", "usage"), INPUT_COUNTS)
            case "content_block_start":
                block = blocks[event.get("index")] = dict(event.get("content_block") or {})
                kept_bytes = len(str(block))
                if block.get("type") == "tool_use":
                    yield Piece("text", shown_name(block.get("name")))
            case "content_block_delta":
                add_delta(blocks.setdefault(event.get("index"), {}), delta)
                if delta["type"] == "text_delta":
                    yield Piece("text", read_text(delta["text"]))
                elif delta["type"] == "thinking_delta":
                    yield Piece("reasoning", read_text(delta["thinking"]))
                else:
                    kept_bytes = len(str(delta.get("partial_json") or delta.get("signature") or ""))
            case "content_block_stop":
                block = blocks.get(event.get("index"), {})
                if block.get("type") == "tool_use":
                    yield Piece("text", shown_arguments(read_object(block.get("input"))))
            case "message_delta":
                stop_reason = read_stop_reason(field(delta, "stop_reason"), STOP_REASONS) or stop_reason
                _update_counts(counts, event.get("usage"), (*INPUT_COUNTS, "output_tokens"))
            case "message_stop":
                stop_reason = stop_reason or "end"
            case _:
                pass
        yield Beat(kept_bytes)
    if stop_reason:
        yield Ending(stop_reason, usage_of(counts), model, turn_of(blocks.values()))


def add_delta(block: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add a streamed part to a content block. The input of a tool is text until the block is complete."""
    for key, name in DELTAS.items():
        if key in delta:
            block[name] = (block.get(name) or "") + read_text(delta[key])


def turn_of(blocks: Iterable[dict[str, Any]]) -> Turn:
    """Returns a reply with tool calls as the next request repeats it; empty if it has none.

    The server refuses an empty text, reasoning without its signature, and an input that is no JSON object.
    """
    turn = []
    for block in blocks:
        if block.get("type") == "tool_use":
            arguments = read_object(block.get("input"))
            turn.append(
                {**block, "input": arguments if isinstance(arguments, dict) else {"malformed": arguments}}
            )
        elif block.get({"text": "text", "thinking": "signature"}.get(block.get("type", ""), "type")):
            turn.append(block)
    return turn if any(block["type"] == "tool_use" for block in turn) else ()


def wire_turns(messages: Sequence[Message]) -> list[dict[str, Any]]:
    """Returns messages as the protocol has them: answers of tools and words of a user in a row are one turn."""
    turns: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        blocks = [*message.turn] or [
            {"type": "tool_result", "tool_use_id": message.answers, "content": message.content}
            if message.role == "tool"
            else {"type": "text", "text": message.content}
        ]
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


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
