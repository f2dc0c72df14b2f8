"""Client for OpenAI's chat completions protocol: servers behind an `@URL`, Azure deployments, Gemini."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from typing import Any

import msgspec

from engine.models.access import Access
from engine.models.bookkeeping import field, read_count, read_model, read_stop_reason, read_usage
from engine.models.client import Limits, Piece, Request
from engine.models.spec import ModelSpec
from engine.models.tool_calls import Turn, read_object, shown_arguments, shown_name
from sessions.events import Message, Usage

from .openai_wire import BROKEN, OpenAIWire
from .streams import Beat, Ending, StreamItem, next_event, read_text

STOP_REASONS = {"stop": "end", "tool_calls": "end", "length": "truncated"}
CALL_BYTES = 1000
"""Bytes for which each call of a tool counts besides its arguments."""
REASONING = ("reasoning_content", "reasoning")
"""Names of streamed reasoning in compatible servers. Those with the first name want it back with the tool calls."""


class OpenAIClient(OpenAIWire):
    """One model of a server with chat completions (vLLM, SGLang, Ollama, LM Studio, Azure, Gemini)."""

    endpoint = "chat"
    path = "/chat/completions"

    def __init__(self, spec: ModelSpec, access: Access, limits: Limits) -> None:
        # OpenAI's reasoning models, also on Azure, refuse the old name; many other servers do not know the new name.
        output = "max_completion_tokens" if spec.provider == "azure" else "max_tokens"
        super().__init__(spec, access, limits, output=output, optional=frozenset({"stream_options"}))

    def _parameters(self, request: Request, without: frozenset[str]) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self._name,
            "messages": list(map(wire_message, request.messages)),
            "temperature": request.temperature,
            "stream_options": {"include_usage": True},
            self._output: request.max_output_tokens,
        }
        tools = [{"type": "function", "function": msgspec.structs.asdict(tool)} for tool in request.tools]
        return parameters | ({"tools": tools} if tools else {})

    def _items(self, stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
        return translate_chunks(stream)


def wire_message(message: Message) -> dict[str, Any]:
    """Returns a message as the protocol has it."""
    if message.role == "tool":
        return {"role": "tool", "tool_call_id": message.answers, "content": message.content}
    return message.turn[0] if message.turn else {"role": message.role, "content": message.content}


async def translate_chunks(stream: AsyncIterable[object]) -> AsyncGenerator[StreamItem, None]:
    """Yield the pieces and the end of an SDK stream.

    After the model reported its stop reason, an error before the usage still gives the complete reply. A usage before
    the stop reason does not count, because servers that send it count only the tokens so far.
    """
    stop_reason = model = content = reasoning = ""
    usage = Usage()
    calls: list[dict[str, Any]] = []
    chunks = aiter(stream)
    while (chunk := await next_event(chunks, finished=bool(stop_reason), broken=BROKEN)) is not None:
        model = read_model(chunk.get("model")) or model
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        delta: Any = field(choice, "delta") or {}
        yield Piece("reasoning", reasoning_of(delta, *REASONING))
        yield Piece("text", text := read_text(delta.get("content")))
        content += text
        reasoning += reasoning_of(delta, REASONING[0])
        kept_bytes = 0
        for part in delta.get("tool_calls") or ():
            kept_bytes += len(str(field(part, "function", "arguments") or ""))
            if add_part(calls, part):
                yield Beat(CALL_BYTES)
                yield Piece("text", arguments_of(calls[:-1]) + shown_name(calls[-1]["function"]["name"]))
        stop_reason = read_stop_reason(field(choice, "finish_reason"), STOP_REASONS) or stop_reason
        if stop_reason and chunk.get("usage") is not None:
            usage = usage_of(chunk["usage"])
        yield Beat(kept_bytes)
    if stop_reason:
        yield Piece("text", arguments_of(calls))
        yield Ending(stop_reason, usage, model, turn_of(content, reasoning, calls))


def add_part(calls: list[dict[str, Any]], part: dict[str, Any]) -> bool:
    """Add a streamed part of a tool call; returns whether it begins one.

    Servers may send a whole call in one part without an index, or with the same index for all; then a new id begins a call.
    Other fields of a call, such as Gemini's signature of its reasoning, are kept.
    """
    index, function = part.get("index"), dict(part.get("function") or {})
    call = next((call for call in reversed(calls) if call["index"] == index is not None), None)
    if call is None and index is None and calls and not function.get("name"):
        call = calls[-1]
    if call is None or part.get("id") not in (None, "", call["id"]):
        identity = part.get("id") or f"call_{len(calls) + 1}"
        function = {"name": "", "arguments": ""} | {key: text or "" for key, text in function.items()}
        calls.append({**part, "index": index, "id": identity, "type": "function", "function": function})
        return True
    call["function"]["name"] += read_text(function.get("name"))
    call["function"]["arguments"] += read_text(function.get("arguments"))
    return False


def arguments_of(calls: Sequence[dict[str, Any]]) -> str:
    """Returns the arguments of the latest call for people; empty if there is none."""
    return shown_arguments(read_object(calls[-1]["function"]["arguments"])) if calls else ""


def turn_of(content: str, reasoning: str, calls: Sequence[dict[str, Any]]) -> Turn:
    """Returns a reply with tool calls as the next request repeats it; empty if it has none."""
    if not calls:
        return ()
    spoken = {"reasoning_content": reasoning} if reasoning else {}
    kept = [{name: value for name, value in call.items() if name != "index"} for call in calls]
    return [{"role": "assistant", "content": content or None, **spoken, "tool_calls": kept}]


def reasoning_of(delta: object, *names: str) -> str:
    """Returns streamed reasoning, under the first of these names that has any."""
    for name in names:
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
