"""SDK clients against a model server: every reply and every fault in each wire format."""

from __future__ import annotations

import asyncio
import os

import pytest

from engine.errors import ContextTooLong, GaveUp, ModelError, TryAgain, UselessToRetry
from engine.models import Limits
from engine.run.calls import sampled
from sessions.events import Usage
from sessions.settings import Sampling
from tests.support.engine.model_calls import BRISK, WIRES, Received, client_of, connected, ignore, request
from tests.support.engine.model_server import Answer, Seen, cuts, garbage, hangs, model_server, refuses, says

pytestmark = pytest.mark.parametrize("wire", WIRES)
LONG = (
    "a reply of some length that comes in several pieces, so that it can break off between two of them. " * 3
)


async def fail(wire: str, *answers: Answer, limits: Limits = BRISK) -> list[ModelError]:
    """Return the error of one try for each answer."""
    errors = []
    async with connected(wire, *answers, limits=limits) as (client, server):
        for n in range(1, len(answers) + 1):
            with pytest.raises(ModelError) as caught:
                await client.reply(request(), ignore)
            errors.append(caught.value)
            assert len(server.requests) <= n, "a try is one request"
    return errors


async def test_reply_streams_in_order_with_reasoning_and_usage(wire: str) -> None:
    received = Received()
    answer = says(
        LONG, reasoning="let me think about tiles " * 3, input_tokens=100, cached_tokens=40, output_tokens=70
    )
    async with connected(wire, answer) as (client, _):
        reply = await received.ask(client, request())
    assert reply.text == received.text_of("text") == LONG
    assert reply.reasoning == received.text_of("reasoning") == "let me think about tiles " * 3
    assert [piece.kind for piece in received.pieces] == sorted(piece.kind for piece in received.pieces)
    assert reply.stop_reason == "end"
    assert reply.usage == Usage(input_tokens=100, output_tokens=70, cached_tokens=40)
    assert reply.temperature == 1.0
    assert reply.seconds > 0
    assert received.retries == []


async def test_reply_says_which_model_answered_and_how_it_was_asked(wire: str) -> None:
    async with connected(wire, Answer("yes", odd={"model": "test-20261101"})) as (client, _):
        served = (await client.reply(request("the question", system="the rules"), ignore)).served
    assert served is not None
    assert (served.model, served.endpoint) == (
        "test-20261101",
        {"anthropic": "messages", "openai": "chat", "responses": "responses"}[wire],
    )
    assert served.parameters["temperature"] == 1.0
    assert 32_000 in served.parameters.values()
    assert "the question" not in str(served.parameters)
    assert "the rules" not in str(served.parameters)


async def test_request_contains_the_messages_and_parameters(wire: str) -> None:
    async with connected(wire, says("yes")) as (client, server):
        await client.reply(request("the question", system="the rules"), ignore)
    [seen] = server.requests
    assert seen.prompt == "the rules\n\nthe question"
    assert seen.body["temperature"] == 1.0
    assert seen.body["stream"] is True
    assert seen.body["model"] == "test"
    assert seen.body["max_output_tokens" if wire == "responses" else "max_tokens"] == 32_000


async def test_top_p_and_effort_are_sent_where_the_plan_names_them(wire: str) -> None:
    key = request().key
    plan = {"all": Sampling(temperature=0.3, top_p=0.9), key.role: Sampling(temperature=0.7, effort="high")}
    async with connected(wire, says("yes"), says("yes")) as (client, server):
        await client.reply(sampled(request(), plan), ignore)
        await client.reply(sampled(request(), {}), ignore)
    sampled_body, plain_body = (seen.body for seen in server.requests)
    assert (sampled_body["temperature"], sampled_body["top_p"]) == (0.7, 0.9), (
        "the role's own value, else that for all"
    )
    efforts = {
        "anthropic": ("output_config", {"effort": "high"}),
        "openai": ("reasoning_effort", "high"),
        "responses": ("reasoning", {"summary": "auto", "effort": "high"}),
    }
    name, value = efforts[wire]
    assert sampled_body[name] == value
    assert plain_body["temperature"] == 1.0
    assert "top_p" not in plain_body
    assert plain_body.get(name) in (None, {"summary": "auto"})


