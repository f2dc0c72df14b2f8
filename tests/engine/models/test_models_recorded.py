"""Recorded models: each call gets its recorded reply; a call without a recorded reply is an error."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from engine.errors import RecordingExhausted
from engine.models import CallKey, Piece, RecordedClient, Request, changed_templates, open_client
from sessions.events import Message, Role, Usage
from sessions.recording import load_recording
from tests.support.engine.model_calls import ignore

TEXT = "## Strategy\n\nTiles.\n" + "x = 1\n" * 200
REPLIES = [
    {"attempt": 1, "role": "generator", "n": 1, "text": TEXT, "reasoning": "hm " * 50, "stop_reason": "end",
     "usage": {"input_tokens": 10, "output_tokens": 20, "cached_tokens": None}, "seconds": 30.0},
    {"attempt": 1, "role": "generator", "n": 2, "text": "corrected", "stop_reason": "end"},
    {"attempt": 1, "role": "reflector", "n": 1, "text": "the mask", "stop_reason": "end"},
    {"attempt": 2, "role": "generator", "n": 1, "text": "cut", "stop_reason": "truncated"},
]  # fmt: skip


@pytest.fixture
def recordings(tmp_path: Path) -> Path:
    folder = tmp_path / "mine"
    (folder / "chains/starter/softmax").mkdir(parents=True)
    (folder / "recording.toml").write_text(
        'schema = 1\nname = "mine"\nmodel = "anthropic:x"\ndate = "2026-01-01"\nsession = "s"\n'
        '[templates]\n"first.j2" = "aa"\n[[chains]]\ntask = "starter/softmax"\nchain = 1\nattempts = 2\n'
    )
    lines = b"".join(msgspec.json.encode(reply) + b"\n" for reply in REPLIES)
    (folder / "chains/starter/softmax/1.jsonl").write_bytes(lines)
    return tmp_path


def request(attempt: int, role: Role, n: int, *, instance: int = 1, task: str = "starter/softmax") -> Request:
    key = CallKey(task=task, instance=instance, attempt=attempt, role=role, n=n)
    return Request(key=key, messages=(Message("user", "whatever is asked"),))


async def test_each_call_gets_its_recorded_reply(recordings: Path) -> None:
    client = RecordedClient(load_recording(recordings / "mine"), pieces_a_second=None)
    assert client.model == "recorded:mine"
    first = await client.reply(request(1, Role.GENERATOR, 1), ignore)
    assert (first.text, first.stop_reason) == (TEXT, "end")
    assert first.usage == Usage(input_tokens=10, output_tokens=20)
    assert first.temperature is None
    assert (await client.reply(request(1, Role.REFLECTOR, 1), ignore)).text == "the mask"
    assert (await client.reply(request(1, Role.GENERATOR, 2), ignore)).text == "corrected"
    assert (await client.reply(request(2, Role.GENERATOR, 1), ignore)).stop_reason == "truncated"
    assert (await client.reply(request(1, Role.GENERATOR, 1), ignore)).text == TEXT


@pytest.mark.parametrize(
    "missing",
    [
        request(3, Role.GENERATOR, 1),
        request(1, Role.OPTIMIZER, 1),
        request(1, Role.GENERATOR, 3),
        request(1, Role.GENERATOR, 1, instance=2),
        request(1, Role.GENERATOR, 1, task="starter/matmul"),
    ],
)
async def test_call_without_a_recorded_reply_is_an_error(recordings: Path, missing: Request) -> None:
    client = open_client("recorded:mine", environ={}, home_recordings=recordings)
    with pytest.raises(RecordingExhausted, match="no further reply") as caught:
        await client.reply(missing, ignore)
    assert caught.value.reason == "recording_exhausted"


async def test_recorded_reply_streams_at_its_pace_reasoning_first(recordings: Path) -> None:
    waits: list[float] = []
    pieces: list[Piece] = []

    async def note(seconds: float) -> None:
        waits.append(seconds)

    client = RecordedClient(load_recording(recordings / "mine"), pieces_a_second=400, sleep=note)
    await client.reply(request(1, Role.GENERATOR, 1), pieces.append)
    assert "".join(piece.text for piece in pieces if piece.kind == "text") == TEXT
    assert [piece.kind for piece in pieces] == sorted(piece.kind for piece in pieces)
    assert sum(waits) == pytest.approx(len(pieces) / 400, abs=0.05)


def test_changed_templates_are_named() -> None:
    assert changed_templates({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "9", "d": "4"}) == (
        "b",
        "c",
        "d",
    )
    assert changed_templates({"a": "1"}, {"a": "1"}) == ()
