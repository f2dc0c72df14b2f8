"""Odd bookkeeping of a server: the reply is kept, and a count that cannot be right is unknown."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec
import pytest

from engine.errors import ModelError
from engine.models.bookkeeping import MOST_TOKENS
from sessions.events import Usage
from tests.support.engine.model_calls import WIRES, connected, ignore, request
from tests.support.engine.model_server import Answer, named

USAGE = Usage(input_tokens=100, output_tokens=10, cached_tokens=40, cache_write_tokens=30)
NAMES = {
    "anthropic": ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"),
    "openai": ("prompt_tokens", "completion_tokens", "cached_tokens", "cache_write_tokens"),
    "responses": Usage.__struct_fields__,
}
"""Names of the counts by wire format, in the order of `Usage`."""
STOP_NAMES = {"anthropic": "stop_reason", "openai": "finish_reason", "responses": "reason"}
NO_COUNTS = (
    -1, -2.0, 8.5, 1e30, 10**30, MOST_TOKENS + 1, float("nan"), float("inf"), "1000", "NaN", True, [1, 2], {"a": 1},
)  # fmt: skip
NO_OBJECTS = ([1, 2], "text", 7, True, {}, None)
NO_WORDS = (7, 1.5, True, [1], {"a": 1}, "\ud83d", "two\nlines", "x" * 1000)


class Case(NamedTuple):
    """An oddity of a reply, and the usage and stop reason that the reply gets."""

    odd: dict[str, Any]
    usage: Usage = USAGE
    stop: str = "truncated"


def odd_cases(wire: str) -> list[Case]:
    cases = [Case({"id": 7, "model": [1], "created": "now", "object": None, "role": 7, "index": "first"})]
    cases += [Case({"usage": value}, Usage()) for value in NO_OBJECTS]
    cases += [Case({STOP_NAMES[wire]: value}, stop="unknown") for value in NO_WORDS]
    for place, sent in enumerate(NAMES[wire]):
        field = Usage.__struct_fields__[place]
        unknown = {field: None}
        if wire == "anthropic" and field.startswith("cache"):
            unknown["input_tokens"] = None  # the sum of three counts, of which one is unknown
        cases += [Case({sent: value}, msgspec.structs.replace(USAGE, **unknown)) for value in NO_COUNTS]
    cases.append(Case({NAMES[wire][1]: 10.0}))
    if wire == "anthropic":
        return cases
    details = "prompt_tokens_details" if wire == "openai" else "input_tokens_details"
    cases += [Case({details: value}, Usage(100, 10)) for value in NO_OBJECTS]
    cases += [Case({"total_tokens": value}) for value in NO_COUNTS]
    cases.append(Case({NAMES[wire][2]: 101}, Usage(100, 10)))
    return cases


@pytest.mark.parametrize("wire", WIRES)
async def test_reply_is_kept_whatever_its_bookkeeping_says(wire: str) -> None:
    cases = odd_cases(wire)
    plain = Answer("kept", stop="truncated", written_tokens=30)
    async with connected(wire, *(replace(plain, odd=case.odd) for case in cases)) as (client, _):
        for case in cases:
            reply = await client.reply(request(), ignore)
            assert (reply.text, reply.stop_reason, reply.usage) == ("kept", case.stop, case.usage), case.odd


@pytest.mark.parametrize("wire", ["anthropic", "openai"])
async def test_output_count_from_before_the_end_is_unknown(wire: str) -> None:
    usage = {"input_tokens": 100, "output_tokens": 1, "prompt_tokens": 100, "completion_tokens": 1}
    frames = {
        "anthropic": (
            named("message_start", {"message": {"usage": usage}}),
            named("message_delta", {"delta": {"stop_reason": "end_turn"}}),
        ),
        "openai": (
            named("chunk", {"choices": [{"delta": {"content": "so far"}}], "usage": usage}),
            named("chunk", {"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        ),
    }[wire]
    async with connected(wire, Answer(raw=b"".join(frames))) as (client, _):
        reply = await client.reply(request(), ignore)
    assert (reply.stop_reason, reply.usage.output_tokens) == ("end", None)


@pytest.mark.parametrize("wire", WIRES)
async def test_reply_with_a_stop_reason_is_kept_if_nonsense_follows(wire: str) -> None:
    last = {
        "anthropic": named(
            "message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 10}}
        ),
        "openai": named("chunk", {"choices": [{"delta": {}, "finish_reason": "stop"}]}),
        "responses": named("response.completed", {"response": None}),
    }[wire]
    nonsense = (b"{not json", b"[1, 2]", b"7", b"null", b'{"error": {"type": "api_error"}}', b"9" * 5000)
    async with connected(
        wire,
        *(Answer(raw=last + b"event: error\ndata: " + data + b"\n\n") for data in nonsense),
        *(Answer(raw=last + b"event: message_stop\ndata: " + data + b"\n\n") for data in nonsense),
    ) as (client, _):
        for _ in range(2 * len(nonsense)):
            assert (await client.reply(request(), ignore)).stop_reason == "end"


@pytest.mark.parametrize("wire", WIRES)
async def test_odd_error_of_a_server_is_a_model_error(wire: str) -> None:
    errors = (
        [1], 7, "\ud83d", {"type": 7, "code": 429, "message": [1]},
        {"type": [1], "code": {}, "message": "\ud83d"}, None,
    )  # fmt: skip
    failed = "response.failed" if wire == "responses" else "error"
    script = (
        *(Answer(status=400, raw=json.dumps({"error": error}).encode()) for error in errors),
        *(Answer(raw=named("error", {"error": error, "code": error, "message": error})) for error in errors),
        *(Answer(raw=named(failed, {"response": {"error": error}, "error": error})) for error in errors),
    )
    async with connected(wire, *script) as (client, _):
        for answer in script:
            with pytest.raises(ModelError) as caught:
                await client.reply(request(), ignore)
            assert caught.value.message.encode(), answer
