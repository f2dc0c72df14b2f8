"""Features of single wire formats: reasoning summaries, prompt caches and limits of the reply length."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine.models import CallKey, open_client
from sessions.events import Message, Role
from tests.support.engine.model_calls import Received, connected, ignore, request
from tests.support.engine.model_server import Answer, Seen, refuses, says


def test_openai_uses_responses_and_other_servers_use_chat_completions() -> None:
    environ = {"OPENAI_API_KEY": "k", "GEMINI_API_KEY": "k"}
    kinds = {
        model: type(open_client(model, environ=environ, home_recordings=Path("none"))).__name__
        for model in ("openai:x", "openai:x@http://127.0.0.1:1/v1", "gemini:x")
    }
    assert list(kinds.values()) == ["ResponsesClient", "OpenAIClient", "OpenAIClient"]


async def test_reasoning_summary_is_requested_and_streams_by_paragraph() -> None:
    received, summary = Received(), "**Plan**\n\nTiles of 128 rows.\n\nThen a loop."
    async with connected("responses", says("done", reasoning=summary)) as (client, server):
        reply = await received.ask(client, request())
    [seen] = server.requests
    assert reply.reasoning == received.text_of("reasoning") == summary
    assert reply.text == "done"
    assert seen.body["reasoning"] == {"summary": "auto"}
    assert seen.body["store"] is False


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'reasoning.summary' is not supported with this model.",
        "Your organization must be verified to generate reasoning summaries.",
    ],
)
async def test_refused_reasoning_summary_is_left_out(message: str) -> None:
    def answer(seen: Seen) -> Answer:
        return refuses(400, message=message) if "reasoning" in seen.body else says("plain")

    async with connected("responses", answer=answer) as (client, server):
        for _ in range(2):
            assert (await client.reply(request(), ignore)).temperature == 1.0
    assert ["reasoning" in seen.body for seen in server.requests] == [True, False, False]


async def test_calls_of_an_instance_share_a_cache_key_without_the_task_name() -> None:
    keys = [
        CallKey(task="mine/secret_kernel", instance=instance, attempt=attempt, role=Role.GENERATOR, n=1)
        for instance, attempt in ((1, 1), (1, 2), (2, 1))
    ]
    async with connected("responses", answer=lambda _: says("yes")) as (client, server):
        for key in keys:
            await client.reply(msgspec.structs.replace(request(), key=key), ignore)
    first, second, third = (seen.body["prompt_cache_key"] for seen in server.requests)
    assert first == second != third
    assert "secret_kernel" not in repr([seen.body for seen in server.requests])


async def test_system_text_of_anthropic_is_cached_unless_the_server_refuses() -> None:
    def answer(seen: Seen) -> Answer:
        if "cache_control" in seen.body["system"][0]:
            return refuses(400, message="system.0.cache_control: Extra inputs are not permitted")
        return says("yes")

    async with connected("anthropic", answer=answer) as (client, server):
        await client.reply(request(system="knowledge first"), ignore)
    first, second = (seen.body["system"] for seen in server.requests)
    assert first == [{"type": "text", "text": "knowledge first", "cache_control": {"type": "ephemeral"}}]
    assert second == [{"type": "text", "text": "knowledge first"}]


@pytest.mark.parametrize(("wire", "limit"), [("openai", "max_tokens"), ("responses", "max_output_tokens")])
async def test_refused_token_limit_is_left_out(wire: str, limit: str) -> None:
    def answer(seen: Seen) -> Answer:
        return refuses(400, message=f"{limit} is too large: 32000") if limit in seen.body else says("yes")

    async with connected(wire, answer=answer) as (client, server):
        assert (await client.reply(request(), ignore)).text == "yes"
    assert [limit in seen.body for seen in server.requests] == [True, False]


async def test_messages_are_sent_in_order_with_a_separate_system_text() -> None:
    turns = tuple(Message(role, role[0]) for role in ("system", "user", "assistant", "user"))
    async with connected("responses", says("yes")) as (client, server):
        await client.reply(msgspec.structs.replace(request(), messages=turns), ignore)
    [seen] = server.requests
    assert seen.body["instructions"] == "s"
    assert [(turn["role"], turn["content"]) for turn in seen.body["input"]] == [
        ("user", "u"), ("assistant", "a"), ("user", "u"),
    ]  # fmt: skip
