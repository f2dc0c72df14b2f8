"""Reads a provider's stream to a complete reply: passes pieces on, keeps each time limit, requires a proper end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from engine.errors import TryAgain, UselessToRetry
from engine.models.client import Limits, Piece, Reply, cut_at
from sessions.events import ServedModel, Usage

EVENT_SHARE = 4
"""Most bytes of one event, for each byte of `reply_bytes`: JSON escapes characters, and an event may repeat the prompt."""
STREAM_SHARE = 64
"""Most bytes of a stream, for each byte of `reply_bytes`: an event of a few hundred bytes brings one token."""
LAST_WORDS_S = 10.0
"""Time limit for token counts and the protocol's end, after the model's last piece."""

NOT_SAMPLING = frozenset(
    {
        "model",
        "messages",
        "input",
        "system",
        "instructions",
        "store",
        "prompt_cache_key",
        "stream_options",
    }
)
"""Parameters of a request that are its prompt, or do not change the reply."""


@dataclass(frozen=True, slots=True)
class StreamEnd:
    """The proper end of a stream; a stream without it is cut."""

    stop_reason: str
    usage: Usage
    model: str = ""
    """The id that the server says it served."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A sign of life without a piece."""


class StreamTooLong(Exception):
    """A stream is longer than its size limit allows."""


StreamItem = Piece | StreamEnd | Beat


async def gather_reply(
    stream: AsyncGenerator[StreamItem, None],
    *,
    limits: Limits,
    on_piece: Callable[[Piece], None],
    endpoint: str,
    parameters: dict[str, Any],
) -> Reply:
    """Returns the reply of a stream; `parameters` were sent to the `endpoint`.

    A reply is complete, or ends at `limits.reply_bytes` without its usage (`Reply.is_cut`).

    Raises `TryAgain`: `silent` if the first piece or the next item is late, `cut` if the stream ends without its
    `StreamEnd`. Raises `UselessToRetry` (`too_slow`) if the reply takes longer than `limits.reply_s`, because a retry
    would cost as much again.
    """
    started = time.monotonic()
    spoken: dict[str, list[str]] = {"reasoning": [], "text": []}
    ending: StreamEnd | None = None
    room = limits.reply_bytes
    try:
        async with asyncio.timeout(limits.reply_s), aclosing(stream):
            while ending is None:
                item = await next_item(stream, limits, started, begun=any(spoken.values()))
                match item:
                    case Piece(kind=kind, text=text):
                        if text:
                            # A lone surrogate is legal JSON, but a journal cannot store it.
                            data = text.encode("utf-8", "replace")
                            item = Piece(kind, data[:room].decode("utf-8", "ignore"))
                            spoken[kind].append(item.text)
                            on_piece(item)
                            room -= len(data)
                    case StreamEnd():
                        ending = item
                    case Beat():
                        pass
                if room < 0:
                    ending = StreamEnd(cut_at(limits.reply_bytes), Usage())
    except StreamTooLong:
        ending = StreamEnd(cut_at(limits.reply_bytes), Usage())
    except TimeoutError:
        raise UselessToRetry(
            "too_slow", f"the reply took more than {limits.reply_s:g} s (limit reply_s)"
        ) from None
    return Reply(
        text="".join(spoken["text"]),
        reasoning="".join(spoken["reasoning"]),
        stop_reason=ending.stop_reason,
        usage=ending.usage,
        seconds=time.monotonic() - started,
        temperature=parameters.get("temperature"),
        served=ServedModel(
            ending.model,
            endpoint,
            {name: value for name, value in parameters.items() if name not in NOT_SAMPLING},
        ),
    )


async def bounded_bytes(
    chunks: AsyncGenerator[bytes, None], *, is_stream: bool, reply_bytes: int
) -> AsyncGenerator[bytes, None]:
    """Yield the decoded bytes of a server's answer, as far as its size limit allows.

    Raises `StreamTooLong` if a stream, or one of its events, is too long. Any other answer ends at `reply_bytes`.
    """
    tail, total, event = b"", 0, 0
    async with aclosing(chunks):
        async for chunk in chunks:
            # The empty line after an event may be spread over two chunks.
            seen = tail + chunk
            end = max(seen.rfind(b"\n\n"), seen.rfind(b"\n\r\n"))
            event = event + len(chunk) if end < 0 else len(seen) - end
            tail, total = seen[-3:], total + len(chunk)
            if not is_stream and total > reply_bytes:
                return
            if event > EVENT_SHARE * reply_bytes or total > STREAM_SHARE * reply_bytes:
                raise StreamTooLong
            yield chunk


async def next_event(
    events: AsyncIterator[object], *, finished: bool, broken: tuple[type[Exception], ...]
) -> dict[str, Any] | None:
    """Returns the next event of an SDK's stream, which is a JSON object; `None` at the stream's end.

    After the model has finished, a stream that breaks, falls silent or cannot be read (an exception of `broken`) ends
    normally: the reply is complete and paid for.
    """
    try:
        async with asyncio.timeout(LAST_WORDS_S if finished else None):
            event = await anext(events)
        if not isinstance(event, dict):
            raise TypeError(f"an event of the stream is no JSON object: {type(event).__name__}")
    except StopAsyncIteration:
        return None
    except broken:
        if not finished:
            raise
        return None
    return event


def read_text(value: object) -> str:
    """Returns the text of a piece, empty for `None`; `TypeError` if it is no text."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise TypeError(f"a piece of the reply is no text: {type(value).__name__}")
    return value


async def next_item(
    stream: AsyncGenerator[StreamItem, None], limits: Limits, started: float, *, begun: bool
) -> StreamItem:
    """Returns the next item of the stream within the time limit."""
    allowed_s = limits.silence_s if begun else limits.first_token_s - (time.monotonic() - started)
    patience = asyncio.timeout(allowed_s)
    try:
        async with patience:
            return await anext(stream)
    except StopAsyncIteration:
        raise TryAgain("cut", "the stream ended without its proper end") from None
    except TimeoutError:
        if not patience.expired():
            raise
        if begun:
            raise TryAgain(
                "silent", f"the stream fell silent for {limits.silence_s:g} s (limit silence_s)"
            ) from None
        raise TryAgain(
            "silent", f"no text came in {limits.first_token_s:g} s (limit first_token_s)"
        ) from None