async def test_reply_is_whole_if_the_server_hangs_after_the_stop_reason(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.models.clients.streams.LAST_WORDS_S", 0.2)
    async with connected(wire, Answer(text=LONG, lingers=True)) as (client, server):
        reply = await client.reply(request(), ignore)
    assert (reply.text, reply.stop_reason, len(server.requests)) == (LONG, "end", 1)


async def test_lone_surrogate_in_a_reply_is_replaced(wire: str) -> None:
    async with connected(wire, says("ok \ud83d end")) as (client, _):
        reply = await client.reply(request(), ignore)
    assert reply.text == "ok ? end"


async def test_http_status_gives_its_error(wire: str) -> None:
    cases: list[tuple[int, str, type[ModelError], str]] = [
        (429, "", TryAgain, "rate_limited"), (500, "", TryAgain, "server_error"),
        (502, "", TryAgain, "server_error"), (503, "", TryAgain, "server_error"),
        (529, "", TryAgain, "overloaded"), (408, "", TryAgain, "server_error"),
        (400, "", UselessToRetry, "bad_request"), (401, "", UselessToRetry, "bad_key"),
        (403, "", UselessToRetry, "bad_key"), (404, "", UselessToRetry, "unknown_model"),
        (405, "", UselessToRetry, "bad_request"), (429, "insufficient_quota", UselessToRetry, "no_credit"),
        (413, "", ContextTooLong, "context_too_long"),
    ]  # fmt: skip
    errors = await fail(
        wire, *(refuses(status, kind=kind, message="words of the server") for status, kind, _, _ in cases)
    )
    for (status, kind, error, reason), caught in zip(cases, errors, strict=True):
        assert (type(caught), caught.reason) == (error, reason), status
        assert str(status) in caught.message or kind
        assert "words of the server" in caught.message
        assert "\n" not in caught.message


async def test_too_long_prompt_has_its_own_error(wire: str) -> None:
    message = {
        "anthropic": "prompt is too long: 210000 tokens > 200000 maximum",
        "openai": "This model's maximum context length is 8192 tokens, your messages resulted in 9000 tokens",
        "responses": "Your input exceeds the context window of this model. Please adjust your input.",
    }[wire]
    async with connected(wire, answer=lambda _: refuses(400, message=message)) as (client, _):
        with pytest.raises(ContextTooLong, match=r"too long|maximum context|context window"):
            await client.reply(request(), ignore)


async def test_broken_stream_is_retryable(wire: str) -> None:
    cases = [
        (cuts(LONG, after=3), "cut"),
        (cuts(LONG, after=0), "cut"),
        (Answer(text=LONG, unfinished=True), "cut"),
        (garbage(), "garbage"),
        (Answer(raw=b"event: message_start\ndata: [1, 2]\n\n"), "garbage"),
        (Answer(raw=b"event: message_start\ndata: " + b"[" * 100_000 + b"\n\n"), "garbage"),
        (Answer("text", odd={"delta": 7}), "garbage"),
        (Answer("text", odd={"delta": {"type": "text_delta", "text": 7, "content": 7}}), "garbage"),
        (Answer(raw=b"<html>please log in</html>", content_type="text/html"), "garbage"),
        (Answer(text=LONG, error_after=2, kind="overloaded_error"), "overloaded"),
        (Answer(text=LONG, error_after=2, kind="api_error"), "server_error"),
    ]
    errors = await fail(wire, *(answer for answer, _ in cases))
    for (answer, reason), caught in zip(cases, errors, strict=True):
        assert (type(caught), caught.reason) == (TryAgain, reason), answer
        assert "\n" not in caught.message


async def test_refusal_inside_the_stream_is_not_retryable(wire: str) -> None:
    [caught] = await fail(wire, Answer(text=LONG, error_after=2, kind="authentication_error"))
    assert (type(caught), caught.reason) == (UselessToRetry, "bad_key")


async def test_each_time_limit_has_its_own_error(wire: str) -> None:
    [first] = await fail(wire, hangs(LONG, after=-1), limits=Limits(first_token_s=0.05))
    assert (first.reason, first.message) == ("silent", "no text came in 0.05 s (limit first_token_s)")
    [opened] = await fail(wire, hangs(LONG, after=0), limits=Limits(first_token_s=0.05))
    assert (opened.reason, opened.message) == ("silent", "no text came in 0.05 s (limit first_token_s)")
    [silent] = await fail(wire, hangs(LONG, after=2), limits=Limits(silence_s=0.05))
    assert (silent.reason, silent.message) == (
        "silent",
        "the stream fell silent for 0.05 s (limit silence_s)",
    )
    [whole] = await fail(wire, hangs(LONG, after=2), limits=Limits(reply_s=0.05))
    assert (type(whole), whole.reason) == (UselessToRetry, "too_slow")
    assert whole.message == "the reply took more than 0.05 s (limit reply_s)"


async def test_missing_server_is_a_retryable_connection_error(wire: str) -> None:
    with model_server() as server:
        client = client_of(wire, server)
    with pytest.raises(TryAgain) as caught:
        await client.reply(request(), ignore)
    assert caught.value.reason == "connection"
    assert "Connection refused" in caught.value.message
    await client.close()


async def test_retries_after_faults_return_only_the_last_reply(wire: str) -> None:
    received = Received()
    script = (
        refuses(529),
        cuts("half a rep" * 20, after=2),
        refuses(429, retry_after="25"),
        garbage(),
        says("whole"),
    )
    async with connected(wire, *script) as (client, server):
        reply = await received.ask(client, request())
    assert reply.text == "whole"
    assert [retry.reason for retry in received.retries] == ["overloaded", "cut", "rate_limited", "garbage"]
    assert [retry.n for retry in received.retries] == [1, 2, 3, 4]
    assert [retry.wait_s for retry in received.retries] == received.waits
    assert received.waits[2] >= 25
    assert all(1 <= wait <= 60 for wait in received.waits)
    assert len(server.requests) == 5


async def test_retries_end_after_the_last_try(wire: str) -> None:
    received = Received()
    async with connected(wire, answer=lambda _: refuses(503, message="down for the night")) as (
        client,
        server,
    ):
        with pytest.raises(GaveUp, match=r"no reply after 6 tries.*down for the night"):
            await received.ask(client, request())
    assert len(server.requests) == 6
    assert len(received.retries) == 5
    assert all(1 <= wait <= 60 for wait in received.waits)


async def test_retry_after_of_a_day_gives_up(wire: str) -> None:
    received = Received()
    async with connected(wire, refuses(429, retry_after="86400")) as (client, _):
        with pytest.raises(GaveUp, match="asks to wait 86400 s"):
            await received.ask(client, request())
    assert received.retries == []
    assert received.waits == []


@pytest.mark.parametrize("status", [400, 422])
async def test_refused_temperature_is_left_out(wire: str, status: int) -> None:
    def answer(seen: Seen) -> Answer:
        if "temperature" in seen.body:
            return refuses(
                status, message="Unsupported value: 'temperature' does not support 1.0 with this model."
            )
        return says("as you like")

    async with connected(wire, answer=answer) as (client, server):
        for _ in range(2):
            reply = await client.reply(request(), ignore)
            assert (reply.text, reply.temperature) == ("as you like", None)
    assert ["temperature" in seen.body for seen in server.requests] == [True, False, False]


async def test_call_ends_if_the_server_refuses_every_parameter(wire: str) -> None:
    message = (
        "temperature, thinking, cache_control, stream_options, max_tokens, "
        "reasoning, prompt_cache_key, max_output_tokens are all unknown here"
    )
    async with connected(wire, answer=lambda _: refuses(400, message=message)) as (client, server):
        with pytest.raises(UselessToRetry, match="all unknown here"):
            await client.reply(request(), ignore)
    assert 2 <= len(server.requests) <= 6


async def test_model_key_is_sent_and_never_appears_in_messages(wire: str) -> None:
    key = "wd-secret-key-123"
    answer = refuses(401, message=f"the key {key} is not known")
    async with connected(wire, answer, WAVEDECK_MODEL_KEY=key + "\n") as (client, server):
        with pytest.raises(UselessToRetry) as caught:
            await client.reply(request(), ignore)
    assert key in repr(server.requests[0].headers)
    assert key not in caught.value.message
    assert "the key [key] is not known" in caught.value.message
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


async def test_keys_of_providers_and_variables_of_sdks_do_not_reach_another_server(
    wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    traps = {
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:1", "OPENAI_BASE_URL": "http://127.0.0.1:1",
        "ANTHROPIC_CUSTOM_HEADERS": "x-trap: caught", "OPENAI_CUSTOM_HEADERS": "x-trap: caught",
        "ANTHROPIC_API_KEY": "trap-key", "ANTHROPIC_AUTH_TOKEN": "trap-key", "OPENAI_API_KEY": "trap-key",
        "OPENAI_ADMIN_KEY": "trap-key", "OPENAI_ORG_ID": "trap-org",
    }  # fmt: skip
    for name, value in traps.items():
        monkeypatch.setenv(name, value)
    async with connected(wire, says("yes"), **traps) as (client, server):
        await client.reply(request(), ignore)
    sent = repr(server.requests[0].headers)
    assert "trap" not in sent
    assert "none" in sent
    assert {name: os.environ[name] for name in traps} == traps


async def test_redirect_is_not_followed(wire: str) -> None:
    with model_server(says("gotcha")) as elsewhere:
        [caught] = await fail(wire, refuses(307, location=f"{elsewhere.anthropic_url}/v1/messages"))
        assert caught.reason == "bad_request"
        assert "redirects to http://127.0.0.1" in caught.message
        assert elsewhere.requests == []


async def test_cancelled_call_ends_at_once(wire: str) -> None:
    begun = asyncio.Event()
    async with connected(wire, hangs(LONG, after=2)) as (client, _):
        task = asyncio.create_task(client.reply(request(), lambda _: begun.set()))
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 5)
