"""Tool calls against a model server, in each wire format: what the model wrote is read, and repeated as it was."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from engine.errors import EngineDidNotStart
from engine.methods.tools.toolbox import TOOLBOX
from engine.models import Request, calls_in
from engine.models.reaching import check_answers
from sessions.events import Message
from tests.support.engine.model_calls import WIRES, Received, client_of, connected, ignore, request
from tests.support.engine.model_server import Answer, Seen, calls, model_server, refuses, says

TOOLS = tuple(TOOLBOX.values())
CODE = "import triton\n\n# a module of several lines"


def with_tools(*further: Message) -> Request:
    plain = request()
    return msgspec.structs.replace(plain, messages=(*plain.messages, *further), tools=TOOLS)


def names_of(seen: Seen) -> list[str]:
    return [(tool.get("function") or tool)["name"] for tool in seen.body["tools"]]


@pytest.mark.parametrize("wire", WIRES)
async def test_parallel_calls_are_read_and_repeated_with_their_answers(wire: str) -> None:
    received = Received()
    answer = calls(
        ("eval", {"code": CODE, "note": "First."}), ("best", {}), text="I try.", reasoning="Think."
    )
    async with connected(wire, answer, says("done")) as (client, server):
        reply = await received.ask(client, with_tools())
        answers = [
            Message("tool", f"answer {n}", answers=call.id) for n, call in enumerate(calls_in(reply.turn))
        ]
        spoken = Message("assistant", reply.text, turn=reply.turn)
        await client.reply(with_tools(spoken, *answers, Message("user", "Go on.")), ignore)
    assert [(call.name, call.arguments) for call in calls_in(reply.turn)] == [
        ("eval", {"code": CODE, "note": "First."}), ("best", {}),
    ]  # fmt: skip
    # People read the calls in the text, the code as a block.
    assert reply.text == received.text_of("text")
    assert reply.text.startswith("I try.\n\n**eval** First.\n\n```python\nimport triton")
    assert reply.stop_reason == "end"
    first, second = server.requests
    assert names_of(first) == list(TOOLBOX)
    assert second.turns[-1].endswith("Go on.")
    assert repeated(wire, second) == [
        "Think." if wire == "openai" else "signed" if wire == "anthropic" else "sealed"
    ]
    assert "answer 0" in second.prompt
    assert "answer 1" in second.prompt


def repeated(wire: str, seen: Seen) -> list[Any]:
    """Returns the reasoning that goes back to the model."""
    if wire == "anthropic":
        [turn] = [turn for turn in seen.body["messages"] if turn["role"] == "assistant"]
        assert seen.body["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}
        return [block["signature"] for block in turn["content"] if block["type"] == "thinking"]
    if wire == "openai":
        return [turn["reasoning_content"] for turn in seen.body["messages"] if turn["role"] == "assistant"]
    assert seen.body["include"] == ["reasoning.encrypted_content"]
    return [item["encrypted_content"] for item in seen.body["input"] if item.get("type") == "reasoning"]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "written", ['{"code": "x', '["code"]', '{"code": "\\ud800", "n": 99999999999999999999}']
)
async def test_odd_arguments_are_a_reply_that_a_journal_can_keep(wire: str, written: str) -> None:
    async with connected(wire, calls(("eval", written))) as (client, _):
        reply = await client.reply(with_tools(), ignore)
    [call] = calls_in(reply.turn)
    assert call.name == "eval"
    assert msgspec.json.decode(msgspec.json.encode(reply.turn)) == list(reply.turn)


async def test_whole_calls_without_distinct_indices_stay_apart() -> None:
    """Gemini sends so, and wants the signature of its reasoning back."""
    parts = [
        {
            "index": 0,
            "id": f"c{n}",
            "function": {"name": "best", "arguments": "{}"},
            "extra_content": {"sign": n},
        }
        for n in range(2)
    ]
    deltas = [({"tool_calls": [part]}, None) for part in parts]
    chunks = [
        {"choices": [{"index": 0, "delta": d, "finish_reason": f}]} for d, f in [*deltas, ({}, "tool_calls")]
    ]
    raw = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    async with connected("openai", Answer(raw=raw)) as (client, _):
        reply = await client.reply(with_tools(), ignore)
    assert [call.id for call in calls_in(reply.turn)] == ["c0", "c1"]
    assert [call["extra_content"] for call in reply.turn[0]["tool_calls"]] == [{"sign": 0}, {"sign": 1}]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    "message",
    [
        '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
        "registry.ollama.ai/library/gemma:2b does not support tools",
    ],
)
async def test_a_model_without_tools_is_named_before_anything_is_paid(wire: str, message: str) -> None:
    with model_server(refuses(400, message=message), about_model=refuses(404)) as server:
        client = client_of(wire, server)
        with pytest.raises(EngineDidNotStart, match="cannot call tools: "):
            await check_answers([client], TOOLS)
        await client.close()
    [question] = server.requests
    assert question.turns == []
    assert question.body["stream"]


@pytest.mark.parametrize("wire", WIRES)
async def test_a_server_that_wants_a_message_says_nothing_about_tools(wire: str) -> None:
    with model_server(refuses(400, message="messages: at least one message is required")) as server:
        client = client_of(wire, server)
        await check_answers([client], TOOLS)
        await client.close()
