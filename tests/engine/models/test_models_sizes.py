"""The size limit of a reply: a server that never stops costs neither memory nor a second call."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from engine.errors import TryAgain, UselessToRetry
from engine.models import Limits, Reply
from engine.models.clients.recorded import bounded
from sessions.events import Usage
from tests.support.engine.model_calls import WIRES, Received, connected, ignore, request
from tests.support.engine.model_server import Answer, named, refuses, says

SMALL = Limits(connect_s=60, first_token_s=60, silence_s=60, reply_s=60, reply_bytes=2000)
"""Streams may have 128,000 bytes with these limits."""
WORDS = "wait, " * 40


def chunk(**delta: Any) -> bytes:
    """Return one chunk of chat completions."""
    return (
        b"data: "
        + json.dumps({"model": "test", "choices": [{"index": 0, "delta": delta}]}).encode()
        + b"\n\n"
    )


def endless(wire: str, kind: str) -> bytes:
    """Return an event of reasoning or text, to be sent for ever."""
    match wire, kind:
        case "anthropic", _:
            name = "thinking" if kind == "reasoning" else "text"
            delta = {"type": f"{name}_delta", name: WORDS}
            return named("content_block_delta", {"index": 0, "delta": delta})
        case "openai", _:
            return chunk(**{"reasoning_content" if kind == "reasoning" else "content": WORDS})
        case _:
            event = "reasoning_summary_text" if kind == "reasoning" else "output_text"
            return named(f"response.{event}.delta", {"delta": WORDS})


@pytest.mark.parametrize("kind", ["reasoning", "text"])
@pytest.mark.parametrize("wire", WIRES)
async def test_reply_without_end_is_cut_and_kept(wire: str, kind: str) -> None:
    received = Received()
    async with connected(wire, Answer(raw=b"", endless=endless(wire, kind)), limits=SMALL) as (
        client,
        server,
    ):
        reply = await received.ask(client, request(), SMALL)
    assert (reply.stop_reason, reply.is_cut) == ("cut at 2,000 bytes", True)
    assert (reply.usage, received.retries, len(server.requests)) == (Usage(), [], 1)
    assert (reply.reasoning, reply.text) == (received.text_of("reasoning"), received.text_of("text"))
    assert len((reply.reasoning + reply.text).encode()) == 2000


@pytest.mark.parametrize(
    "lines",
    [b"data: x" + b"x" * 3000, b"data: y\n" * 400, b": keep-alive\n\n" * 200],
    ids=["line", "event", "beats"],
)
@pytest.mark.parametrize("wire", WIRES)
async def test_stream_without_an_event_is_cut(wire: str, lines: bytes) -> None:
    async with connected(wire, Answer(raw=b"", endless=lines), limits=SMALL) as (client, _):
        reply = await client.reply(request(), ignore)
    assert (reply.text, reply.stop_reason) == ("", "cut at 2,000 bytes")


@pytest.mark.parametrize("wire", WIRES)
async def test_long_page_of_an_error_keeps_its_error(wire: str) -> None:
    big = b"<html>" + b"no " * 100_000
    page = Answer(raw=big, endless=big, content_type="text/html")
    zipped = Answer(status=503, raw=gzip.compress(bytes(10_000_000)), headers={"content-encoding": "gzip"})
    async with connected(wire, page, Answer(status=400, raw=big), zipped, limits=SMALL) as (client, _):
        for error, reason in (
            (TryAgain, "garbage"),
            (UselessToRetry, "bad_request"),
            (TryAgain, "server_error"),
        ):
            with pytest.raises(error) as caught:
                await client.reply(request(), ignore)
            assert caught.value.reason == reason
            assert len(caught.value.message) < 1000


@pytest.mark.parametrize("wire", WIRES)
async def test_long_reply_within_its_limit_is_whole(wire: str) -> None:
    text = "é" * 900
    async with connected(wire, says(text), refuses(400), limits=SMALL) as (client, _):
        reply = await client.reply(request(), ignore)
    assert (reply.text, reply.stop_reason) == (text, "end")


def test_long_recorded_reply_is_cut() -> None:
    recorded = Reply(text="t" * 100, reasoning="r" * 60)
    reply = bounded(recorded, 100)
    assert (len(reply.reasoning), reply.text, reply.stop_reason) == (60, "t" * 40, "cut at 100 bytes")
    assert bounded(recorded, 160) == recorded
